"""Makes services/reranker/judging/judge.json and judge.npz, and says how good the judge is on claims left out.

Two networks are fitted on the claims of scripts/judge/cases.py, each on one half of the passages, and read the other half. Boosted
trees over their verdicts and the features of the alignment are fitted on all claims and on the public written ones, which no
network sees. A line through the trees' logits (Platt) is fitted on claims that the trees of their fold have not seen. Folds never
share a passage. SICK and SciFact's claims are in none of it.

    python -m scripts.judge.fit FOLDER    (FOLDER holds the public claims)
"""

import argparse
import io
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from scripts.boosting import Boosting, Float, fit
from scripts.judge.cases import OWN, Case, make_cases, source_of
from scripts.judge.network import (
    CONTRADICTED,
    FALSE,
    NOT_FOUND,
    SUPPORTED,
    examples_of,
    fit_network,
    principal_components,
)
from scripts.judge.reading import Reader
from scripts.judge.report import report
from services.reranker.adapters.cpu_model import load
from services.reranker.judging.cues import FINGERPRINT
from services.reranker.judging.features import FEATURES, Alignment, network_features
from services.reranker.judging.network import Comparison, logits
from services.reranker.judging.reading import ReadText
from services.reranker.judging.verdicts import MODEL_FILE, NETWORKS_FILE, says_own_action
from services.reranker.model_files import E5_SMALL_4BIT
from services.reranker.settings import RerankerSettings

HOW = Boosting(trees=110, depth=4, rate=0.12, columns=0.35, l2=3.0, least_weight=8.0)
FOLDS = 3
PUBLIC = "public"
"""Begins the group of the public written claims."""
ACROSS = "across"
"""Source of the written claims that have another language than their passage. Few of the changed claims do, so among all of them
"another language" would be a sign of a true claim."""
_WEIGHTS = {OWN: 1.6, ACROSS: 1.0, PUBLIC: 0.6, "rows": 0.6, "resp": 0.8}
"""Of a source, where it is not one: what people write counts more than what is made by rule."""
_HALVES = 2
_NOT_FOUND = {
    "of another",
    "beside",
    "cause",
    "detail",
    "unrelated",
    "invented_cause",
    "invented_detail",
    "own action",
    "claimed_action",
}
_UNSURE = {"halueval", "caption", "paraphrase", "cross_language"}
"""Kinds of false claims: nothing in the passage is against the former, and the latter may be either."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="holds the public claims, in folders named as cases.py reads them")
    parser.add_argument("--models", type=Path, default=Path(".models"), help="folder with the model files")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "groundwork-judge-vectors.sqlite",
        help="file that keeps the vectors of texts between two fits (default %(default)s)",
    )
    options = parser.parse_args()
    cases = [*make_cases(options.folder), *public_claims(options.folder)]
    settings = RerankerSettings(models_dir=options.models, auth_public_keys="nobody calls")
    reader = Reader(load(settings, E5_SMALL_4BIT), options.cache)
    reader.read_all([("", case.claim) for case in cases] + [(case.heading, case.passage) for case in cases])
    cases, features, comparisons = align(cases, reader)
    weights = weights_of(cases)
    networks, said = fit_networks(cases, comparisons, weights)
    packed = packed_networks(networks)
    features = np.hstack([features, [network_features(each) for each in said]])
    fitted, probabilities = fit_trees(cases, features, weights)
    fitted |= {"networks": sha256(packed).hexdigest(), "words": FINGERPRINT}
    NETWORKS_FILE.write_bytes(packed)
    MODEL_FILE.write_text(json.dumps(fitted, separators=(",", ":")).replace("],[", "],\n[") + "\n", "utf-8")
    sys.stdout.write(report(cases, [PUBLIC if is_public(case) else source_of(case) for case in cases], probabilities))
    return 0


def public_claims(folder: Path) -> list[Case]:
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
            PUBLIC + row["passage"],
        )
        for row in rows
    ]


def is_public(case: Case) -> bool:
    """Whether the case is one of the public written claims."""
    return case.group.startswith(PUBLIC)


def is_across(case: Case) -> bool:
    """Whether claim and passage are of two languages."""
    return ">" in case.language


def align(cases: Sequence[Case], reader: Callable[[str, str], ReadText]) -> tuple[list[Case], Float, list[Comparison]]:
    """The cases that have words, with the features of their alignment, and with what a network reads."""
    read: dict[tuple[str, str], ReadText] = {}
    taken: list[Case] = []
    features: list[list[float]] = []
    comparisons: list[Comparison] = []
    for case in cases:
        of_passage = case.heading, case.passage
        if of_passage not in read:
            read[of_passage] = reader(*of_passage)
        claim, passage = reader("", case.claim), read[of_passage]
        if claim.words and passage.words:
            alignment = Alignment(claim, passage)
            taken.append(case)
            features.append(alignment.features())
            comparisons.append(alignment.comparison())
    return taken, np.array(features), comparisons


def weights_of(cases: Sequence[Case]) -> Float:
    """One on average; each source counts alike but for _WEIGHTS, and its true and false claims do."""
    sources = [PUBLIC if is_public(case) else ACROSS if is_across(case) else source_of(case) for case in cases]
    groups = list(zip(sources, (case.is_true for case in cases), strict=True))
    counts = {group: groups.count(group) for group in set(groups)}
    weights = np.array([_WEIGHTS.get(group[0], 1.0) / counts[group] for group in groups])
    return np.asarray(weights / weights.mean())


def fit_networks(
    cases: Sequence[Case], comparisons: Sequence[Comparison], weights: Float
) -> tuple[list[dict[str, Any]], Float]:
    """The networks, and what is said of each case, [cases, 3]: by those that have not seen it."""
    some = comparisons[:: len(comparisons) // 3000 + 1]
    components = principal_components(np.concatenate([each.found for each in some]))
    halves = np.array([-1 if is_public(case) else part_of(case.group, "network", _HALVES) for case in cases])
    targets = [target_of(case) for case in cases]
    said = np.zeros((len(cases), 3))
    networks = []
    for half in range(_HALVES):
        own = np.flatnonzero(halves == half).tolist()
        examples = examples_of(
            [comparisons[i] for i in own], components, [targets[i] for i in own], weights[own].tolist()
        )
        fitted = fit_network(examples, components, half)
        networks.append({name: np.asarray(each, np.float16).astype(np.float32) for name, each in fitted.items()})
        for i in np.flatnonzero(halves != half).tolist():
            said[i] += logits(networks[-1], comparisons[i]) / (_HALVES if halves[i] < 0 else _HALVES - 1)
    return networks, said


def target_of(case: Case) -> int:
    """What the network learns of a case."""
    kind = case.kind.replace("changed ", "").replace("combined ", "")
    if case.is_true:
        return SUPPORTED
    if kind in _UNSURE:
        return FALSE
    return NOT_FOUND if kind in _NOT_FOUND else CONTRADICTED


def packed_networks(networks: Sequence[dict[str, Any]]) -> bytes:
    """The file of the networks: float16."""
    file = io.BytesIO()
    arrays = {
        f"{n}.{name}": np.asarray(each, np.float16) for n, own in enumerate(networks) for name, each in own.items()
    }
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def fit_trees(cases: Sequence[Case], features: Float, weights: Float) -> tuple[dict[str, Any], Float]:
    """The model, and the calibrated probability of each case by trees that have not seen its passage."""
    labels = np.array([float(case.is_true) for case in cases])
    folds = np.array([part_of(case.group, "trees", FOLDS) for case in cases])
    parts = [folds != fold for fold in range(FOLDS)] + [np.ones(len(cases), bool)]
    with ProcessPoolExecutor(2) as pool:
        fits = [pool.submit(fit, features[part], labels[part], weights[part], FEATURES, HOW) for part in parts]
        *by_fold, fitted = [each.result() for each in fits]
    left_out = np.zeros(len(cases))
    for fold, part_model in enumerate(by_fold):
        left_out[folds == fold] = tree_logits(part_model, features[folds == fold])
    slope, shift = platt(left_out, labels, weights)
    fitted["calibration"] = [round(slope, 4), round(shift, 4)]
    said = 1 / (1 + np.exp(-(slope * left_out + shift)))
    said[[says_own_action(case.claim) for case in cases]] = 0.0
    return fitted, said


def tree_logits(model: dict[str, Any], features: Float) -> Float:
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


def part_of(group: str, use: str, count: int) -> int:
    """In which of so many parts the passage of a group is, for this use."""
    return sha256(f"{use}{group}".encode()).digest()[1] % count


if __name__ == "__main__":
    sys.exit(main())
