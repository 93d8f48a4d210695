"""The labelled claims that judges are measured on, read from public files in a folder of theirs."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from evals.claims.written import read_written
from evals.errors import EvaluationError

_FRESH = Path(__file__).parents[1] / "data" / "claims"
"""Of this repository. Nothing is ever fitted on it."""


@dataclass(frozen=True)
class LabelledClaim:
    """A claim, the passage that it cites, and whether the passage carries it."""

    text: str
    passage: str
    name: str
    """Name of the document, and headings."""
    is_true: bool
    kind: str
    """What is true or false about it."""
    language: str = "en"
    """Of the passage; with the claim's own where that is another: `en>de`."""
    question: str = ""
    """What the claim answers, where it does not stand alone."""


def load_sets(folder: Path, names: Iterable[str]) -> dict[str, list[LabelledClaim]]:
    """The sets of these names, of all where none is given. Raises EvaluationError when there are none in the folder."""
    wanted = list(names) or list(_LOADERS)
    if unknown := [name for name in wanted if name not in _LOADERS]:
        raise EvaluationError(f"there are no claims named {', '.join(unknown)}; choose from {', '.join(_LOADERS)}")
    found = {
        name: list(load(folder))
        for name, (path, load) in _LOADERS.items()
        if name in wanted and (folder / path).exists()
    }
    if not found:
        raise EvaluationError(f"{folder} holds no labelled claims; name the folder that does with --data")
    return found


def _written(folder: Path) -> Iterator[LabelledClaim]:
    for row in _rows(folder / "claims_written/claims.jsonl"):
        language, own = row["language"], row["claim_language"]
        name = " ".join([row["document_name"], *row["heading_path"]])
        across = language if own == language else f"{language}>{own}"
        yield LabelledClaim(row["claim"], row["passage"], name, row["label"] == "supported", row["kind"], across)


def _scifact(folder: Path) -> Iterator[LabelledClaim]:
    """Each claim with each abstract that its annotators read for it."""
    abstracts = {str(row["_id"]): row for row in _rows(folder / "ir_scifact/corpus.jsonl.gz")}
    for row in _rows(folder / "ir_scifact/claims.jsonl"):
        labels = {str(each["doc_id"]): each["label"] for each in row.get("evidence", ())}
        if not labels and row.get("label"):
            labels = {str(row["cited_doc_ids"][0]): row["label"]}
        for document, label in labels.items():
            read = abstracts[document]
            yield LabelledClaim(row["claim"], read["text"], read["title"], label == "SUPPORT", label.lower())


def _sick(folder: Path) -> Iterator[LabelledClaim]:
    with gzip.open(folder / "nli_small/SICK_test_annotated.txt.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            _, passage, claim, _, label = line.rstrip("\n").split("\t")
            yield LabelledClaim(claim, passage, "", label == "ENTAILMENT", label.lower())


def _halueval(folder: Path) -> Iterator[LabelledClaim]:
    """Of the half that no judge is fitted on. The same pair in both files counts once."""
    seen: set[tuple[str, str]] = set()
    for name in ("qa_one-turn_data", "qa_multi-turn_data"):
        for row in _rows(folder / f"halluc_halueval/{name}.jsonl.gz"):
            knowledge = row["knowledge"].strip()
            if is_fitted_on(knowledge):
                continue
            for field, is_true in (("right_answer", True), ("hallucinated_answer", False)):
                pair = row["question"], row[field]
                if pair not in seen:
                    seen.add(pair)
                    yield LabelledClaim(row[field], knowledge, "", is_true, field, question=row["question"])


def _fresh(_: Path) -> Iterator[LabelledClaim]:
    for passage in read_written(_FRESH):
        for claim in passage.claims:
            own = passage.language
            language = own if claim.language == own else f"{own}>{claim.language}"
            yield LabelledClaim(claim.text, passage.text, passage.heading, claim.is_true, claim.kind, language)


def _rgb(folder: Path) -> Iterator[LabelledClaim]:
    """The right and a wrong answer to each question, over a passage that has the right one."""
    for row in _rows(folder / "qa_rgb_conflict/en_fact.jsonl"):
        right = row["answer"][0] if isinstance(row["answer"], list) else [row["answer"]]  # a list: ways to write a date
        told = [(answer, each) for answer in right for each in row["positive"] if answer.lower() in each.lower()]
        for answer, passage in told[:1]:
            yield LabelledClaim(answer, passage, "", True, "right answer", question=row["query"])
            yield LabelledClaim(row["fakeanswer"], passage, "", False, "wrong answer", question=row["query"])


def is_fitted_on(knowledge: str) -> bool:
    """Whether a passage of HaluEval belongs to the half that judges may be fitted on."""
    return sha256(knowledge.encode()).digest()[0] % 2 == 0


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


_LOADERS: Mapping[str, tuple[str | Path, Callable[[Path], Iterator[LabelledClaim]]]] = {
    "fresh": (_FRESH, _fresh),
    "written": ("claims_written/claims.jsonl", _written),
    "scifact": ("ir_scifact/claims.jsonl", _scifact),
    "sick": ("nli_small/SICK_test_annotated.txt.gz", _sick),
    "rgb": ("qa_rgb_conflict/en_fact.jsonl", _rgb),
    "halueval": ("halluc_halueval/qa_one-turn_data.jsonl.gz", _halueval),
}
SETS = tuple(_LOADERS)
"""Names of all sets."""
