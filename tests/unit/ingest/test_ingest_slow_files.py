"""Files that are made to be slow. Each took time with the square of its size; at these sizes that would be very long, so that
finishing at all is the test."""

import re
from pathlib import Path

import pytest

from services.ingest.reading.chunks.sentences import sentence_spans
from services.ingest.reading.cleaning import clean
from services.ingest.reading.detection import HTML, PLAIN, media_type_of
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.messages.mail import parse_mail
from services.ingest.reading.parsers.records.tabular import row_blocks
from services.ingest.reading.parsers.text.markdown import parse_markdown
from services.ingest.reading.parsers.web.html import parse_html
from services.ingest.reading.parsers.web.html_bounds import MAX_DEPTH, bounded_html


@pytest.mark.parametrize("mark", [".", "?!", '."', ".)", "。", "…"])
def test_megabytes_of_punctuation_are_cut_into_sentences_in_one_pass(mark: str) -> None:
    text = mark * (2_000_000 // len(mark)) + "x"
    spans = list(sentence_spans(text, 0, len(text)))
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)


_PAGES = {
    "attributes of one tag": "<p " + " ".join(f"a{i}=1" for i in range(300_000)) + ">word</p>",
    "attributes that hold the end of a tag": "<p " + " ".join(f"a{i}='>'" for i in range(300_000)) + ">word</p>",
    "attributes without spaces": "<p " + "".join(f"a{i}='1'" for i in range(300_000)) + ">word</p>",
    "attributes of the body, tag by tag": "".join(f"<body a{i}=1>" for i in range(100_000)) + "word",
    "unknown elements and ends of others": "<x>" * 200_000 + "</y>" * 200_000 + "word",
    "elements whose ends belong to others": "<div></b>" * 200_000 + "word",
    "choices": "<select>" + "<option>x" * 200_000 + "</select>word",
    "formatting that is never closed": "".join(f"<p><font a{i}=1>x" for i in range(50_000)) + "word",
}


@pytest.mark.parametrize("page", _PAGES.values(), ids=_PAGES.keys())
def test_page_of_what_no_page_needs_is_read_in_one_pass(page: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(f"<html><body>{page}</body></html>")
    assert parse_html(path, "page.html").blocks[-1].text.endswith("word")


def test_bounds_take_out_what_is_beyond_them_and_nothing_else() -> None:
    page = "<div class='a > b' id=x><p title=\"it's\">one <b>two</b><br/><a href=/x?y='z>three</a></div><!-- <div> -->"
    assert bounded_html(page) == page
    assert bounded_html("<p>x" * 5000) == "<p>x" * 5000, "paragraphs close each other"
    assert bounded_html("<div>x</div>" * 5000) == "<div>x</div>" * 5000
    assert bounded_html("<b>x</b>" * 5000) == "<b>x</b>" * 5000
    assert bounded_html("<div>" * 5000).count("<div>") == MAX_DEPTH
    kept = re.findall(r"a\d+=1", bounded_html("<p " + " ".join(f"a{i}=1" for i in range(5000)) + ">x</p>"))
    assert kept == [f"a{i}=1" for i in range(256)]


def test_rows_far_narrower_than_their_header_cost_what_they_hold() -> None:
    """A header of 100 000 names over 100 000 rows of one cell."""
    blocks = list(row_blocks([f"name {i}" for i in range(100_000)], ([f"x{i}"] for i in range(100_000))))
    assert len(blocks) == 100_001
    assert blocks[-1].text.startswith("name 1; name 2;")
    assert blocks[-2].text == "name 0: x99999"


@pytest.mark.parametrize("mark", ["[", "<a@", "[a](<b", '[x](y "', "<!--", "[a](", "`a ``"])
def test_paragraph_of_marks_that_nothing_closes_is_kept_as_text(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "# Title\n\nWith a [link](https://example.com).\n\nx " + mark * (300_000 // len(mark)) + "\n\nThe end."
    )
    texts = [block.text for block in parse_markdown(path, "page.md").blocks]
    assert texts[:2] == ["Title", "With a link."]
    assert mark * 1000 in texts[2]
    assert texts[-1] == "The end."


@pytest.mark.parametrize("value", ["a@b.c, ", "=?utf-8?q?a?= ", "a.", "(", '"a\\'], ids=str)
def test_header_as_long_as_a_book_is_cut_before_it_is_understood(value: str, tmp_path: Path) -> None:
    path = tmp_path / "message.eml"
    path.write_text(f"From: {value * (1_000_000 // len(value))}\nSubject: Ferries\n\nThe ferry leaves at seven.\n")
    assert parse_mail(path, "message.eml").blocks[-1].text.strip() == "The ferry leaves at seven."


def test_content_type_of_countless_parameters_is_cut_before_it_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "message.eml"
    parameters = "".join(f"; p{i}=x" for i in range(100_000))
    path.write_text(f"Subject: Ferries\nContent-Type: text/plain{parameters}\n\nThe ferry leaves at seven.\n")
    assert parse_mail(path, "message.eml").blocks[-1].text.strip() == "The ferry leaves at seven."


def test_line_of_one_endless_word_is_cleaned_in_one_pass() -> None:
    word = "a" * 1_000_000
    page = ParsedDocument("t", (Block(BlockKind.TEXT, word, page=1), Block(BlockKind.TEXT, "end", page=1)), ("text",))
    assert word in clean(page).text


def test_type_of_a_file_of_comments_is_told_in_one_pass() -> None:
    """It is told when the file is uploaded. Two hundred bytes took longer than anybody waits."""
    assert media_type_of(b"<!---->" * 9000 + b"x", "notes.txt") == PLAIN
    assert media_type_of(b"<!-- a --> <!-- > -->\n<!DOCTYPE html>", "notes.txt") == HTML
