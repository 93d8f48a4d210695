"""The threat model in docs/security.md: each attack names a test that tries it, and the test is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def _lines() -> list[list[str]]:
    """The cells of each line of the table."""
    page = (ROOT / "docs/security.md").read_text()
    section = page.partition("## Threat model\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


def _has(path: str, name: str) -> bool:
    """Whether a file has the test, and it is not marked to be skipped."""
    file = ROOT / path
    tree = ast.parse(file.read_text()) if file.exists() else ast.Module([], [])
    found = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name
    ]
    return any(not any("skip" in ast.unparse(mark) for mark in each.decorator_list) for each in found)


def test_each_attack_names_a_test_that_is_there() -> None:
    lines = _lines()
    assert len(lines) > 30
    for attack, _, tests in lines:
        named = _TEST.findall(tests)
        assert named, f"no test is named against: {attack}"
        missing = [f"{path}::{name}" for path, name in named if not _has(path, name)]
        assert not missing, f"against {attack}: {missing}"
