"""`python -m evals.answering`: measures answers without a language model. `make eval` runs it over this repository's documents."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cli.client.gateway import Gateway
from cli.errors import CliError
from evals.answering.asking import ask_all
from evals.answering.grading import figures
from evals.answering.questions import QuestionSet, load_questions, load_squad_half
from evals.answering.report import render
from evals.errors import EvaluationError
from evals.system import running_system

_QUESTIONS = Path(__file__).parents[1] / "data" / "answers"
_REPOSITORY = Path(__file__).parents[2]
UNDER_THRESHOLD, FAILED = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when too few answers are right, 2 when it could not be measured."""
    options = _parse(arguments)
    try:
        sets = _sets(options)
        return asyncio.run(_measure_all(sets, options))
    except (EvaluationError, CliError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.answering", description="Measure extractive answers.")
    parser.add_argument(
        "--squad", type=Path, help="a SQuAD 2.0 file: the half of its articles that nothing was fitted on"
    )
    parser.add_argument("--squad-questions", type=int, default=300, help="of each sort at most (default %(default)s)")
    parser.add_argument("--documents", type=Path, help="the folder with the real files that documents.jsonl asks about")
    parser.add_argument("--wrong", action="store_true", help="list the questions that were not answered rightly")
    parser.add_argument("--fail-under", type=float, default=0.0, help="least share of right answers in each set")
    return parser.parse_args(arguments)


def _sets(options: argparse.Namespace) -> list[QuestionSet]:
    own = {path.relative_to(_REPOSITORY).as_posix(): path for path in _REPOSITORY.glob("docs/*.md")}
    own["README.md"] = _REPOSITORY / "README.md"
    written = {path.name: path for path in (_QUESTIONS / "written").iterdir()}
    sets = [
        load_questions("README and docs", _QUESTIONS / "repository.jsonl", own),
        load_questions("written", _QUESTIONS / "written.jsonl", written),
    ]
    if options.documents:
        questions = _QUESTIONS / "documents.jsonl"
        folder: Path = options.documents
        names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        asked = load_questions("real documents", questions, {name: folder / name for name in names})
        used = {each.file for each in asked.questions if each.file}
        sets.append(QuestionSet(asked.name, {name: folder / name for name in sorted(used)}, {}, asked.questions))
    if options.squad:
        sets.append(load_squad_half(options.squad, options.squad_questions))
    return sets


async def _measure_all(sets: Sequence[QuestionSet], options: argparse.Namespace) -> int:
    if url := os.environ.get("GROUNDWORK_URL"):
        return await _measured(url, sets, options)
    os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
    with running_system() as system:
        return await _measured(system.url, sets, options)


async def _measured(url: str, sets: Sequence[QuestionSet], options: argparse.Namespace) -> int:
    missed = False
    async with Gateway.open(url) as gateway:
        for each in sets:
            graded = await ask_all(gateway, each)
            sys.stdout.write(render(each.name, graded, with_wrong=options.wrong) + "\n")
            missed |= (figures(graded).right or 0.0) < options.fail_under
    return UNDER_THRESHOLD if missed else 0


if __name__ == "__main__":
    sys.exit(main())
