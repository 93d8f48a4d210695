"""Headings of printed pages: large letters alone make none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.ingest.reading.cleaning import clean
from services.ingest.reading.models import BlockKind
from services.ingest.reading.parsers.pages.pdf import parse_pdf
from tests.unit.ingest.pdf_files import pdf_of_contents, shown

Headings = Callable[[list[str]], list[tuple[int, str]]]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PROSE = "These words of the body of a page go on for about as long as a line of it is."
TURNED = "BT /F1 16 Tf 0 1 -1 0 30 300 Tm (Printed up the margin) Tj ET\n"


@pytest.fixture
def text(tmp_path: Path) -> Callable[[list[str]], str]:
    def text(pages: list[str]) -> str:
        path = tmp_path / "file.pdf"
        path.write_bytes(pdf_of_contents(pages))
        return clean(parse_pdf(path, "file.pdf")).text

    return text


@pytest.fixture
def headings(tmp_path: Path) -> Headings:
    def headings(pages: list[str]) -> list[tuple[int, str]]:
        path = tmp_path / "file.pdf"
        path.write_bytes(pdf_of_contents(pages))
        document = clean(parse_pdf(path, "file.pdf"))
        return [(s.level, document.text[s.start : s.end]) for s in document.sections if s.kind is BlockKind.HEADING]

    return headings


def page(*parts: str | tuple[str, float]) -> str:
    """Large lines with text below each; those that have a size of their own stand directly above what follows."""
    y, content = 740.0, ""
    for at, part in enumerate(parts, 1):
        line, size = part if isinstance(part, tuple) else (part, 16.0)
        content += shown(line, 72, y, size=size)
        y -= 2.2 * size
        if at == len(parts) or not isinstance(part, tuple):
            for n in range(4):
                content += shown(f"{LETTERS[n]}{line[:1]} {PROSE}", 72, y)
                y -= 14
            y -= 14
    return content


def test_titles_and_sections_are_headings_by_their_size(headings: Headings) -> None:
    found = headings([page(("The manual of the ferry", 24), "Arrival", "2. Departure: where to stand")])
    assert found == [(1, "The manual of the ferry"), (2, "Arrival"), (2, "2. Departure: where to stand")]


def test_heading_above_a_text_that_begins_with_a_small_letter_stays_apart(headings: Headings) -> None:
    body = "".join(shown(f"asn1_{n} {PROSE}", 72, 715 - 14 * n) for n in range(6))
    assert headings([shown("4.1 Functions of the schema", 72, 735, size=14) + body]) == [
        (1, "4.1 Functions of the schema")
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Case number: 150109-XY Agency: Office of Ferries",
        "Date of incident: 01/09/2015",
        "N/A",
        "B-1191",
        "Page 12 of the ferry manual",
        "Figure 3 Guests by line",
        "see https://example.org/ferries",
        "The recall is defined as r = a + b",
        "EP06AU20.010</GPH>",
        "Call us on any of these days. Lines are open",
        "* This program is free to be used",
    ],
)
def test_what_reads_like_a_field_a_caption_or_a_sentence_is_no_heading(headings: Headings, line: str) -> None:
    assert headings([page("Arrival", line)]) == [(1, "Arrival")]


def test_pieces_far_apart_on_a_line_are_no_heading_but_a_number_and_its_name_are(headings: Headings) -> None:
    form = shown("Form 7", 72, 700, size=16) + shown("Request for a berth", 300, 700, size=16)
    numbered = shown("1.2", 72, 740, size=16) + shown("Berths", 140, 740, size=16)
    body = "".join(shown(f"{n} {PROSE}", 72, 650 - 14 * n) for n in range(6))
    assert headings([numbered + form + body]) == [(1, "1.2 Berths")]


def test_answers_that_a_form_repeats_are_no_headings(headings: Headings) -> None:
    assert headings([page("Arrival", "None known", "None known", "None known")]) == [(1, "Arrival")]


def test_large_cells_in_a_row_leave_their_title_only(headings: Headings) -> None:
    cells = [("Cause", 15.0), ("Effect", 15.0), ("Signs", 15.0), ("Remedy", 15.0)]
    assert headings([page(("Faults of engines", 20), *cells), page("Arrival")]) == [
        (1, "Faults of engines"),
        (2, "Arrival"),
    ]


def test_notes_up_the_margin_and_lines_at_the_foot_are_no_headings(headings: Headings) -> None:
    foot = shown("Office of Ferries", 72, 60, size=16)
    assert headings([page("Arrival") + foot + TURNED]) == [(1, "Arrival")]


def test_numbered_heading_at_the_foot_of_a_page_stays(headings: Headings) -> None:
    assert headings([page("1. Arrival") + shown("2. Departure", 72, 60, size=16)]) == [
        (1, "1. Arrival"),
        (1, "2. Departure"),
    ]


# -- bold type --


def _bold_above(heading: str, body: list[str], *, font: str = "F3") -> str:
    lines = "".join(shown(line, 72, 686 - 14 * n) for n, line in enumerate(body))
    before = "".join(shown(f"{LETTERS[n]} {PROSE}", 72, 760 - 14 * n) for n in range(4))
    return before + shown(heading, 72, 700, font=font) + lines


def test_short_line_in_bold_type_above_prose_is_a_heading(headings: Headings) -> None:
    prose = [f"{word} {PROSE}" for word in ("First", "Second", "Third")]
    assert headings([_bold_above("What guests pay", prose)]) == [(1, "What guests pay")]
    assert headings([_bold_above("What guests pay", prose, font="F1")]) == []


def test_bold_name_of_a_field_above_its_value_is_no_heading(headings: Headings) -> None:
    assert headings([_bold_above("Name of the guest", ["Anna Berg"])]) == []


def test_page_that_is_mostly_bold_has_no_headings_by_that(headings: Headings) -> None:
    lines = [shown(f"{LETTERS[n]} {PROSE}", 72, 686 - 14 * n, font="F3") for n in range(6)]
    assert headings([_bold_above("What guests pay", [f"Only {PROSE}"]) + "".join(lines)]) == []


# -- what the edges of pages have in common --


def _framed(number: int, head: str) -> str:
    lines = "".join(shown(f"{LETTERS[number]}{LETTERS[n]} {PROSE}", 72, 700 - 14 * n) for n in range(12))
    return shown(head, 72, 760, size=9) + lines


def test_heads_of_left_and_right_pages_are_left_out(text: Callable[[list[str]], str]) -> None:
    heads = ["J. Doe and others" if number % 2 else "On ferries" for number in range(8)]
    found = text([_framed(0, "")] + [_framed(number, heads[number]) for number in range(1, 8)])
    assert "Doe" not in found
    assert "On ferries" not in found
    assert f"HL {PROSE}" in found


def test_head_of_the_only_page_is_no_part_of_the_sentence_below_it(text: Callable[[list[str]], str]) -> None:
    head = shown("On the depth of ports", 72, 730, size=9) + shown("9", 480, 730, size=9)
    body = "".join(shown(f"order {n} {PROSE}", 72, 704 - 14 * n) for n in range(6))
    assert text([head + body]).startswith("On the depth of ports 9\n\norder 0")


def test_title_that_later_pages_repeat_in_small_letters_stays(text: Callable[[list[str]], str]) -> None:
    first = shown("On ferries", 72, 760, size=20) + _framed(0, "")
    found = text([first, *(_framed(number, "On ferries") for number in range(1, 5))])
    assert found.startswith("On ferries")
    assert found.count("On ferries") == 1


def test_first_lines_of_a_paragraph_stay_though_each_page_begins_with_them(text: Callable[[list[str]], str]) -> None:
    begin = shown(f"It is agreed that {PROSE}", 72, 760) + shown(f"And that {PROSE} again", 72, 746)
    pages = [
        begin + "".join(shown(f"{LETTERS[n]}{side} {PROSE}", 72, 732 - 14 * n) for n in range(12)) for side in "XY"
    ]
    assert text(pages).count("It is agreed") == 2
