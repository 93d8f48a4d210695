"""Makes services/orchestrator/without_model/answerability.json from cases with similarities and answerability_by_words.json
from those without, and says how good they are on cases left out.

A case is one JSON line, made by scripts/answerability_cases.py: {"half": "fit" or "test", "kind": …, "signals": [a number or null,
in the order of signals.FEATURES], "right": whether the selected text holds the answer}. The model is JSON:
{"features": names, "bias": logit,
"trees": […]}; a tree is a number, or [feature, threshold, below or equal, above, whether unknown goes below].

    python -m scripts.fit_answerability cases.jsonl
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.boosting import Boosting, Float, fit
from services.orchestrator.without_model.answerability import (
    MODEL_FILE,
    MODEL_FILE_BY_WORDS,
    SEMANTIC,
    probability_of,
)
from services.orchestrator.without_model.signals import FEATURES

SHARES = {
    "answerable": 0.32,
    "adversarial": 0.2,
    "off-topic": 0.1,
    "answerable, other language": 0.08,
    "off-topic, other language": 0.04,
    "answerable, across languages": 0.05,
    "off-topic, across languages": 0.03,
    "row": 0.12,
    "absent row": 0.06,
}
"""What questions are taken to be: a probability is true for such a mixture only. Three in five have an answer."""


@dataclass(frozen=True)
class Cases:
    """Arrays over cases."""

    kinds: Sequence[str]
    signals: Float
    right: Float

    @property
    def weights(self) -> Float:
        """One on average; each kind has its share."""
        counts = Counter(self.kinds)
        weights = np.array([SHARES[kind] / counts[kind] for kind in self.kinds])
        return np.asarray(weights / weights.mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=Path, nargs="+", help="files of cases")
    parser.add_argument(
        "--more-trees",
        type=int,
        default=0,
        help="go on from the models that are there with so many trees (default: fit anew)",
    )
    options = parser.parse_args()
    rows = [json.loads(line) for path in options.cases for line in path.read_text("utf-8").splitlines()]
    for output in (MODEL_FILE, MODEL_FILE_BY_WORDS):
        own = [row for row in rows if (row["signals"][SEMANTIC] is None) is (output is MODEL_FILE_BY_WORDS)]
        if own:
            sys.stdout.write(f"{output.name}\n{_fit(own, output, options.more_trees)}")
    return 0


def _fit(rows: Sequence[dict[str, Any]], output: Path, more_trees: int) -> str:
    """Writes the model; returns the report, of a model that goes on from another with that one's before it."""
    fitted_on, left_out = (_cases([row for row in rows if row["half"] == half]) for half in ("fit", "test"))
    start, how, before = None, Boosting(), ""
    if more_trees:
        known = json.loads(output.read_text("utf-8"))
        said = np.clip([probability_of(known, row) for row in fitted_on.signals], 1e-9, 1 - 1e-9)
        start, how = (known, np.log(said / (1 - said))), Boosting(trees=more_trees)
        before = f"before\n{_report(known, left_out)}after\n"
    model = fit(fitted_on.signals, fitted_on.right, fitted_on.weights, FEATURES, how, start)
    output.write_text(json.dumps(model, separators=(",", ":")).replace("],[", "],\n[") + "\n", "utf-8")
    return before + _report(model, left_out)


def _cases(rows: Sequence[dict[str, Any]]) -> Cases:
    signals = [[np.nan if value is None else value for value in row["signals"]] for row in rows]
    right = [float(row["right"]) for row in rows]
    return Cases([row["kind"] for row in rows], np.array(signals, dtype=float), np.array(right))


def _report(model: dict[str, Any], cases: Cases) -> str:
    """Of cases left out: per kind how many are right, believed, and answered at some thresholds; and the reliability."""
    said = np.array([probability_of(model, row) for row in cases.signals])
    kinds = np.array(cases.kinds)
    lines = ["kind | cases | right | mean probability | answered at 0.3 | at 0.5"]
    for kind in SHARES:
        own = kinds == kind
        if own.any():
            figures = (cases.right[own].mean(), said[own].mean(), (said[own] >= 0.3).mean(), (said[own] >= 0.5).mean())
            lines.append(f"{kind} | {own.sum()} | " + " | ".join(f"{each:.3f}" for each in figures))
    weights, error = cases.weights / cases.weights.sum(), 0.0
    lines.append("probability from | cases | said | true")
    for low in np.arange(0, 1, 0.1):
        own = (said >= low) & (said < low + 0.1)
        if own.any():
            told, true = np.average(said[own], weights=weights[own]), np.average(cases.right[own], weights=weights[own])
            error += float(weights[own].sum() * abs(told - true))
            lines.append(f"{low:.1f} | {own.sum()} | {told:.3f} | {true:.3f}")
    return "\n".join([*lines, f"expected calibration error {error:.3f}", ""])


if __name__ == "__main__":
    sys.exit(main())
