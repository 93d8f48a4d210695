"""What `groundwork evaluate` reads, and what it refuses."""

from pathlib import Path

import pytest

from cli.commands.documents.evaluate import GoldQuestion, read_questions
from cli.errors import UsageError


def test_questions_are_read_a_line_each(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text('{"question": "Wann?", "documents": ["a.pdf", "b.md"]}\n\n')
    assert read_questions(path) == [GoldQuestion("Wann?", ["a.pdf", "b.md"])]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no question"),
        ("hello", ":1 is not"),
        ('{"question": "?"}', ":1 is not"),
        ('{"question": "?", "documents": []}', "at least one"),
        ('{"question": " ", "documents": ["a"]}', "needs a question"),
        ('{"question": "?", "documents": "a"}', "at least one"),
    ],
)
def test_file_that_is_no_gold_set_is_refused_with_the_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_questions(path)


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_questions(tmp_path / "gone.jsonl")
