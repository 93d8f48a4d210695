"""`python -m evals artefacts`: measures what agents make without a model: quizzes, charts, tables and time lines."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cli.client.gateway import Gateway
from cli.errors import CliError
from evals.artefacts.asking import DRAWINGS, Asked, ask_all
from evals.errors import EvaluationError
from evals.system import running_system
from evals.tables import Table

UNDER_THRESHOLD, FAILED = 1, 2
_DATA = Path("../shared/data")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when a threshold is missed, 2 when it could not be measured."""
    options = _parse(arguments)
    try:
        asked = asyncio.run(_measured(options.data, options.questions))
    except (EvaluationError, CliError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    sys.stdout.write(render(asked, with_wrong=options.wrong))
    missed = _share(_of(asked, "quiz")) < options.fail_under or _share(_of(asked, "visualisation")) < 1.0
    return UNDER_THRESHOLD if missed else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals artefacts", description="Measure what agents make.")
    parser.add_argument("--data", type=Path, default=_DATA, help="the folder with `docs` (default %(default)s)")
    parser.add_argument("--questions", type=int, default=12, metavar="N", help="of each quiz (default %(default)s)")
    parser.add_argument("--wrong", action="store_true", help="list what is wrong")
    parser.add_argument(
        "--fail-under", type=float, default=0.9, help="least share of right questions (default %(default)s)"
    )
    return parser.parse_args(arguments)


async def _measured(data: Path, questions: int) -> list[Asked]:
    if url := os.environ.get("GROUNDWORK_URL"):
        async with Gateway.open(url) as gateway:
            return [each async for each in ask_all(gateway, data, questions)]
    os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
    with running_system() as system:
        async with Gateway.open(system.url) as gateway:
            return [each async for each in ask_all(gateway, data, questions)]


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
