"""No test is left out of the suites: each folder of tests belongs to exactly one list in the Makefile."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_each_folder_of_tests_is_in_one_suite() -> None:
    lists = re.findall(r"^TEST_(?:[A-Z]+_)?FOLDERS := (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    listed = sorted(folder for each in lists for folder in each.split() if folder.count("/") == 1)
    tests = REPOSITORY / "tests"
    with_tests = {f"tests/{path.relative_to(tests).parts[0]}" for path in tests.rglob("test_*.py")}
    assert listed == sorted(with_tests)
