"""Runs a suite (`test` or `test-system`), then each test that failed once more and alone. A test that passes then is unsteady.

Unsteady tests are listed at the end. Up to three of them do not fail the run: each is a bug to mend in the next commit.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

MOST_UNSTEADY = 3
_FOLDERS = {"test": "TEST_FOLDERS", "test-system": "TEST_SYSTEM_FOLDERS"}
"""The Makefile's variable that names what a suite runs."""
Make = Callable[[Sequence[str]], int]
"""Runs make with these arguments and returns its exit code."""


def run_steadily(make: Make, suite: str, cache: Path) -> int:
    """Runs the suite of this name by `make`, which leaves the names of failed tests in the folder `cache`; returns the exit code
    of it all."""
    code = make([suite, f"ARGS=--override-ini=cache_dir={cache} --durations=30"])
    failed = _failed(cache)
    if code == 0 or not failed:
        return code
    if len(failed) > MOST_UNSTEADY:
        print(
            f"{len(failed)} tests of `make {suite}` failed, too many to be run again: {MOST_UNSTEADY} may be unsteady"
        )
        return code
    broken = [test for test in failed if make([suite, *_alone(suite, test)])]
    _list("Failed twice", broken)
    _list(
        "Unsteady (failed, then passed alone): find what they wait for", [each for each in failed if each not in broken]
    )
    return code if broken else 0


def _failed(cache: Path) -> list[str]:
    names = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(names.read_text("utf-8"))) if names.exists() else []


def _alone(suite: str, test: str) -> list[str]:
    """Make hands the name to a shell, and takes a dollar for a variable of its own."""
    return [f"{_FOLDERS[suite]}={shlex.quote(test).replace('$', '$$')}", "TEST_PROCESSES=0"]


def _list(title: str, tests: Sequence[str]) -> None:
    if tests:
        print("\n".join([f"{title}:", *(f"  {test}" for test in tests)]))


def main() -> None:
    """Runs the suite that is named, in this folder."""
    with tempfile.TemporaryDirectory() as cache:
        sys.exit(
            run_steadily(
                lambda arguments: subprocess.run(["make", *arguments], check=False).returncode, sys.argv[1], Path(cache)
            )
        )


if __name__ == "__main__":
    main()
