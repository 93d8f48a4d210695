"""What parsers need to read text from pictures (OCR), and what they may spend on it."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_SCRIPTS = {
    "LATIN": "Latin",
    "CJK": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "GREEK": "Greek",
    "CYRILLIC": "Cyrillic",
    "ARABIC": "Arabic",
    "HEBREW": "Hebrew",
    "HANGUL": "Korean",
}
"""By the first word of a letter's Unicode name."""

Picture = NDArray[np.uint8]
"""uint8 [height, width, 3], blue, green, red."""


@dataclass(frozen=True)
class RecognizedLine:
    """A line of text in a picture."""

    text: str
    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in pixels of the picture as given, from its top left."""
    score: float
    """How sure the recogniser is, 0 to 1."""


@dataclass(frozen=True)
class RecognizedPicture:
    """What was read, in no particular order."""

    lines: tuple[RecognizedLine, ...]
    turn: int = 0
    """Degrees clockwise by which the picture has to be turned to stand upright: 0, 90, 180 or 270."""
    unread_count: int = 0
    """Lines that were found and made no sense: smudges, or a script that the recogniser does not know."""
    complete: bool = True
    """False when time ran out before the last line."""

    def scripts_seen(self) -> tuple[str, ...]:
        """The scripts of at least a tenth of the letters that were read, the commonest first."""
        letters = (char for line in self.lines for char in line.text if char.isalpha())
        counts = Counter(script for script in map(_script_of, letters) if script)
        return tuple(script for script, count in counts.most_common() if 10 * count >= counts.total())


def mean_score(lines: Sequence[RecognizedLine]) -> float:
    """Of these lines, the longer ones counting for more; 1 without any."""
    length = sum(len(line.text) for line in lines)
    return sum(line.score * len(line.text) for line in lines) / length if length else 1.0


def _script_of(char: str) -> str:
    if char.isascii():
        return "Latin"
    return _SCRIPTS.get(unicodedata.name(char, "").partition(" ")[0], "")


class TextRecognizer(Protocol):
    """Reads text from pictures."""

    scripts: str
    """What it reads, for people: "Latin, Greek"."""
    missing: str
    """What to install for other scripts, in the imperative; empty when there is nothing."""

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        """Stops early after `time_limit_s`. Raises RecognizerMissing when there is nothing to read with, RecognitionFailed, and
        MemoryError where this process may not have what the picture needs."""


class RecognizerMissing(Exception):
    """Text recognition is not installed. The message says what to install."""


class RecognitionFailed(Exception):
    """The recogniser broke on this picture; the next may do."""


@dataclass(frozen=True)
class OcrLimits:
    """What one file may cost."""

    max_pages: int = 500
    time_limit_s: float = 1800.0
    page_time_limit_s: float = 60.0
    """A dense page takes 3 seconds of one core; beyond this the rest of a page is left unread."""
    threads: int = 1
    """Cores that one file may keep busy."""


class OcrBudget:
    """Spends OcrLimits over the pages of one file."""

    def __init__(self, recognizer: TextRecognizer, limits: OcrLimits, clock: Callable[[], float]) -> None:
        self._recognizer = recognizer
        self._limits = limits
        self._clock = clock
        self.page_count = 0
        """Pictures read so far."""
        self.seconds = 0.0
        """Seconds spent on them."""

    @property
    def scripts(self) -> str:
        """What the recogniser reads."""
        return self._recognizer.scripts

    @property
    def missing(self) -> str:
        """What to install for the recogniser to read other scripts."""
        return self._recognizer.missing

    @property
    def spent(self) -> str:
        """Why no further page may be read; empty while one may."""
        if self._limits.max_pages == 0:
            return "text recognition (OCR) is switched off"
        if self.page_count >= self._limits.max_pages:
            return f"{self._limits.max_pages} pages is the limit for one file"
        if self.seconds >= self._limits.time_limit_s:
            return f"{self._limits.time_limit_s:.0f} seconds is the limit for one file"
        return ""

    def read(self, picture: Picture) -> RecognizedPicture:
        """Reads a page within what is left. Raises RecognizerMissing, RecognitionFailed."""
        began = self._clock()
        left = self._limits.time_limit_s - self.seconds
        try:
            return self._recognizer.read(picture, min(left, self._limits.page_time_limit_s))
        finally:
            self.page_count += 1
            self.seconds += self._clock() - began
