"""Makes services/reranker/judging/judge.json, and says how good the judge is on claims left out.

Boosted trees over the features of services/reranker/judging/features.py, fitted on the cases of scripts/claim_cases.py and on the
written claims; a line through their logits (Platt) is fitted on claims that the trees of their fold have not seen. Folds never
share a passage. SICK and SciFact's claims are in none of it.

    python -m scripts.fit_claim_judge FOLDER    (half an hour of two cores; FOLDER holds the public texts)
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from scripts.boosting import Boosting, Float, fit
from scripts.claim_cases import Case, make_cases, source_of
from services.reranker.adapters.cpu_model import LoadedModel, load
from services.reranker.judging.features import FEATURES, NONE, compare
from services.reranker.judging.reading import ReadText, joined, read_text, with_vectors
from services.reranker.judging.verdicts import MODEL_FILE, says_own_action
from services.reranker.model_files import E5_SMALL_4BIT
from services.reranker.models import ContentVectors, TextKind
from services.reranker.padding import pad
from services.reranker.pooling import content_vectors
from services.reranker.settings import RerankerSettings

HOW = Boosting(trees=150, depth=4, rate=0.1, columns=0.35, l2=3.0, least_weight=8.0)
FOLDS = 3
WRITTEN = "written"
WRITTEN_SHARE = 0.6
"""Of the weight of another source: there are 210 written claims, and more weight costs on texts of other kinds."""
_BATCH = 24


class Reader:
    """Reads texts with the embedding model as the model server does."""

    def __init__(self, model: LoadedModel) -> None:
        assert model.pieces_of is not None
        self._model, self._pieces_of = model, model.pieces_of
        self._prompt = model.model.prompts[TextKind.QUERY]
        self._prompt_tokens = len(self._pieces_of([self._prompt.strip()])[0])
        self._vectors: dict[tuple[str, str], ContentVectors] = {}

    def read_all(self, texts: Iterable[tuple[str, str]]) -> None:
        """Heading and text of each, shortest first."""
        todo = list(dict.fromkeys(each for each in texts if each not in self._vectors))
        ids = self._model.tokenizer.tokenize([self._prompt + joined(*each) for each in todo])
        order = sorted(range(len(todo)), key=lambda number: len(ids[number]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            encoded = self._model.encoder.encode(*pad([ids[number] for number in batch], 1))
            for row, number in enumerate(batch):
                self._vectors[todo[number]] = content_vectors(encoded.text(row, ids[number]), self._prompt_tokens)

    def __call__(self, heading: str, text: str) -> ReadText:
        vectors = self._vectors[heading, text]
        words = read_text(text, heading, self._pieces_of)
        return with_vectors(text, heading, words, vectors.tokens, vectors.pooled)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", type=Path, help="holds the public texts, in folders named as claim_cases.py reads them"
    )
    parser.add_argument("--models", type=Path, default=Path(".models"), help="folder with the model files")
    options = parser.parse_args()
    cases = [*make_cases(options.folder), *written_claims(options.folder)]
    settings = RerankerSettings(models_dir=options.models, auth_public_keys="nobody calls")
    features = features_of(cases, Reader(load(settings, E5_SMALL_4BIT)))
    sys.stdout.write(fit_and_report(cases, features))
    return 0


def written_claims(folder: Path) -> list[Case]:
    """The claims that were written by hand; their passages are never divided among folds."""
    rows = map(json.loads, (folder / "claims_written/claims.jsonl").read_text("utf-8").splitlines())
    return [
        Case(
            row["claim"],
            row["passage"],
            " ".join([row["document_name"], *row["heading_path"]]),
            int(row["label"] == "supported"),
            row["kind"],
            row["claim_language"]
            if row["claim_language"] == row["language"]
            else f"{row['language']}>{row['claim_language']}",
            WRITTEN + row["passage"],
        )
        for row in rows
    ]


def features_of(cases: Sequence[Case], reader: Reader) -> Float:
    """[cases, features]."""
    reader.read_all([("", case.claim) for case in cases] + [(case.heading, case.passage) for case in cases])
    compared = (compare(reader("", case.claim), reader(case.heading, case.passage)) for case in cases)
    return np.array([each.features if each else [NONE] * len(FEATURES) for each in compared], dtype=float)


def fit_and_report(cases: Sequence[Case], features: Float) -> str:
    """Writes the model; returns the report of claims left out."""
    labels = np.array([float(case.is_true) for case in cases])
    folds = np.array([_fold(case.group) for case in cases])
    weights = weights_of(cases)
    parts = [folds != fold for fold in range(FOLDS)] + [np.ones(len(cases), bool)]
    with ProcessPoolExecutor() as pool:
        fits = [pool.submit(fit, features[part], labels[part], weights[part], FEATURES, HOW) for part in parts]
        *by_fold, model = [each.result() for each in fits]
    left_out = np.zeros(len(cases))
    for fold, part_model in enumerate(by_fold):
        left_out[folds == fold] = logits(part_model, features[folds == fold])
    slope, shift = platt(left_out, labels, weights)
    model["calibration"] = [round(slope, 4), round(shift, 4)]
    MODEL_FILE.write_text(json.dumps(model, separators=(",", ":")).replace("],[", "],\n[") + "\n", "utf-8")
    said = 1 / (1 + np.exp(-(slope * left_out + shift)))
    said[[says_own_action(case.claim) for case in cases]] = 0.0
    return report(cases, said)


def weights_of(cases: Sequence[Case]) -> Float:
    """One on average; each source counts alike, and its true and false claims do."""
    sources = [WRITTEN if case.group.startswith(WRITTEN) else source_of(case) for case in cases]
    groups = list(zip(sources, (case.is_true for case in cases), strict=True))
    counts = {group: groups.count(group) for group in set(groups)}
    weights = np.array([(WRITTEN_SHARE if group[0] == WRITTEN else 1.0) / counts[group] for group in groups])
    return np.asarray(weights / weights.mean())


def logits(model: dict[str, Any], features: Float) -> Float:
    """What the trees say, before calibration."""
    found = np.full(len(features), model["bias"])

    def descend(node: Any, rows: Any) -> None:
        if not isinstance(node, list):
            found[rows] += node
            return
        feature, threshold, below, above, unknown_below = node
        values = features[rows, feature]
        goes_below = np.where(np.isnan(values), bool(unknown_below), values <= threshold)
        descend(below, rows[goes_below])
        descend(above, rows[~goes_below])

    for tree in model["trees"]:
        descend(tree, np.arange(len(features)))
    return found


def platt(scores: Float, labels: Float, weights: Float) -> tuple[float, float]:
    """Slope and shift of the line through the logits, by Newton's method (Platt 1999)."""
    line = np.array([1.0, 0.0])
    inputs = np.stack([scores, np.ones(len(scores))], 1)
    for _ in range(30):
        said = 1 / (1 + np.exp(-inputs @ line))
        slopes = inputs.T @ (weights * (said - labels))
        curvature = (inputs * (weights * said * (1 - said))[:, None]).T @ inputs
        line -= np.linalg.solve(curvature, slopes)
    return float(line[0]), float(line[1])


def report(cases: Sequence[Case], said: Float) -> str:
    """Per source, and per kind of the written claims: how many claims left out pass, and the calibration error."""
    lines = ["claims left out | false | pass | true | kept | calibration error"]
    sources = np.array([WRITTEN if case.group.startswith(WRITTEN) else source_of(case) for case in cases])
    lines += [_line(source, cases, said, sources == source) for source in dict.fromkeys(sources)]
    written = sources == WRITTEN
    for name in ("kind", "language"):
        values = np.array([getattr(case, name) for case in cases])
        lines += [
            _line(f"written, {value}", cases, said, written & (values == value))
            for value in dict.fromkeys(values[written])
        ]
    return "\n".join([*lines, ""])


def _line(name: str, cases: Sequence[Case], said: Float, chosen: Any) -> str:
    is_true = np.array([bool(case.is_true) for case in cases])
    shares = [
        f"{np.mean(said[chosen & own] >= 0.5):.3f}" if (chosen & own).any() else "-" for own in (~is_true, is_true)
    ]
    bins = np.minimum(9, (said[chosen] * 10).astype(int))
    distances = [abs(np.sum(said[chosen][bins == each] - is_true[chosen][bins == each])) for each in range(10)]
    counts = (chosen & ~is_true).sum(), (chosen & is_true).sum()
    return f"{name} | {counts[0]} | {shares[0]} | {counts[1]} | {shares[1]} | {sum(distances) / chosen.sum():.3f}"


def _fold(group: str) -> int:
    return sha256(group.encode()).digest()[1] % FOLDS


if __name__ == "__main__":
    sys.exit(main())
