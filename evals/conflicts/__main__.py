"""`python -m evals conflicts`: measures how often answers say that their sources disagree, where they do and where they do not."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.client.gateway import Gateway
from cli.errors import CliError
from evals.conflicts.asking import DISPUTED, UNDISPUTED, Answered, ask_all
from evals.conflicts.questions import DEVELOPED_ON, HELD_OUT, DisputedQuestion, load_questions
from evals.errors import EvaluationError
from evals.system import running_system
from evals.tables import Table

UNDER_THRESHOLD, FAILED = 1, 2
_DATA = Path("../shared/data")


@dataclass(frozen=True)
class Shares:
    """Of the questions of one half."""

    questions: int
    said: float
    """Of disputed questions, those whose answer says so."""
    wrongly_said: float
    """Of undisputed ones, those whose answer says so all the same."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when the half that is held out misses a threshold, 2 when it could not be measured."""
    options = _parse(arguments)
    try:
        questions = load_questions(options.data)
        if options.questions:
            questions = questions[: options.questions]
        answered = asyncio.run(_measured(questions))
    except (EvaluationError, CliError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    sys.stdout.write(render(answered, with_wrong=options.wrong))
    held_out = shares(answered, HELD_OUT)
    missed = held_out.said < options.fail_under or held_out.wrongly_said > options.fail_over
    return UNDER_THRESHOLD if missed else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evals conflicts", description="Measure conflicts that answers say."
    )
    parser.add_argument("--data", type=Path, default=_DATA, help="the folder with the sets (default %(default)s)")
    parser.add_argument("--questions", type=int, default=0, metavar="N", help="only the first N questions")
    parser.add_argument("--wrong", action="store_true", help="list the answers that are wrong")
    parser.add_argument(
        "--fail-under", type=float, default=0.8, help="least share of disputed questions (default %(default)s)"
    )
    parser.add_argument(
        "--fail-over", type=float, default=0.05, help="greatest share of undisputed questions (default %(default)s)"
    )
    return parser.parse_args(arguments)


async def _measured(questions: Sequence[DisputedQuestion]) -> list[Answered]:
    if url := os.environ.get("GROUNDWORK_URL"):
        async with Gateway.open(url) as gateway:
            return await ask_all(gateway, questions)
    os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
    with running_system() as system:
        async with Gateway.open(system.url) as gateway:
            return await ask_all(gateway, questions)


def shares(answered: Sequence[Answered], half: str) -> Shares:
    """Of the answers to the questions of a half."""
    own = [each for each in answered if each.question.half == half]
    said, wrongly = (
        [each.says_conflict for each in own if each.sources == sources] for sources in (DISPUTED, UNDISPUTED)
    )
    return Shares(len(said), _share(said), _share(wrongly))


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def render(answered: Sequence[Answered], *, with_wrong: bool = False) -> str:
    """The report."""
    rows = []
    for half in (DEVELOPED_ON, HELD_OUT):
        found = shares(answered, half)
        rows.append((half, f"{found.questions}", f"{found.said:.3f}", f"{found.wrongly_said:.3f}"))
    columns = ("questions", "number", "conflict said where there is one", "said where there is none")
    parts = ["# Conflicts\n", Table(columns, rows).render()]
    if with_wrong:
        parts += ["", *(_line(each) for each in answered if each.says_conflict != (each.sources == DISPUTED))]
    return "\n".join([*parts, ""])


def _line(answered: Answered) -> str:
    text = " ".join(answered.answer["answer"].split())
    return f"* {answered.sources}, {answered.question.half}: {answered.question.text} → {text}"


if __name__ == "__main__":
    sys.exit(main())
