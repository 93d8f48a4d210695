"""What is uploaded says the same as the collection."""

from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from evals.datasets.files import as_markdown, as_text, file_name, write_files
from evals.datasets.models import Document


def seen_by_a_reader(markdown: str) -> list[str]:
    tokens = MarkdownIt().parse(markdown)
    return ["".join(child.content for child in token.children or ()) for token in tokens if token.type == "inline"]


@pytest.mark.parametrize(
    "text",
    [
        "p <0.05 and p<b and *not* _bold_ [1](x) `code` a & b &amp; c | d ~~e~~ \\ f",
        "# no heading",
        "1. no list",
        "- no list",
        "+ no list",
        "10) no list",
        "> no quotation",
        "=== no underline",
        "![no](picture)",
    ],
)
def test_markdown_shows_the_characters_of_the_text(text: str) -> None:
    assert seen_by_a_reader(as_markdown(Document("d", "T", text))) == ["T", text]


def test_markdown_title_is_one_line_and_no_markup() -> None:
    assert seen_by_a_reader(as_markdown(Document("d", "A *b*\n# c", "x"))) == ["A *b* # c", "x"]


def test_document_without_title_is_its_text() -> None:
    assert as_markdown(Document("d", "", "x")) == "x\n"
    assert as_text(Document("d", "", "x")) == "x\n"
    assert as_text(Document("d", "T", "x")) == "T\n\nx\n"


def test_files_are_named_by_the_id_whatever_is_in_it(tmp_path: Path) -> None:
    ids = ["a/b", "a%2Fb", "..", "x y", "Ж.1"]
    files = write_files([Document(each, "", f"text of {each}") for each in ids], tmp_path, "txt")
    assert len(files) == len(ids)
    for each in ids:
        name = file_name(each, "txt")
        assert "/" not in name
        assert unquote(name.rpartition(".")[0]) == each
        assert files[name].read_text() == f"text of {each}\n"
