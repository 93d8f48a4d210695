"""`python -m evals artefacts`: measures what agents make without a model: quizzes, drawings, summaries of long documents and fields
of invoices and tables; and how often the rules choose the agent that a message calls for."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.client.gateway import Gateway
from cli.errors import CliError
from evals.artefacts.asking import DRAWINGS, Asked, ask_all
from evals.artefacts.reading import Extracted, Summarised, extractions, summaries
from evals.artefacts.routing import render_routed, route_all
from evals.errors import EvaluationError
from evals.system import running_system
from evals.tables import Table

UNDER_THRESHOLD, FAILED = 1, 2
_PARTS_RIGHT = 1.0
_DATA = Path("../shared/data")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when a threshold is missed, 2 when it could not be measured."""
    options = _parse(arguments)
    if options.only in ("", "routing"):
        sys.stdout.write(render_routed(route_all(), with_wrong=options.wrong))
    if options.only == "routing":
        return 0
    try:
        found = asyncio.run(_measured(options.data, options.questions, options.only))
    except (EvaluationError, CliError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    if found.asked:
        sys.stdout.write(render(found.asked, with_wrong=options.wrong))
    if found.summarised:
        sys.stdout.write(render_read(found.summarised, found.extracted))
    return UNDER_THRESHOLD if found.misses(options.fail_under) else 0


@dataclass(frozen=True)
class Measured:
    """All figures."""

    asked: Sequence[Asked] = ()
    summarised: Sequence[Summarised] = ()
    extracted: Sequence[Extracted] = ()

    def misses(self, fail_under: float) -> bool:
        """Whether a threshold is missed."""
        is_made = not self.asked or (
            _share(_of(self.asked, "quiz")) >= fail_under and _share(_of(self.asked, "visualisation")) >= _PARTS_RIGHT
        )
        return not is_made or any(each.share < fail_under for each in self.summarised)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals artefacts", description="Measure what agents make.")
    parser.add_argument("--data", type=Path, default=_DATA, help="the folder with `docs` (default %(default)s)")
    parser.add_argument("--questions", type=int, default=12, metavar="N", help="of each quiz (default %(default)s)")
    parser.add_argument("--wrong", action="store_true", help="list what is wrong")
    parser.add_argument(
        "--only",
        choices=("routing", "making", "reading"),
        default="",
        help="the choice of agents, quizzes and drawings, or summaries and extraction",
    )
    parser.add_argument(
        "--fail-under", type=float, default=0.9, help="least share of right questions (default %(default)s)"
    )
    return parser.parse_args(arguments)


async def _measured(data: Path, questions: int, only: str) -> Measured:
    if url := os.environ.get("GROUNDWORK_URL"):
        async with Gateway.open(url) as gateway:
            return await _of_system(gateway, data, questions, only)
    os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
    with running_system() as system:
        async with Gateway.open(system.url) as gateway:
            return await _of_system(gateway, data, questions, only)


async def _of_system(gateway: Gateway, data: Path, questions: int, only: str) -> Measured:
    asked = [each async for each in ask_all(gateway, data, questions)] if only != "reading" else []
    if only == "making":
        return Measured(asked)
    return Measured(asked, await summaries(gateway), await extractions(gateway, data))


def render(asked: Sequence[Asked], *, with_wrong: bool = False) -> str:
    """The figures as a table, and what is wrong where that is wanted."""
    rows = [_row("quiz", _of(asked, "quiz"))]
    rows += [_row(message, [each for each in asked if each.message == message]) for message in DRAWINGS]
    table = Table(("asked for", "requests", "made", "as an outline", "parts", "right", "share"), rows).render()
    wrong = [
        f"{each.document}, {each.message}: {part.what}: {part.problem}"
        for each in asked
        for part in each.parts
        if part.problem
    ]
    return "\n".join([table, *(wrong if with_wrong else ()), ""])


def render_read(summarised: Sequence[Summarised], extracted: Sequence[Extracted]) -> str:
    """The figures of agents that read whole documents, as two tables."""
    heads = ("summary of", "indexed in s", "summarised in s", "parts", "cited", "share", "sentences")
    rows = [
        (
            each.document,
            f"{each.indexed_s:.1f}",
            f"{each.seconds:.1f}",
            str(each.parts),
            str(each.cited),
            f"{each.share:.3f}",
            str(each.sentences),
        )
        for each in summarised
    ]
    fields = ("fields of", "values", "found", "right", "precision", "recall", "cited word for word")
    values = [
        (
            each.what,
            str(each.expected),
            str(each.found),
            str(each.right),
            f"{each.precision:.3f}",
            f"{each.recall:.3f}",
            str(each.cited),
        )
        for each in extracted
    ]
    return "\n".join([Table(heads, rows).render(), Table(fields, values).render(), ""])


def _row(name: str, asked: Sequence[Asked]) -> tuple[str, ...]:
    parts = [part for each in asked for part in each.parts]
    right = sum(not part.problem for part in parts)
    outlines = sum(each.kind == "outline" for each in asked)
    made = sum(bool(each.kind) for each in asked)
    return name, str(len(asked)), str(made), str(outlines), str(len(parts)), str(right), f"{_share(asked):.3f}"


def _of(asked: Sequence[Asked], agent: str) -> list[Asked]:
    return [each for each in asked if each.agent == agent]


def _share(asked: Sequence[Asked]) -> float:
    """Of the parts, those that are right; 0 where there are none."""
    parts = [part for each in asked for part in each.parts]
    return sum(not part.problem for part in parts) / len(parts) if parts else 0.0


if __name__ == "__main__":
    sys.exit(main())
