"""Real PDFs and scans, where they are at hand: reading order, tables, right-to-left text, recognition."""

import io
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from services.ingest.adapters.rapidocr import RapidOcr
from services.ingest.errors import DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.cleaning import clean
from services.ingest.reading.models import BlockKind, CleanDocument, ParsedDocument
from services.ingest.reading.parsers.registry import parse
from services.ingest.reading.recognition import OcrBudget
from tests.unit.ingest.recognizers import UNHURRIED, OffTheMainThread

DOCUMENTS = Path(os.environ.get("TEST_DOCUMENTS_DIR", Path(__file__).resolve().parents[4] / "shared" / "data" / "docs"))
Read = Callable[[str], tuple[ParsedDocument, CleanDocument]]

pytestmark = pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="set TEST_DOCUMENTS_DIR")


@pytest.fixture(scope="module")
def read() -> Read:
    recognizer = OffTheMainThread(RapidOcr(threads=1))

    @cache
    def read(name: str) -> tuple[ParsedDocument, CleanDocument]:
        path = DOCUMENTS / name
        media_type = detection.detect_media_type(io.BytesIO(path.read_bytes()), path.name)
        parsed = parse(path, media_type, path.name, OcrBudget(recognizer, UNHURRIED, time.perf_counter))
        return parsed, clean(parsed)

    return read


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_paper_in_two_columns_is_read_column_by_column(read: Read) -> None:
    _, document = read("pdf/multi-column-2p.pdf")
    text = one_line(document.text)
    assert "advances of reading comprehension models suggest a much simplified two-stage framework" in text
    assert text.index("Abstract") < text.index("1 Introduction") < text.index("identify the correct answer")


def test_arabic_reads_in_logical_order_with_its_ligatures(read: Read) -> None:
    _, document = read("pdf/right_to_left_01.pdf")
    for word in ("الإنتاجية", "المشكلات", "علاوة", "أيضًا", "بناءً"):
        assert word in document.text
    assert "Python" in document.text.split()


def test_ruled_table_is_read_row_by_row(read: Read) -> None:
    _, document = read("pdf/nics-background-checks-2015-11.pdf")
    row = next(line for line in document.text.split("\n") if "Alabama" in line)
    assert row.startswith("State / Territory: Alabama; Permit: 18,870; Handgun: 23,022; Long Gun: 22,650")
    assert row.endswith("Totals: 71,137")


def test_small_tables_have_their_column_names(read: Read) -> None:
    _, document = read("pdf/korean-text-with-tables.pdf")
    assert "업종: 주유; 적립 대상: 모든 주유소" in document.text.split("\n")


def test_transcript_loses_its_line_numbers_and_keeps_its_lines(read: Read) -> None:
    _, document = read("pdf/scotus-transcript-p1.pdf")
    assert "came on for oral argument before the Supreme Court of the United States at 1:01 p.m." in document.text


def test_headings_of_a_paper_are_found(read: Read) -> None:
    _, document = read("pdf/fr_olap.pdf")
    found = [document.text[s.start : s.end] for s in document.sections if s.kind is BlockKind.HEADING]
    assert {"1 Introduction", "3.1 Définitions préliminaires", "Références"} <= set(found)


@pytest.mark.parametrize(
    ("name", "phrases"),
    [
        ("ccitt.pdf", ["32 Track MIDI Sequence Recorder", "18720 Oxnard Street, Tarzana, CA 91356"]),
        ("francais.pdf", ["Portez ce vieux whisky au juge blond qui fume sur son île intérieure", "l'alcôve ovoïde"]),
        ("c02-22.pdf", ["WE went tip-toeing along a path amongst the trees", "wouldn't scrape our heads"]),
        ("layout-parser-paper-fast.jpg", ["Recent advances in document image analysis (DIA)"]),
    ],
)
def test_scan_is_read(read: Read, name: str, phrases: list[str]) -> None:
    parsed, document = read(f"pdf_scanned/{name}")
    assert set(parsed.page_statuses) == {"ocr"}
    for phrase in phrases:
        assert phrase in one_line(document.text)
    assert len(document.lines) > 5


def test_columns_of_a_scan_are_read_one_after_the_other(read: Read) -> None:
    _, document = read("pdf_scanned/ccitt.pdf")
    text = one_line(document.text)
    assert "To record a sequence, simply press RECORD and PLAY, then play your MIDI keyboard in time" in text
    assert text.index("sustain pedal, and program changes!") < text.index("simply use LOCATE, FAST FORWARD")


def test_scan_agrees_with_its_known_text(read: Read) -> None:
    _, document = read("pdf_scanned/ocr_test.pdf")
    expected = (DOCUMENTS / "pdf_scanned/ocr_test.expected.md").read_text()
    assert one_line(document.text) == one_line(expected)


def test_pages_that_lie_on_their_sides_are_read(read: Read) -> None:
    parsed, document = read("pdf_scanned/cardinal.pdf")
    assert parsed.page_statuses == ("ocr",) * 4
    assert sorted({block.turn for block in parsed.blocks}) == [0, 90, 180, 270]
    assert one_line(document.text).count("To record a sequence, simply press RECORD and PLAY") == 4


def test_text_behind_a_scan_is_taken_as_it_is(read: Read) -> None:
    parsed, _ = read("pdf_scanned/pdf-with-ocr-text.pdf")
    assert parsed.page_statuses == ("text",)
    assert parsed.warnings == (
        "page 1: its text was recognised by another program (OCR), and many of its words are misread",
    )


@pytest.mark.parametrize("name", ["r6-empty-password.pdf", "copy-protected.pdf"])
def test_file_that_opens_without_a_password_is_read(read: Read, name: str) -> None:
    parsed, _ = read(f"pdf_encrypted/{name}")
    assert set(parsed.page_statuses) == {"text"}


def test_ligature_that_the_file_does_not_name_is_known_by_its_width(read: Read) -> None:
    parsed, document = read("pdf_encrypted/copy-protected.pdf")
    text = one_line(document.text)
    assert "practical difficulties for" in text
    assert "tools for efficient document" in text
    assert not any("lack" in warning for warning in parsed.warnings)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pdf_encrypted/r3-user-password.pdf", "PDF_ENCRYPTED"),
        ("pdf_encrypted/password-example.pdf", "PDF_ENCRYPTED"),
        ("pdf_encrypted/2206.01062_pg3.pdf", "PDF_ENCRYPTED"),
        ("corrupt/empty.pdf", "EMPTY_FILE"),
        ("corrupt/invalid.pdf", "PDF_BROKEN"),
        ("corrupt/no_contents.pdf", "NO_TEXT"),
        ("corrupt/poppler-742-0-fuzzed.pdf", "PDF_BROKEN"),
        ("corrupt/poppler-85140-0.pdf", "NO_TEXT"),
        ("corrupt/poppler-937-0-fuzzed.pdf", "PDF_BROKEN"),
    ],
)
def test_file_that_cannot_be_read_says_why(read: Read, name: str, reason: str) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        read(name)
    assert rejected.value.reason == reason
