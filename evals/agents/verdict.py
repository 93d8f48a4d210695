"""Go or no-go: whether `agent` is good enough to be used instead of `qa`, by bounds in a file."""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from evals.agents.answers import Grade
from evals.significance import compare
from evals.tables import Table


@dataclass(frozen=True)
class AnswerFigures:
    """Of one way to serve questions with known answers. None stands for what was not there to measure."""

    questions: int
    correct: float
    refusal_precision: float | None
    """Share of refusals that are right."""
    refusal_recall: float | None
    """Share of the questions without an answer that are refused."""
    conflict_found: float | None
    """Share of the disputed questions whose answer says that sources disagree."""
    evidence_recall: float | None
    """Mean share of the known messages in the evidence."""
    cited_precision: float | None
    cited_recall: float | None
    supported: float | None
    """Share of answers whose claims are all carried."""
    citation_coverage: float | None
    """Mean share of the claims that have a citation."""
    p50_s: float
    p95_s: float
    mean_s: float
    tokens: float
    cost_usd: float
    calls_in_time: float | None
    """Share of calls of tools that ended well within their time."""
    judged_correct: float | None = None
    """Share of answers that the grading model calls right."""


_BY_KIND = (
    "questions", "correct", "judged_correct", "refusal_precision", "refusal_recall", "conflict_found", "cited_precision",
    "cited_recall", "citation_coverage", "supported", "p50_s", "p95_s", "tokens", "cost_usd",
)  # fmt: skip
"""Figures that are shown for each kind of question, too."""


@dataclass(frozen=True)
class Bounds:
    """What the agent must reach; the defaults are those of the issue."""

    least_correct: float = 0.7
    least_supported: float = 0.8
    most_latency_ratio: float = 2.0
    least_calls_in_time: float = 0.9
    most_memory_growth: float = 0.2
    most_p_value: float = 0.05
    """Below it a loss against `qa` is no luck."""


def read_bounds(path: Path) -> Bounds:
    """The bounds under `answers` in the file; what it leaves out is the default."""
    given = json.loads(path.read_text("utf-8")).get("answers", {})
    return Bounds(**{each.name: given[each.name] for each in fields(Bounds) if each.name in given})


def answer_figures(grades: Sequence[Grade]) -> AnswerFigures:
    """The figures of at least one question."""
    outcomes = [each.outcome for each in grades]
    seconds = sorted(each.seconds for each in outcomes)
    refused = [each for each in grades if each.has_refused]
    calls = [call for each in outcomes for call in each.calls_ok]
    return AnswerFigures(
        len(grades),
        statistics.fmean(each.is_right for each in grades),
        _share(refused, lambda each: each.question.is_denial),
        _share([each for each in grades if each.question.is_denial], lambda each: each.has_refused),
        _share([each for each in grades if each.question.is_disputed], lambda each: each.outcome.says_conflict),
        _mean(each.recall for each in grades),
        _mean(each.cited_precision for each in grades),
        _mean(each.cited_recall for each in grades),
        _share([each for each in grades if each.outcome.status != "refused"], lambda each: each.outcome.is_supported),
        _mean(each.citation_coverage for each in outcomes),
        statistics.median(seconds),
        seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))],
        statistics.fmean(seconds),
        statistics.fmean(each.tokens for each in outcomes),
        statistics.fmean(each.cost_usd for each in outcomes),
        statistics.fmean(calls) if calls else None,
        _mean(each.judged for each in grades),
    )


def verdict(
    name: str, own: Sequence[Grade], qa: Sequence[Grade], memory_growth: float | None, bounds: Bounds
) -> list[str]:
    """Why the agent, served by `name`, is not to be used; empty for go. Both lists are of the same questions in the same order."""
    ours, theirs = answer_figures(own), answer_figures(qa)
    ratio = ours.mean_s / theirs.mean_s
    worse = [sentence for kind in _kinds(own) for sentence in _worse(name, kind, own, qa, bounds)]
    checks = (
        (ours.correct < bounds.least_correct, f"{ours.correct:.2f} are correct; the least is {bounds.least_correct}"),
        (
            ours.supported is not None and ours.supported < bounds.least_supported,
            f"{ours.supported or 0:.2f} of the answers are fully supported; the least is {bounds.least_supported}",
        ),
        (
            ratio > bounds.most_latency_ratio,
            f"its mean time is {ratio:.2f} times that of qa; the most is {bounds.most_latency_ratio}",
        ),
        (
            ours.calls_in_time is not None and ours.calls_in_time < bounds.least_calls_in_time,
            f"{ours.calls_in_time or 0:.2f} of the calls of tools end well; the least is {bounds.least_calls_in_time}",
        ),
        (
            memory_growth is not None and memory_growth > bounds.most_memory_growth,
            f"memory grows by {memory_growth or 0:.2f}; the most is {bounds.most_memory_growth}",
        ),
    )
    return [*(f"{name}: {sentence}" for is_missed, sentence in checks if is_missed), *worse]


def _worse(name: str, kind: str, own: Sequence[Grade], qa: Sequence[Grade], bounds: Bounds) -> list[str]:
    """That the agent has fewer right answers than qa on questions of the kind, and not by luck."""
    pairs = [
        (mine.is_right, other.is_right) for mine, other in zip(own, qa, strict=True) if kind in ("", mine.question.kind)
    ]
    found = compare([float(mine) for mine, _ in pairs], [float(other) for _, other in pairs])
    if found.difference >= 0 or found.p_value >= bounds.most_p_value:
        return []
    return [f"{name}: worse than qa on {kind or 'all'} questions by {-found.difference:.2f} (p {found.p_value:.3f})"]


def _kinds(grades: Sequence[Grade]) -> list[str]:
    """All questions together, and each kind."""
    return ["", *dict.fromkeys(each.question.kind for each in grades)]


def render_answers(by_served: Mapping[str, Sequence[Grade]]) -> str:
    """A table of the figures, one by kind and language, and a line a question."""
    named = {served: answer_figures(grades) for served, grades in by_served.items()}
    rows = [(each.name, *(_shown(getattr(one, each.name)) for one in named.values())) for each in fields(AnswerFigures)]
    figures = Table(("figure", *named), rows).render()
    groups: dict[str, dict[str, list[Grade]]] = {}
    for served, grades in by_served.items():
        for each in grades:
            for group in (each.question.kind, each.question.language):
                groups.setdefault(group, {}).setdefault(served, []).append(each)
    kinds = Table(
        ("by kind and language", "served", *_BY_KIND),
        [
            (group, served, *(_shown(getattr(of_group, name)) for name in _BY_KIND))
            for group, by in groups.items()
            for served, of_group in ((served, answer_figures(grades)) for served, grades in by.items())
        ],
    ).render()
    first = next(iter(by_served.values()))
    lines = Table(
        ("question", "kind", *named),
        [
            (one.question.text, one.question.kind, *(_word(grades[place]) for grades in by_served.values()))
            for place, one in enumerate(first)
        ],
    ).render()
    return f"{figures}\n\n{kinds}\n\n{lines}\n"


def _word(each: Grade) -> str:
    """Whether the answer is right, the share of the known messages in the evidence, and what it took."""
    said = "right" if each.is_right else "refused" if each.has_refused else "wrong"
    recall = "" if each.recall is None else f"{each.recall:.2f}, "
    return f"{said} ({recall}{each.outcome.seconds:.1f} s, {each.outcome.tokens} tokens)"


def _share(grades: Sequence[Grade], holds: Callable[[Grade], bool]) -> float | None:
    return statistics.fmean(holds(each) for each in grades) if grades else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.fmean(known) if known else None


def _shown(value: float | None) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
