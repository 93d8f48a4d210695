"""Recognisers for tests, and pictures of text for them."""

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from services.ingest.reading.recognition import (
    OcrLimits,
    Picture,
    RecognitionFailed,
    RecognizedLine,
    RecognizedPicture,
    RecognizerMissing,
    TextRecognizer,
)

UNHURRIED = OcrLimits(page_time_limit_s=1800.0)
"""However busy the machine is: a page is read to its end."""


class OffTheMainThread:
    """A recogniser whose reading happens on a thread of its own. A thread that has computed with AMX gets its signals with 11 KB of
    registers, more than the stack that some library has set aside for them: the next SIGTERM would end the tests as a segmentation
    fault. The parsing child handles no signals, and the model server computes on threads."""

    def __init__(self, recognizer: TextRecognizer) -> None:
        self._recognizer = recognizer
        self.scripts = recognizer.scripts
        self.missing = recognizer.missing

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._recognizer.read, picture, time_limit_s).result()


class ScriptedRecognizer:
    """Reads what it was told, one answer a picture, the last one again and again."""

    scripts = "Latin"
    missing = ""

    def __init__(self, *answers: RecognizedPicture | Exception) -> None:
        self._answers = list(answers)
        self.pictures: list[Picture] = []
        self.time_limits_s: list[float] = []

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        self.pictures.append(picture)
        self.time_limits_s.append(time_limit_s)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, RecognizedPicture):
            return answer
        raise answer


def read_as(*texts: str, turn: int = 0, unread_count: int = 0, complete: bool = True) -> RecognizedPicture:
    """Lines below each other, 40 pixels apart, 100 pixels from the left."""
    lines = tuple(
        RecognizedLine(text, (100.0, 100.0 + 40 * n, 100.0 + 12 * len(text), 130.0 + 40 * n), 0.99)
        for n, text in enumerate(texts)
    )
    return RecognizedPicture(lines, turn, unread_count, complete)


MISSING = RecognizerMissing("text recognition (OCR) needs rapidocr, which is not installed")
BROKEN = RecognitionFailed("boom")


def picture_of(lines: Sequence[str], *, size: tuple[int, int] = (850, 1100), type_pixels: int = 30) -> Image.Image:
    """A white page with lines of black text from the top."""
    page = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(size=type_pixels)
    for number, line in enumerate(lines):
        pen.text((80, 80 + number * type_pixels * 2), line, fill="black", font=font)
    return page


def bytes_of(page: Image.Image, kind: str = "JPEG", **options: object) -> bytes:
    """A picture as a file."""
    file = io.BytesIO()
    page.save(file, kind, **options)
    return file.getvalue()


def pixels_of(page: Image.Image) -> Picture:
    """A picture as the recogniser gets it."""
    return np.ascontiguousarray(np.asarray(page)[:, :, ::-1])
