"""What lies beside the text of a PDF: what is written into fields, comments, pictures."""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.ingest.reading.cleaning import clean
from services.ingest.reading.models import ParsedDocument
from services.ingest.reading.parsers.pages.pdf import parse_pdf
from tests.unit.ingest.pdf_files import buttons_of, form_of, pdf_of_contents, ruled, shown
from tests.unit.ingest.recognizers import bytes_of, picture_of

Read = Callable[[bytes], ParsedDocument]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(data: bytes) -> ParsedDocument:
        path = tmp_path / "form.pdf"
        path.write_bytes(data)
        return parse_pdf(path, "form.pdf")

    return read


LABELS = shown("Name of the guest", 72, 700) + shown("Number of the cabin", 72, 670) + shown("Thank you.", 72, 600)


def test_what_is_written_into_fields_stands_beside_their_names(read: Read) -> None:
    document = read(form_of(LABELS, {"name": ("Anna Berg", 200, 696), "cabin": ("47", 200, 666)}))
    assert clean(document).text.split("\n\n") == ["Name of the guest Anna Berg", "Number of the cabin 47", "Thank you."]
    assert document.warnings == ()


def test_fields_of_a_page_without_other_text_are_read(read: Read) -> None:
    assert clean(read(form_of("", {"name": ("Anna Berg", 200, 696)}))).text == "Anna Berg"


def test_comments_on_a_page_are_counted(read: Read) -> None:
    document = read(form_of(LABELS, {}, ["Is this right?", "It is.", ""]))
    assert document.warnings == ("page 1: 2 comments were left out",)
    assert "right" not in clean(document).text


def test_pictures_beside_the_text_are_counted_but_not_logos_and_backgrounds(read: Read) -> None:
    prose = "".join(
        shown(f"{word} words of the page, which go on and on for as long as a line is", 72, y)
        for word, y in (("A", 700), ("B", 686), ("C", 672))
    )
    pictures = "".join(
        f"q {w} 0 0 {h} 100 100 cm /Im Do Q\n" for w, h in ((612, 792), (200, 200), (250, 200), (40, 40))
    )
    document = read(pdf_of_contents([pictures + prose], jpeg=bytes_of(picture_of(["anything"]))))
    assert document.warnings == ("2 pictures were left out",)


def test_state_of_check_boxes_and_radio_buttons_stands_at_their_labels(read: Read) -> None:
    labels = shown("Shore power needed:", 72, 700) + shown("yes", 240, 700) + shown("no", 310, 700)
    labels += shown("Payment:", 72, 660) + shown("card", 240, 660) + shown("cash", 310, 660)
    buttons = [
        ("power", "Yes", True, 222, 698), ("nopower", "Yes", False, 292, 698),
        ("pay", "card", False, 222, 658), ("pay", "cash", True, 292, 658),
    ]  # fmt: skip
    text = clean(read(buttons_of(labels, buttons))).text
    assert [" ".join(line.split()) for line in text.split("\n\n")] == [
        "Shore power needed: [x] yes [ ] no",
        "Payment: [ ] card [x] cash",
    ]


def test_rest_of_a_table_on_the_next_page_has_the_names_of_its_columns(read: Read) -> None:
    first = ruled([("Ship", "Captain", "Port"), ("Wega", "Ines", "Osk"), ("Lyra", "Jon", "Lind")], 200)
    second = ruled([("Vega", "Piet", "Tarsk"), ("Mira", "Orla", "Osk")], 740)
    other = ruled([("Alpha", "Beta", "Gamma"), ("one", "two", "three")], 700, left=90)
    pages = [shown("Ships of the harbour", 72, 740) + first, second + shown("End of the list.", 72, 600), other]
    texts = [block.text for block in read(pdf_of_contents(pages)).blocks]
    assert texts == [
        "Ships of the harbour",
        "Ship: Wega; Captain: Ines; Port: Osk",
        "Ship: Lyra; Captain: Jon; Port: Lind",
        "Ship: Vega; Captain: Piet; Port: Tarsk",
        "Ship: Mira; Captain: Orla; Port: Osk",
        "End of the list.",
        "Alpha: one; Beta: two; Gamma: three",
    ]
