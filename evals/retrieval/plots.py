"""The figures as pictures (SVG), drawn by matplotlib. Colour-blind-safe colours; no picture says what the tables do not."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evals.retrieval.report import HEADLINE
from evals.retrieval.scoring import Scores
from evals.significance import mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLAIN, _RERANKED, _DEFAULT = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito, 2008
Facets = Mapping[str, Mapping[str, frozenset[str]]]
Painter = Callable[["Axes"], None]


def draw(scores: Sequence[Scores], facets: Facets, folder: Path) -> list[str]:
    """Writes the pictures into the folder; their file names. Raises ImportError without the `eval` extra."""
    from matplotlib import use  # noqa: PLC0415 - an extra, and half a second

    use("Agg")
    names = [_save(folder, "modes.svg", (8, 1 + 0.45 * len(scores)), lambda axes: _bars(axes, scores))]
    names.append(_save(folder, "quality-and-latency.svg", (8, 4.5), lambda axes: _scatter(axes, scores)))
    for facet, values in facets.items():
        size = (2.5 + 0.9 * len(scores), 1.6 + 0.42 * len(values))
        names.append(_save(folder, f"by-{facet}.svg", size, partial(_heat_map, scores=scores, values=values)))
    return names


def _save(folder: Path, name: str, size: tuple[float, float], paint: Painter) -> str:
    from matplotlib import pyplot  # noqa: PLC0415 - an extra, and half a second

    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    try:
        paint(axes)
        figure.savefig(folder / name)
    finally:
        pyplot.close(figure)
    return name


def _bars(axes: "Axes", scores: Sequence[Scores]) -> None:
    means = [each.mean(HEADLINE) or 0.0 for each in scores]
    intervals = [mean_interval(each.values[HEADLINE]) for each in scores]
    below = [mean - low for mean, (low, _) in zip(means, intervals, strict=True)]
    above = [high - mean for mean, (_, high) in zip(means, intervals, strict=True)]
    axes.barh([each.mode for each in scores], means, xerr=[below, above], color=[_color(each) for each in scores])
    for row, mean in enumerate(means):
        axes.text(0.01, row, f"{mean:.3f}", va="center", color="white")
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"{HEADLINE}, with 95 % interval")


def _scatter(axes: "Axes", scores: Sequence[Scores]) -> None:
    for each in scores:
        x, y = each.latency_ms.median, each.mean(HEADLINE) or 0.0
        axes.scatter(x, y, color=_color(each))
        axes.annotate(each.mode, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.margins(x=0.2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.xaxis.set_minor_formatter("{x:.0f}")
    axes.set_xlabel("latency through HTTP, median, ms (logarithmic)")
    axes.set_ylabel(HEADLINE)
    axes.grid(visible=True, alpha=0.3)


def _heat_map(axes: "Axes", scores: Sequence[Scores], values: Mapping[str, frozenset[str]]) -> None:
    rows = [[each.mean(HEADLINE, ids) or 0.0 for each in scores] for ids in values.values()]
    axes.imshow(rows, vmin=0, vmax=1, cmap="viridis", aspect="auto")
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            axes.text(x, y, f"{value:.2f}", ha="center", va="center", color="black" if value > 0.6 else "white")
    axes.set_xticks(range(len(scores)), [each.mode for each in scores], rotation=30, ha="right")
    axes.set_yticks(range(len(values)), [f"{value} ({len(ids)})" for value, ids in values.items()])
    axes.set_title(HEADLINE)


def _color(scores: Scores) -> str:
    if scores.mode == "default":
        return _DEFAULT
    return _RERANKED if "rerank" in scores.mode else _PLAIN
