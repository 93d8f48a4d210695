"""Makes services/reranker/judging/rules.json: how often a claim is true against which a rule speaks, and what tells why a claim is
false, on the claims of scripts/judge/written.

A network that was fitted on a passage says nothing of it here. Why a claim is false is told by two logistic regressions: it is
contradicted, or true in part.

    python -m scripts.judge.rules
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scripts.boosting import Float
from scripts.judge.cases import Case, written_cases
from scripts.judge.fit import part_of, target_of
from scripts.judge.network import CONTRADICTED, FALSE
from scripts.judge.reading import Reader
from services.reranker.adapters.cpu_model import load
from services.reranker.judging.features import ALIGNMENT, Alignment, network_features
from services.reranker.judging.network import logits
from services.reranker.judging.reasons import REASONS, RULES_FILE, signals
from services.reranker.judging.rules.table import RULES, rules_against
from services.reranker.judging.rules.word_for_word import stands_word_for_word
from services.reranker.judging.verdicts import networks
from services.reranker.model_files import E5_SMALL_4BIT
from services.reranker.settings import RerankerSettings

_PARTLY = {"invented_cause", "invented_detail"}
_WRONG_RULE = 1 / 3
"""From this share of true claims on a rule has no say."""
_L2 = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path(".models"), help="folder with the model files")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "groundwork-judge-vectors.sqlite",
        help="file that keeps the vectors of texts between two fits (default %(default)s)",
    )
    options = parser.parse_args()
    settings = RerankerSettings(models_dir=options.models, auth_public_keys="nobody calls")
    reader = Reader(load(settings, E5_SMALL_4BIT), options.cache)
    cases = written_cases()
    reader.read_all([("", case.claim) for case in cases] + [(case.heading, case.passage) for case in cases])
    fired, seen, word_for_word = _read(cases, reader)
    made: dict[str, Any] = {"ceilings": ceilings(cases, fired), "word_for_word": share_of_true(word_for_word)}
    made |= reasons(cases, seen)
    RULES_FILE.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
    for rule in RULES:
        against = [case.is_true for case, names in zip(cases, fired, strict=True) if rule.name in names]
        sys.stdout.write(f"{rule.name}: against {against.count(0)} false and {against.count(1)} true claims\n")
    sys.stdout.write(f"word for word: {word_for_word.count(0)} false and {word_for_word.count(1)} true claims\n")
    return 0


def _read(cases: Sequence[Case], reader: Reader) -> tuple[list[list[str]], Float, list[int]]:
    """The rules against each case; what the reasons are told by; and of the cases that the passage says word for word, whether they
    are true."""
    fired: list[list[str]] = []
    word_for_word: list[int] = []
    seen: list[list[float]] = []
    for case in cases:
        alignment = Alignment(reader("", case.claim), reader(case.heading, case.passage))
        unseen = networks()[1 - part_of(case.group, "network", len(networks()))]
        said = logits(unseen, alignment.comparison())
        fired.append([rule.name for rule in rules_against(alignment)])
        seen.append(signals(dict(zip(ALIGNMENT, alignment.features(), strict=True)), network_features(said)))
        if stands_word_for_word(alignment):
            word_for_word.append(case.is_true)
    return fired, np.array(seen), word_for_word


def ceilings(cases: Sequence[Case], fired: Sequence[Sequence[str]]) -> dict[str, float]:
    """By rule: which share is true of the claims that it speaks against. A rule that is wrong too often has no say."""
    found: dict[str, float] = {}
    for rule in RULES:
        against = [case.is_true for case, names in zip(cases, fired, strict=True) if rule.name in names]
        share = share_of_true(against)
        found[rule.name] = share if share < _WRONG_RULE else 1.0
    return found


def share_of_true(cases: Sequence[int]) -> float:
    """Of some claims, as one true and one false claim more would leave it: of few claims not much is known."""
    return round((sum(cases) + 1) / (len(cases) + 2), 3)


def reasons(cases: Sequence[Case], seen: Float) -> dict[str, list[float]]:
    """By reason: the weights of the signals, and the shift."""
    known = np.array([not case.is_true and target_of(case) != FALSE for case in cases])
    own = [case for case, is_known in zip(cases, known, strict=True) if is_known]
    labels = {
        REASONS[0]: [target_of(case) == CONTRADICTED for case in own],
        REASONS[1]: [case.kind in _PARTLY for case in own],
    }
    return {name: _regression(seen[known], np.array(flags, float)) for name, flags in labels.items()}


def _regression(inputs: Float, labels: Float) -> list[float]:
    """Logistic, by Newton's method, with a small penalty on the weights."""
    rows = np.hstack([inputs, np.ones((len(inputs), 1))])
    penalty = np.diag([_L2] * inputs.shape[1] + [0.0])
    line = np.zeros(rows.shape[1])
    for _ in range(30):
        said = 1 / (1 + np.exp(-rows @ line))
        slopes = rows.T @ (said - labels) + penalty @ line
        curvature = (rows * (said * (1 - said))[:, None]).T @ rows + penalty
        line -= np.linalg.solve(curvature, slopes)
    return [round(float(each), 4) for each in line]


if __name__ == "__main__":
    sys.exit(main())
