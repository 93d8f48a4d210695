"""The texts that the guard is measured on: attacks and harmless texts that look like them, from public collections, and ordinary
questions. Patterns were developed on the rows at even positions, of their file or of their set; the others, which nobody looked at,
are what is reported."""

import csv
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.errors import EvaluationError

_QUESTIONS = ("ar", "de", "en", "es", "hi", "th", "tr", "zh")


@dataclass(frozen=True)
class TextSet:
    """Texts of one kind."""

    name: str
    is_attack: bool
    rows: Sequence[tuple[int, str]]
    """Each with its position in its file."""

    def texts(self, *, reported: bool) -> Sequence[str]:
        """Those that are reported, or those that patterns were developed on."""
        return [text for place, (row, text) in enumerate(self.rows) if (row % 2 == 1 and place % 2 == 1) == reported]


def injection_sets(folder: Path) -> Iterator[TextSet]:
    """Attacks, then harmless texts with the same words. Raises EvaluationError where the folder lacks a file."""
    try:
        yield from _cyberseceval(folder)
        yield TextSet("giskard: jailbreaks, hijacking", True, _picked(_rows(folder / "giskard_prompt_injections.csv")))
        trust = _rows(folder / "trust_aware_prompt_injection.csv")
        for kind in ("override", "leakage", "role_hijack", "semantic"):
            yield TextSet(f"trust_aware: {kind}", True, _picked(trust, attack_type=kind))
        piguard = _json(folder / "piguard" / "valid.json")
        pint = [
            (place, row["prompt"])
            for place, row in enumerate(piguard)
            if str(row["label"]) == "1" and row["source"].startswith("PINT")
        ]
        yield TextSet("PINT: injections", True, pint)
        xstest = _rows(folder / "xstest_prompts.csv")
        yield TextSet("XSTest: unsafe requests", True, _picked(xstest, label="unsafe"))
        yield TextSet("XSTest: safe requests", False, _picked(xstest, label="safe"))
        yield TextSet("trust_aware: benign", False, _picked(trust, label="benign"))
        yield TextSet("PIGuard: benign", False, _picked(piguard, label=0))
        for name in ("one", "two", "three"):
            rows = _json(folder / "piguard" / f"NotInject_{name}.json")
            yield TextSet(f"NotInject: {name} trigger words", False, _picked(rows))
    except OSError as error:
        raise EvaluationError(
            f"{error.filename} cannot be read ({error.strerror}); name the folder of the collections"
        ) from error


def question_sets(folder: Path) -> Iterator[TextSet]:
    """Ordinary questions. Collections that are not there are left out."""
    for code in _QUESTIONS:
        yield from _beir(folder / f"ir_xquad_{code}", f"XQuAD {code}")
    yield from _beir(folder / "ir_scifact", "SciFact")
    if (squad := folder / "qa_squad2_dev_half").is_dir():
        yield TextSet("SQuAD 2.0", False, list(enumerate(_squad(squad))))


def _cyberseceval(folder: Path) -> Iterator[TextSet]:
    english = _json(folder / "cyberseceval_prompt_injection.json")
    others = json.loads(gzip.decompress((folder / "cyberseceval_prompt_injection_multilingual.json.gz").read_bytes()))
    for name, rows in (("CyberSecEval", english), ("CyberSecEval, 17 languages", others)):
        for risk in ("security-violating", "logic-violating"):
            yield TextSet(f"{name}: {risk}", True, _picked(rows, "user_input", risk_category=risk))


def _beir(folder: Path, name: str) -> Iterator[TextSet]:
    if (queries := folder / "queries.jsonl").is_file():
        yield TextSet(
            name,
            False,
            list(enumerate(json.loads(line)["text"] for line in queries.read_text("utf-8").splitlines() if line)),
        )


def _squad(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.json.gz")):
        for article in json.loads(gzip.decompress(path.read_bytes()))["data"]:
            for paragraph in article["paragraphs"]:
                yield from (each["question"] for each in paragraph["qas"])


def _picked(rows: Sequence[Mapping[str, Any]], field: str = "prompt", **having: object) -> list[tuple[int, str]]:
    """The texts of the rows with these values, and where they stand."""
    return [
        (place, row[field])
        for place, row in enumerate(rows)
        if all(str(row[name]) == str(value) for name, value in having.items())
    ]


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
