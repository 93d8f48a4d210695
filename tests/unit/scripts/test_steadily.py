"""The second try of tests: with a real make, and real tests that pass at their first, their second or no try."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.steadily import run_steadily

MAKEFILE = f"""
TEST_FOLDERS := test_all.py
TEST_SYSTEM_FOLDERS := test_all.py
test:
\t{sys.executable} -m pytest -q -p no:xdist $(TEST_FOLDERS) $(ARGS)
test-system:
\t{sys.executable} -m pytest -q -p no:xdist $(TEST_SYSTEM_FOLDERS) $(ARGS)
"""
TESTS = """
import pathlib, pytest

@pytest.mark.parametrize("name", {names!r})
def test_it(name):
    tries = pathlib.Path(__file__).with_name(name)
    is_second = tries.exists()
    tries.touch()
    assert name.startswith("good") or (name.startswith("unsteady") and is_second)
"""


@pytest.mark.parametrize("suite", ["test", "test-system"])
@pytest.mark.parametrize(
    ("names", "code", "said", "tries"),
    [
        (["good"], 0, [], 1),
        (["good", "unsteady of $each 'kind'"], 0, ["Unsteady", "test_all.py::test_it[unsteady of $each 'kind']"], 2),
        (["bad", "unsteady"], 2, ["Failed twice", "[bad]", "Unsteady", "[unsteady]"], 3),
        ([f"unsteady {number}" for number in range(4)], 2, ["4 tests"], 1),
    ],
    ids=["all pass", "one is unsteady", "one fails twice", "too many are unsteady"],
)
def test_what_fails_is_tried_once_more_alone(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    suite: str,
    names: list[str],
    code: int,
    said: list[str],
    tries: int,
) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "test_all.py").write_text(TESTS.format(names=names))
    runs = []

    def make(arguments: Sequence[str]) -> int:
        runs.append(arguments)
        return subprocess.run(["make", *arguments], cwd=tmp_path, check=False, capture_output=True).returncode

    assert run_steadily(make, suite, tmp_path / "cache") == code
    printed = capsys.readouterr().out
    assert [words for words in said if words not in printed] == []
    assert len(runs) == tries
    if not said:
        assert printed == ""


def test_a_suite_that_does_not_even_start_fails(tmp_path: Path) -> None:
    assert run_steadily(lambda _: 2, "test", tmp_path) == 2
