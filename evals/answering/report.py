"""The figures as Markdown."""

from collections.abc import Sequence

from evals.answering.grading import Figures, Graded, figures, risk_coverage
from evals.tables import Table

_NOT_MEASURED = "–"
_COLUMNS = ("questions", "n", "right", "answerable right", "gold cited", "refusal F1", "precision", "recall", "ECE")


def render(name: str, graded: Sequence[Graded], *, with_wrong: bool) -> str:
    """One set: its figures, in all and by kind of question, its risk–coverage curve, and the questions answered wrongly."""
    kinds = dict.fromkeys(each.asked.kind for each in graded)
    rows = [_row("all", figures(graded))]
    rows += [_row(kind, figures([each for each in graded if each.asked.kind == kind])) for kind in kinds]
    curve = [(f"{least:.2f}", f"{coverage:.2f}", f"{risk:.2f}") for least, coverage, risk in risk_coverage(graded)]
    parts = [f"## {name}", Table(_COLUMNS, rows).render()]
    if curve:
        parts.append(Table(("answer_confidence from", "coverage", "risk"), curve).render())
    if with_wrong:
        parts += [_wrong(each) for each in graded if not each.is_right]
    return "\n\n".join(parts) + "\n"


def _row(name: str, each: Figures) -> tuple[str, ...]:
    values = (
        each.right,
        each.answerable_right,
        each.gold_cited,
        each.refusal_f1,
        each.refusal_precision,
        each.refusal_recall,
        each.calibration_error,
    )
    return name, str(each.count), *(_NOT_MEASURED if value is None else f"{value:.3f}" for value in values)


def _wrong(each: Graded) -> str:
    said = " ".join(each.text.split())
    return f"- {each.asked.question_id} {each.asked.question} ({each.confidence:.2f})\n  {said[:300]}"
