"""Pictures as documents: scans, photographs of pages, screenshots. Each page is read by text recognition."""

import contextlib
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from services.ingest.errors import DocumentRejected
from services.ingest.reading.misreading import with_misread_lines_unread
from services.ingest.reading.models import Block, ParsedDocument
from services.ingest.reading.parsers.pages.printed_page import (
    PageResult,
    check_page_count,
    nothing_recognized,
    page_of,
    page_warnings,
    recognized_fragments,
    verdict,
)
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.recognition import OcrBudget, Picture, RecognitionFailed, RecognizerMissing
from services.ingest.reading.source import Source

_FORMATS = ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP")
_PAGED = "TIFF"  # the frames of a GIF or a WebP are a film; its first is read
_MAX_DECODED_PIXELS = 100_000_000
"""300 MB in memory: a page of A2 at 400 dpi. A file of a few kilobytes may claim to be far larger."""
_MAX_READ_PIXELS = 8_000_000
_POINTS_PER_INCH = 72.0
_DPI_RANGE = (50.0, 2400.0)


def parse_image(source: Source, name: str, ocr: OcrBudget | None) -> ParsedDocument:
    """Reads each page of a picture. Raises DocumentRejected: IMAGE_BROKEN, IMAGE_TOO_LARGE, TOO_MANY_PAGES, OCR_MISSING,
    OCR_SCRIPT_UNSUPPORTED, NO_TEXT."""
    from PIL import Image  # noqa: PLC0415 - native decoders: only in the child, only when needed

    if ocr is None:
        raise DocumentRejected("OCR_MISSING", f"{name} is a picture, and text recognition (OCR) is switched off")
    with source.open("rb") as file:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow warns of large pictures; ours is a limit
                image = Image.open(file, formats=_FORMATS)
        except Image.DecompressionBombError as error:
            raise _too_large(name, "more pixels than any page") from error
        except Exception as error:  # decoders of hostile files raise whatever they like
            raise _broken(name) from error
        with image:
            pages = list(_pages(image, name, ocr))
    if not any(page.blocks for page in pages):
        raise nothing_recognized(name, pages, ocr) or _nothing_read(name, pages)
    blocks: tuple[Block, ...] = tuple(itertools.chain.from_iterable(page.blocks for page in pages))
    return ParsedDocument(title_from(name), blocks, tuple(page.status for page in pages), tuple(page_warnings(pages)))


def _pages(image: Any, name: str, ocr: OcrBudget) -> Iterator[PageResult]:
    count = _frame_count(image, name) if image.format == _PAGED else 1
    for number in range(1, count + 1):
        if ocr.spent:
            yield PageResult("failed", warning=f"it was not read, because {ocr.spent}")
            continue
        try:
            image.seek(number - 1)
            _check_size(image, name)
            picture, points_per_pixel = _decoded(image)
        except (DocumentRejected, MemoryError):
            raise
        except Exception as error:  # see parse_image
            if count == 1:
                raise _broken(name) from error
            yield PageResult("failed")
            continue
        yield _read(picture, points_per_pixel, number, name, ocr)


def _frame_count(image: Any, name: str) -> int:
    """Counted one by one: the library takes time with the square of their number."""
    count = 1
    with contextlib.suppress(EOFError):
        while True:
            check_page_count(count, name)
            image.seek(count)
            count += 1
    return count


def _check_size(image: Any, name: str) -> None:
    width, height = image.size
    if width * height > _MAX_DECODED_PIXELS:
        raise _too_large(name, f"{width} x {height} pixels")


def _read(picture: Picture, points_per_pixel: float, number: int, name: str, ocr: OcrBudget) -> PageResult:
    try:
        found = with_misread_lines_unread(ocr.read(picture), ocr.scripts)
    except RecognizerMissing as missing:
        raise DocumentRejected("OCR_MISSING", f"{name} is a picture, and {missing}") from missing
    except RecognitionFailed:
        return PageResult("failed", warning="text recognition (OCR) failed on it")
    judged = verdict(found, ocr.scripts)
    blocks = page_of(recognized_fragments(found, points_per_pixel), number, turn=found.turn, trust_order=False)
    if judged.status != "ocr":
        return PageResult(judged.status, warning=judged.text, is_foreign=judged.is_foreign)
    return PageResult("ocr", blocks, judged.text, found.scripts_seen())


def _decoded(image: Any) -> tuple[Picture, float]:
    """The current frame the right way up, on white, of a size worth reading; and points per pixel of what a viewer shows."""
    from PIL import Image, ImageOps  # noqa: PLC0415

    pixel_count = image.width * image.height
    points = _POINTS_PER_INCH / _dpi(image.info.get("dpi"))
    scale = _scale(image)
    if scale < 1.0 and image.format == "JPEG":
        image.draft("RGB", (int(image.width * scale), int(image.height * scale)))  # decodes less
    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith(("I;16", "I", "F")):
        upright = _eight_bits(upright)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        white = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(white, upright.convert("RGBA"))
    scale = _scale(upright)
    if scale < 1.0:
        upright.thumbnail((max(1, int(upright.width * scale)), max(1, int(upright.height * scale))))
    pixels = np.asarray(upright.convert("RGB"), np.uint8)
    shrunk = (pixel_count / (upright.width * upright.height)) ** 0.5
    return np.ascontiguousarray(pixels[:, :, ::-1]), points * shrunk


def _scale(image: Any) -> float:
    return float(min(1.0, (_MAX_READ_PIXELS / (image.width * image.height)) ** 0.5))


def _eight_bits(image: Any) -> Any:
    from PIL import Image  # noqa: PLC0415

    values = np.asarray(image, np.float32)
    low, high = float(values.min()), float(values.max())
    return Image.fromarray(((values - low) * (255.0 / max(high - low, 1e-6))).astype(np.uint8))


def _dpi(stated: Any) -> float:
    """Pixels to the inch; where a picture does not say, or cannot mean what it says, a pixel counts as a point."""
    try:
        dpi = float(stated[0])
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return _POINTS_PER_INCH
    return dpi if _DPI_RANGE[0] <= dpi <= _DPI_RANGE[1] else _POINTS_PER_INCH


def _broken(name: str) -> DocumentRejected:
    return DocumentRejected(
        "IMAGE_BROKEN", f"{name} is damaged or not a picture; open it in a viewer, save it again and upload that"
    )


def _too_large(name: str, size: str) -> DocumentRejected:
    limit = _MAX_DECODED_PIXELS // 1_000_000
    return DocumentRejected(
        "IMAGE_TOO_LARGE", f"{name} has {size}; the limit is {limit} million: scale it down and upload that"
    )


def _nothing_read(name: str, pages: list[PageResult]) -> DocumentRejected:
    why = next((page.warning for page in pages if page.warning), "none of its pages can be decoded")
    return DocumentRejected("NO_TEXT", f"{name} has no readable text: {why}; upload a sharper or larger picture")
