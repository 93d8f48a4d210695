"""Each promise of durability, operations, security and the console names the tests that keep it, and these tests exist."""

import ast
import re
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGE = (DOCS / "promises.md").read_text("utf-8")
ROWS = [row for row in re.findall(r"^\| (.+?) \| (.+) \|$", PAGE, re.MULTILINE) if row != ("promise", "kept by")]


@cache
def _names_of(path: str) -> frozenset[str]:
    tree = ast.parse((REPOSITORY / "tests" / path).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_named_test_exists() -> None:
    named = [test for _, tests in ROWS for test in re.findall(r"`(\S+?\.py)::(test_\w+)`", tests)]
    assert len(named) > 300
    assert not [f"{path}::{name}" for path, name in named if name not in _names_of(path)]


def test_each_promise_has_a_test_or_says_that_it_has_none() -> None:
    assert not [promise for promise, tests in ROWS if "::test_" not in tests and "**Not tested" not in tests]


def test_each_page_that_promises_has_a_section() -> None:
    pages = [DOCS / "durability.md", DOCS / "security.md", DOCS / "console.md", *(DOCS / "operations").glob("*.md")]
    assert {page.relative_to(DOCS).as_posix() for page in pages} == set(
        re.findall(r"^## \[.+\]\((.+)\)$", PAGE, re.MULTILINE)
    )
