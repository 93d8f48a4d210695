"""`python -m evals reading`, `cases` and `ocr`: what reading does to files. `make eval ARGS=reading`, `ARGS=cases`, `ARGS=ocr`."""

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from evals.errors import EvaluationError
from evals.reading.cases import OTHER_ROOMS, run_cases
from evals.reading.encodings import encoding_tables
from evals.reading.golden import LEAST, golden_table, means, measured_documents, measured_pages
from evals.reading.ocr import error_table
from evals.reading.questions import run_questions

NOT_AS_EXPECTED, FAILED = 1, 2
_CASES = Path("../shared/data/cases")
_DOCUMENTS = Path("../shared/data/docs")


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0, 1 when something is not as expected, 2 when it could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m evals", description="Measures how files are read.")
    parser.add_argument(
        "what",
        choices=("reading", "cases", "ocr"),
        help="golden pages and encodings, cases that went wrong, or text recognition by script",
    )
    parser.add_argument("--folder", type=Path, default=_CASES, help=f"where the cases lie; default: {_CASES}")
    parser.add_argument(
        "--documents", type=Path, default=_DOCUMENTS, help=f"public documents with golden texts; default: {_DOCUMENTS}"
    )
    parser.add_argument("--files-only", action="store_true", help="only cases of reading, without starting a system")
    options = parser.parse_args(arguments)
    if options.what == "ocr":
        for line in error_table():
            _print(line)
        return 0
    return (
        _measure_reading(options.documents)
        if options.what == "reading"
        else _run_cases(options.folder, files_only=options.files_only)
    )


def _measure_reading(documents: Path) -> int:
    pages = list(measured_pages())
    _print(*golden_table(pages), "")
    if documents.is_dir():
        _print(*golden_table(list(measured_documents(documents))), "")
    else:
        _print(f"there is no folder {documents}: public documents are not measured", "")
    _print(*encoding_tables())
    low = [name for name, value in means(pages).items() if value < LEAST[name]]
    for name in low:
        _print(f"FAILED: {name} is below {LEAST[name]}")
    return NOT_AS_EXPECTED if low else 0


def _run_cases(folder: Path, *, files_only: bool) -> int:
    if not folder.is_dir():
        _print(f"there is no folder {folder}; name the one with the cases: ARGS='cases --folder DIR'")
        return FAILED
    try:
        failed = _failed(folder, files_only=files_only)
    except EvaluationError as error:
        _print(f"the cases of other rooms were not tried: {error}")
        return FAILED
    if files_only:
        _print(*(f"skipped: {name}: it needs a running system" for name in OTHER_ROOMS))
    return NOT_AS_EXPECTED if failed else 0


def _failed(folder: Path, *, files_only: bool) -> int:
    """How many cases are not as expected. Raises EvaluationError."""
    failed = 0
    for name, failures in itertools.chain(run_cases(folder), () if files_only else run_questions(folder)):
        _print(*(f"FAILED: {failure}" for failure in failures) if failures else (f"as expected: {name}",))
        failed += bool(failures)
    return failed


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
