"""What comes out of the pages of a PDF: text in the order of a reader, or recognised from its picture."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.testing.pdf_files import pdf_of
from services.ingest.errors import DocumentRejected
from services.ingest.reading.cleaning import clean
from services.ingest.reading.models import BlockKind, CleanDocument, ParsedDocument
from services.ingest.reading.parsers.pages.pdf import parse_pdf
from services.ingest.reading.recognition import OcrBudget, OcrLimits, RecognizedPicture
from tests.unit.ingest.pdf_files import character_map, glyphs, pdf_of_contents, shown
from tests.unit.ingest.recognizers import BROKEN, MISSING, ScriptedRecognizer, bytes_of, picture_of, read_as

Read = Callable[..., tuple[ParsedDocument, CleanDocument]]
PROSE = "words of a column that are long enough"
SCAN = "q 612 0 0 792 0 0 cm /Im Do Q\n"


UNNAMED = "\N{REPLACEMENT CHARACTER}"
LETTERS = {ord(letter): letter for letter in "abcdefghijklmnopqrstuvwxyz ."}


def typed(text: str, y: float) -> str:
    """Glyphs of a font that names small letters and nothing else."""
    return glyphs([ord(char) if char != UNNAMED else 0x100 for char in text], 72, y)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(
        data: bytes, recognizer: ScriptedRecognizer | None = None, limits: OcrLimits | None = None
    ) -> tuple[ParsedDocument, CleanDocument]:
        path = tmp_path / "file.pdf"
        path.write_bytes(data)
        ocr = OcrBudget(recognizer, limits or OcrLimits(), time.perf_counter) if recognizer else None
        parsed = parse_pdf(path, "file.pdf", ocr)
        return parsed, clean(parsed)

    return read


def scan(page_count: int = 1, extra: str = "") -> bytes:
    return pdf_of_contents([SCAN + extra] * page_count, jpeg=bytes_of(picture_of(["anything"])))


# -- reading order --


def test_columns_are_read_one_after_the_other_whatever_the_order_in_the_file(read: Read) -> None:
    rows = [
        shown(f"Left {n} {PROSE}.", 60, 700 - 14 * n, size=9) + shown(f"Right {n} {PROSE}.", 330, 700 - 14 * n, size=9)
        for n in range(8)
    ]
    title = shown("A title that runs across both of the columns of this page", 60, 740, size=16)
    _, document = read(pdf_of_contents([title + "".join(rows)]))
    found = [int(word) for word in document.text.split() if word.isdecimal()]
    assert found == [*range(8), *range(8)]
    assert document.text.index("A title") < document.text.index("Left 0") < document.text.index("Right 0")


def test_cells_without_rules_stay_in_their_rows(read: Read) -> None:
    rows = [shown(f"Item {n}", 60, 700 - 14 * n) + shown(f"{n}.50", 330, 700 - 14 * n) for n in range(8)]
    _, document = read(pdf_of_contents(["".join(rows)]))
    assert "Item 3 3.50" in document.text


def test_raised_number_stays_in_its_line(read: Read) -> None:
    content = shown("Einstein", 60, 700) + shown("2", 99.5, 704, size=7) + shown(", and others", 103.6, 700)
    _, document = read(pdf_of_contents([content]))
    assert document.text == "Einstein2, and others"


def test_scattered_lines_are_sorted_from_the_top(read: Read) -> None:
    order = [4, 0, 3, 1, 5, 2]
    _, document = read(pdf_of_contents(["".join(shown(f"Line {n}.", 60, 700 - 20 * n) for n in order)]))
    assert [int(word[:-1]) for word in document.text.split() if word[0].isdigit()] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_boxes_are_on_the_page_as_it_is_shown(read: Read, rotate: int) -> None:
    parsed, document = read(pdf_of_contents([shown("Hello rotated world.", 72, 700)], rotate=rotate))
    assert document.text == "Hello rotated world."
    x0, y0, x1, y1 = document.lines[0].box
    assert (x1 - x0 > y1 - y0) == (rotate == 180)
    width, height = (612, 792) if rotate == 180 else (792, 612)
    assert 0 <= x0 < x1 <= width
    assert 0 <= y0 < y1 <= height
    assert parsed.blocks[0].turn == (360 - rotate) % 360


# -- right to left --

HEBREW = dict(enumerate("אבגדהוזחט", start=1))


def test_hebrew_painted_from_the_left_is_read_from_the_right(read: Read) -> None:
    # Painted from left to right: 3 2 1, gap, 6 5 4. Read: word of 4 5 6, then word of 1 2 3.
    content = glyphs([3, 2, 1], 100, 700) + glyphs([6, 5, 4], 124, 700)
    _, document = read(pdf_of_contents([content], to_unicode=character_map(HEBREW)))
    assert document.text == "דהו אבג"


def test_hebrew_painted_letter_by_letter_from_the_right_is_read_the_same(read: Read) -> None:
    content = "BT /F2 12 Tf 1 0 0 1 200 700 Tm [<0001> 1000 <0002> 1000 <0003>] TJ ET"  # a glyph on, two back
    _, document = read(pdf_of_contents([content], to_unicode=character_map(HEBREW)))
    assert document.text == "אבג"


def test_number_and_latin_word_in_hebrew_keep_their_direction(read: Read) -> None:
    content = shown("2024", 100, 700, size=12) + shown("RAG", 135, 700, size=12) + glyphs([4, 3, 2, 1], 170, 700)
    _, document = read(pdf_of_contents([content], to_unicode=character_map(HEBREW)))
    assert document.text == "אבגד 2024 RAG"  # one run from left to right, as UAX 9 has it


def test_arabic_ligature_keeps_the_order_of_its_letters(read: Read) -> None:
    letters = {1: "س", 2: "لا", 3: "م"}
    _, document = read(pdf_of_contents([glyphs([3, 2, 1], 100, 700)], to_unicode=character_map(letters)))
    assert document.text == "سلام"


# -- tables --


def grid(xs: list[int], ys: list[int]) -> str:
    lines = [f"{xs[0]} {y} m {xs[-1]} {y} l S\n" for y in ys] + [f"{x} {ys[0]} m {x} {ys[-1]} l S\n" for x in xs]
    return "".join(lines)


def test_ruled_table_becomes_rows_with_the_names_of_their_columns(read: Read) -> None:
    cells = [["City", "River"], ["Bonn", "Rhine"], ["Paris", "Seine, in two"]]
    content = shown("Before the table.", 60, 740) + shown("After the table.", 60, 600)
    content += grid([60, 160, 300], [720, 700, 680, 640])
    for row, (city, river) in enumerate(cells):
        content += shown(city, 65, 706 - 20 * row) + shown(river, 165, 706 - 20 * row)
    content += shown("lines", 165, 652)
    parsed, document = read(pdf_of_contents([content]))
    rows = [block for block in parsed.blocks if block.kind is BlockKind.TABLE]
    assert [block.text for block in rows] == ["City: Bonn; River: Rhine", "City: Paris; River: Seine, in two lines"]
    assert document.text.split("\n\n")[0] == "Before the table."
    assert document.text.split("\n\n")[-1] == "After the table."
    assert rows[0].lines[0].box == pytest.approx((60, 92, 300, 112), abs=1)


def test_several_rows_between_two_rules_are_told_apart(read: Read) -> None:
    content = grid([60, 160, 260, 360], [720, 700, 640])
    for column, name in enumerate(["Name", "Size", "Cost"]):
        content += shown(name, 65 + 100 * column, 706)
        content += "".join(shown(f"{name[0]}{row}", 65 + 100 * column, 688 - 16 * row) for row in range(3))
    parsed, _ = read(pdf_of_contents([content]))
    assert [block.text for block in parsed.blocks] == [f"Name: N{n}; Size: S{n}; Cost: C{n}" for n in range(3)]


def test_table_without_rules_at_its_sides_is_whole(read: Read) -> None:
    content = "".join(f"60 {y} m 300 {y} l S\n" for y in (720, 700, 660)) + "160 660 m 160 720 l S\n"
    for row, (city, river) in enumerate([("City", "River"), ("Bonn", "Rhine")]):
        content += shown(city, 65, 706 - 20 * row) + shown(river, 165, 706 - 20 * row)
    parsed, _ = read(pdf_of_contents([content]))
    assert [block.text for block in parsed.blocks] == ["City: Bonn; River: Rhine"]


def test_table_without_any_rules_is_found_by_its_columns_of_numbers(read: Read) -> None:
    content = shown("The figures of the year, in thousands of euros:", 60, 740)
    rows = [
        ("Quarter", "Sales", "Costs"),
        ("First", "1,200", "900"),
        ("Second", "1,350", "870"),
        ("Third", "990", "910"),
    ]
    for row, cells in enumerate(rows):
        content += "".join(shown(cell, 65 + 120 * column, 706 - 16 * row) for column, cell in enumerate(cells))
    parsed, document = read(pdf_of_contents([content + shown("All figures are audited.", 60, 600)]))
    rows_found = [block.text for block in parsed.blocks if block.kind is BlockKind.TABLE]
    assert rows_found[1] == "Quarter: Second; Sales: 1,350; Costs: 870"
    assert len(rows_found) == 3
    assert document.text.startswith("The figures of the year")
    assert document.text.endswith("All figures are audited.")


def test_hatching_does_not_cut_words(read: Read) -> None:
    hatching = "".join(f"{x} 0 m {x} 790 l S\n" for x in range(10, 600, 2))
    _, document = read(pdf_of_contents([hatching + shown("Some words on a hatched page", 60, 700)]))
    assert document.text == "Some words on a hatched page"


def test_three_columns_of_prose_are_no_table(read: Read) -> None:
    content = "".join(
        shown(f"Some prose in column {column}", 40 + 185 * column, 700 - 14 * row, size=9)
        for row in range(6)
        for column in range(3)
    )
    parsed, _ = read(pdf_of_contents([content]))
    assert {block.kind for block in parsed.blocks} == {BlockKind.TEXT}


def test_frame_around_text_is_no_table(read: Read) -> None:
    content = grid([50, 560], [750, 600]) + shown("Framed words stay a paragraph.", 60, 700)
    parsed, _ = read(pdf_of_contents([content]))
    assert [block.kind for block in parsed.blocks] == [BlockKind.TEXT]


# -- pages without a believable text layer --


def test_scanned_page_is_recognised_and_its_lines_have_places(read: Read) -> None:
    recognizer = ScriptedRecognizer(read_as("The harbour opens", "at seven."))
    parsed, document = read(scan(), recognizer)
    assert parsed.page_statuses == ("ocr",)
    assert document.text.split() == ["The", "harbour", "opens", "at", "seven."]
    assert document.lines[0].box == pytest.approx((36, 36, 36 + 12 * 17 * 0.36, 46.8), abs=0.5)
    assert recognizer.pictures[0].shape == (2200, 1700, 3)


def test_sideways_scan_keeps_its_boxes_on_the_page_and_its_order(read: Read) -> None:
    lines = read_as("First line of it", "second line of it", turn=90).lines
    turned = [(1000 - box[3], box[0], 1000 - box[1], box[2]) for box in (line.box for line in lines)]
    sideways = tuple(type(line)(line.text, box, line.score) for line, box in zip(lines, turned, strict=True))
    # Standing on its side, the first line is the rightmost; turned by 270 degrees it is the topmost.
    parsed, document = read(scan(), ScriptedRecognizer(RecognizedPicture(sideways, turn=270)))
    assert document.text.startswith("First line of it")
    assert parsed.blocks[0].lines[0].box == pytest.approx([0.36 * value for value in turned[0]], abs=0.1)


def test_scan_with_a_stamp_of_text_is_recognised(read: Read) -> None:
    recognizer = ScriptedRecognizer(read_as("Everything that the scan says, which is a lot", "and more"))
    parsed, document = read(scan(extra=shown("Page 1", 500, 30)), recognizer)
    assert parsed.page_statuses == ("ocr",)
    assert "Everything" in document.text


def test_page_with_a_picture_keeps_its_text_when_the_picture_says_no_more(read: Read) -> None:
    caption = shown("Figure 1. Two boats at low tide, from the north.", 60, 30)
    parsed, document = read(scan(extra=caption), ScriptedRecognizer(read_as("Figure 1. Two boats")))
    assert parsed.page_statuses == ("text",)
    assert "low tide" in document.text


def test_font_that_does_not_say_its_characters_is_recognised(read: Read) -> None:
    content = "".join(glyphs(list(range(1000, 1040)), 60, 700 - 20 * n) for n in range(3))
    parsed, document = read(pdf_of_contents([content]), ScriptedRecognizer(read_as("Now it can be read.")))
    assert (parsed.page_statuses, document.text) == (("ocr",), "Now it can be read.")


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        (read_as(), "empty", "page 2: it is a picture, and text recognition (OCR) found no text in it"),
        (read_as("ab", unread_count=9), "failed", "could not read 9 of its 10 lines: it reads Latin writing"),
        (BROKEN, "failed", "page 2: it is a picture, and text recognition (OCR) failed on it"),
        (MISSING, "failed", "page 2: it is a picture, and text recognition (OCR) needs rapidocr"),
    ],
)
def test_page_that_cannot_be_recognised_is_named_and_fails_nobody_else(
    read: Read, answer: RecognizedPicture | Exception, status: str, says: str
) -> None:
    jpeg = bytes_of(picture_of(["anything"]))
    parsed, document = read(
        pdf_of_contents([shown("Good page.", 60, 700), SCAN], jpeg=jpeg), ScriptedRecognizer(answer)
    )
    assert parsed.page_statuses == ("text", status)
    assert document.text == "Good page."
    assert says in parsed.warnings[0]


def test_pages_beyond_the_limit_are_reported_as_not_read(read: Read) -> None:
    recognizer = ScriptedRecognizer(read_as("Some text."))
    parsed, _ = read(scan(3), recognizer, OcrLimits(max_pages=2))
    assert parsed.page_statuses == ("ocr", "ocr", "failed")
    assert parsed.warnings[0] == "page 3: it is a picture, and 2 pages is the limit for one file"
    assert len(recognizer.pictures) == 2


def test_time_that_ran_out_ends_recognition(read: Read) -> None:
    recognizer = ScriptedRecognizer(read_as("Half of it", complete=False))
    parsed, _ = read(scan(2), recognizer, OcrLimits(time_limit_s=1e-9))
    assert parsed.page_statuses == ("ocr", "failed")
    assert "took too long" in parsed.warnings[0]
    assert recognizer.time_limits_s == [1e-9]


def test_blank_page_is_not_recognised(read: Read) -> None:
    recognizer = ScriptedRecognizer(read_as("never"))
    parsed, _ = read(pdf_of([["Hello world."], []]), recognizer)
    assert parsed.page_statuses == ("text", "empty")
    assert recognizer.pictures == []


def test_document_of_which_nothing_can_be_read_is_rejected_and_says_why(read: Read) -> None:
    with pytest.raises(DocumentRejected, match="OCR\\) found no text") as rejected:
        read(scan(2), ScriptedRecognizer(read_as()))
    assert rejected.value.reason == "NO_TEXT"
    with pytest.raises(DocumentRejected, match="OCR\\) is off"):
        read(scan())


# -- paragraphs and headings --


def test_larger_lines_are_headings_of_what_follows(read: Read) -> None:
    body = "".join(
        shown(f"Sentence {n} of the body is long enough to be one of several.", 60, 640 - 14 * n) for n in range(6)
    )
    content = shown("The manual", 60, 740, size=20) + shown("1 First steps", 60, 690, size=14) + body
    _, document = read(pdf_of_contents([content]))
    headings = [
        (section.level, document.text[section.start : section.end])
        for section in document.sections
        if section.kind is BlockKind.HEADING
    ]
    assert headings == [(1, "The manual"), (2, "1 First steps")]
    assert [heading for heading, _ in document.sections[-1].path] == ["The manual", "1 First steps"]


def test_page_of_three_lines_does_not_glue_them(read: Read) -> None:
    content = shown("Notice", 60, 740) + shown("The harbour is closed", 60, 700) + shown("Harbour office", 60, 660)
    _, document = read(pdf_of_contents([content]))
    assert document.text.split("\n\n") == ["Notice", "The harbour is closed", "Harbour office"]


def test_numbers_in_the_margin_of_a_pleading_are_left_out(read: Read) -> None:
    lines = [
        f"The witness said on the {word} day that the gate was open" for word in ("first", "next", "third", "last")
    ]
    content = "".join(
        shown(str(n + 1), 40, 700 - 24 * n) + shown(line, 80, 700 - 24 * n) for n, line in enumerate([*lines, *lines])
    )
    _, document = read(pdf_of_contents([content]))
    assert document.text.startswith("The witness said on the first day")
    assert not any(char.isdecimal() for char in document.text)


def test_running_header_is_left_out_though_recognition_spaces_it_differently(read: Read) -> None:
    bodies = ("It rained.", "The boat was late.", "Nobody came.")
    headers = ("Annual Report 2024", "AnnualReport 2024", "Annual Report, 2024")
    pages = [
        read_as(header, "", body, "And so on for a while.", "Until it ended.")
        for header, body in zip(headers, bodies, strict=True)
    ]
    _, document = read(scan(3), ScriptedRecognizer(*pages))
    assert "eport" not in document.text
    assert all(body in document.text for body in bodies)


def test_pages_that_say_the_same_and_nothing_else_are_read(read: Read) -> None:
    _, document = read(pdf_of([["Voucher for one dinner."]] * 4))
    assert document.text.count("Voucher for one dinner.") == 4


def test_word_broken_at_the_end_of_a_line_is_joined(read: Read) -> None:
    content = shown("The committee has decided to recom-", 60, 700) + shown("mend nothing of the kind today.", 60, 686)
    _, document = read(pdf_of_contents([content]))
    assert document.text == "The committee has decided to recommend nothing of the kind today."


# -- ligatures that the file does not name --


def test_lost_ligature_is_the_one_that_makes_a_word_of_the_document(read: Read) -> None:
    lines = [f"an e{UNNAMED}cient tool for the{UNNAMED}", "it is efficient and flows."]
    content = "".join(typed(line, 700 - 14 * n) for n, line in enumerate(lines))
    parsed, document = read(pdf_of_contents([content], to_unicode=character_map(LETTERS)))
    assert "an efficient tool" in document.text
    assert parsed.warnings == ()
    block = parsed.blocks[0]
    assert [block.text[line.start : line.end] for line in block.lines] == block.text.split("\n")


def test_lost_ligature_that_may_be_several_is_reported(read: Read) -> None:
    lines = [
        f"it ba{UNNAMED}ed the reader of the book",
        f"so m{UNNAMED} is a prime in a formula",
        "and so on it goes here.",
    ]
    content = "".join(typed(line, 700 - 14 * n) for n, line in enumerate(lines))
    parsed, document = read(pdf_of_contents([content], to_unicode=character_map(LETTERS)))
    assert f"ba{UNNAMED}ed" in document.text
    assert parsed.warnings == ("page 1: 1 of its words lacks letters, because its fonts do not say what they are",)


# -- text that another program recognised --

MISREAD = "you Kill tee interested to knot executeD contracts of the Fou4dation Aaalggfitted fcrt ugsx ttsrootj Company"
SOUND = "you will be interested to know that executed contracts of the Foundation were sent to the Company"


@pytest.mark.parametrize(
    ("text", "mode", "is_doubted"),
    [(MISREAD, 3, True), (SOUND, 3, False), (MISREAD, 0, False)],
    ids=["poor", "good", "typed"],
)
def test_poorly_recognised_text_behind_a_scan_is_reported(read: Read, text: str, mode: int, is_doubted: bool) -> None:
    parsed, _ = read(scan(extra=f"{mode} Tr " + shown(text, 40, 700, size=8) + shown(text, 40, 680, size=8)))
    assert parsed.page_statuses == ("text",)
    assert any("recognised by another program" in warning for warning in parsed.warnings) == is_doubted
