"""Pictures as documents: each page recognised, in its size, within limits."""

import io
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from services.ingest.errors import DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.models import ParsedDocument
from services.ingest.reading.parsers.registry import parse
from services.ingest.reading.recognition import OcrBudget, OcrLimits, RecognizedLine, RecognizedPicture
from tests.unit.ingest.recognizers import BROKEN, MISSING, ScriptedRecognizer, bytes_of, picture_of, read_as

Read = Callable[..., ParsedDocument]
PAGE = picture_of(["Some text"], size=(400, 300))


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(data: bytes, recognizer: ScriptedRecognizer, name: str = "scan.png", max_pages: int = 9) -> ParsedDocument:
        path = tmp_path / "file"
        path.write_bytes(data)
        media_type = detection.detect_media_type(io.BytesIO(path.read_bytes()), name)
        return parse(path, media_type, name, OcrBudget(recognizer, OcrLimits(max_pages=max_pages), time.perf_counter))

    return read


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF"])
def test_each_kind_of_picture_is_found_out_and_read(read: Read, kind: str) -> None:
    recognizer = ScriptedRecognizer(read_as("Some text"))
    parsed = read(bytes_of(PAGE, kind), recognizer, f"scan.{kind.lower()}")
    assert (parsed.title, parsed.page_statuses, parsed.blocks[0].text) == ("scan", ("ocr",), "Some text")
    assert recognizer.pictures[0].shape == (300, 400, 3)
    assert recognizer.pictures[0].mean() > 200


def test_resolution_turns_pixels_into_points(read: Read) -> None:
    parsed = read(bytes_of(PAGE, "PNG", dpi=(144, 144)), ScriptedRecognizer(read_as("Some text")))
    assert parsed.blocks[0].lines[0].box == pytest.approx((50, 50, 104, 65), abs=0.1)
    parsed = read(bytes_of(PAGE, "PNG"), ScriptedRecognizer(read_as("Some text")))
    assert parsed.blocks[0].lines[0].box == pytest.approx((100, 100, 208, 130))


def test_large_picture_is_read_smaller_and_keeps_its_places(read: Read) -> None:
    recognizer = ScriptedRecognizer(read_as("Some text"))
    parsed = read(bytes_of(Image.new("L", (8000, 4000), 255), "JPEG"), recognizer)
    assert recognizer.pictures[0].shape == (2000, 4000, 3)
    assert parsed.blocks[0].lines[0].box == pytest.approx((200, 200, 416, 260), abs=1)


def test_photograph_is_turned_as_its_camera_says(read: Read) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    recognizer = ScriptedRecognizer(read_as("Some text"))
    read(bytes_of(PAGE, "JPEG", exif=exif), recognizer)
    assert recognizer.pictures[0].shape == (400, 300, 3)


def test_transparent_picture_is_read_on_white(read: Read) -> None:
    recognizer = ScriptedRecognizer(read_as("Some text"))
    read(bytes_of(Image.new("RGBA", (50, 50), (0, 0, 0, 0)), "PNG"), recognizer)
    assert recognizer.pictures[0].min() == 255


def test_pages_of_a_tiff_are_pages_and_frames_of_a_gif_are_not(read: Read) -> None:
    other = picture_of(["Other"], size=(400, 300))
    recognizer = ScriptedRecognizer(read_as("One"), read_as(), read_as("Three"))
    parsed = read(bytes_of(PAGE, "TIFF", save_all=True, append_images=[other, PAGE]), recognizer, "scan.tiff")
    assert parsed.page_statuses == ("ocr", "empty", "ocr")
    assert [(block.page, block.text) for block in parsed.blocks] == [(1, "One"), (3, "Three")]
    assert parsed.warnings == (
        "page 2: text recognition (OCR) found no text in it",
        "text recognition (OCR) saw writing in Latin (2 pages)",
    )
    parsed = read(bytes_of(PAGE, "GIF", save_all=True, append_images=[other]), ScriptedRecognizer(read_as("One")))
    assert len(parsed.page_statuses) == 1


def test_pages_beyond_the_limit_are_reported_as_not_read(read: Read) -> None:
    data = bytes_of(PAGE, "TIFF", save_all=True, append_images=[PAGE, PAGE])
    parsed = read(data, ScriptedRecognizer(read_as("One")), "scan.tiff", 1)
    assert parsed.page_statuses == ("ocr", "failed", "failed")
    assert "1 pages is the limit" in parsed.warnings[0]


def bomb() -> bytes:
    """A PNG of a few hundred bytes that claims 60 000 x 60 000 pixels."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 60_000)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


DOUBTFUL = RecognizedPicture(
    tuple(RecognizedLine("C4 ct uxLO tI4LI", (0.0, 40.0 * n, 200.0, 40.0 * n + 30), 0.7) for n in range(3))
)
"""Hebrew as the recogniser of Latin letters sees it."""


@pytest.mark.parametrize(
    ("data", "answer", "reason", "says"),
    [
        (bomb(), read_as("x"), "IMAGE_TOO_LARGE", "scale it down"),
        (bytes_of(PAGE, "PNG")[:300], read_as("x"), "IMAGE_BROKEN", "damaged"),
        (b"\x89PNG\r\n\x1a\n" + b"x" * 100, read_as("x"), "IMAGE_BROKEN", "damaged"),
        (bytes_of(PAGE, "JPEG")[:900], read_as("x"), "IMAGE_BROKEN", "damaged"),
        (bytes_of(PAGE, "PNG"), read_as(), "NO_TEXT", "OCR) found no text"),
        (bytes_of(PAGE, "PNG"), read_as(unread_count=3), "OCR_SCRIPT_UNSUPPORTED", "it reads Latin, not handwriting"),
        (bytes_of(PAGE, "PNG"), DOUBTFUL, "OCR_SCRIPT_UNSUPPORTED", "upload a version with a text layer"),
        (bytes_of(PAGE, "PNG"), BROKEN, "NO_TEXT", "OCR) failed on it"),
        (bytes_of(PAGE, "PNG"), MISSING, "OCR_MISSING", "needs rapidocr"),
    ],
    ids=[
        "bomb",
        "truncated png",
        "rubbish",
        "truncated jpeg",
        "no text",
        "foreign script",
        "taken for letters",
        "broken",
        "missing",
    ],
)
def test_picture_that_cannot_be_read_is_rejected_with_its_reason(
    read: Read, data: bytes, answer: object, reason: str, says: str
) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        read(data, ScriptedRecognizer(answer))  # type: ignore[arg-type]
    assert rejected.value.reason == reason
    assert says in rejected.value.message


@pytest.mark.parametrize("text", ["BMW builds cars.", "RIFF raff of the town"])
def test_text_that_begins_like_a_picture_is_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text)
    assert detection.detect_media_type(io.BytesIO(path.read_bytes()), "a.txt") == detection.PLAIN


def test_report_says_which_scripts_were_seen(read: Read) -> None:
    parsed = read(bytes_of(PAGE, "PNG"), ScriptedRecognizer(read_as("The ferry leaves", "渡船七点离开东港口", "at ε")))
    assert parsed.warnings == ("text recognition (OCR) saw writing in Latin (1 page), Chinese (1 page)",)
