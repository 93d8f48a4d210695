"""Text recognition with Tesseract, for scripts that the first recogniser does not read: Cyrillic, Greek, Arabic, Hebrew.

The engine comes in a wheel (tesserocr), the languages come from the system's packages (Debian: tesseract-ocr-heb and so on). It
runs in this process: a parsing child may start no program.
"""

import importlib.util
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from services.ingest.reading.misreading import with_misread_lines_unread
from services.ingest.reading.recognition import (
    Picture,
    RecognitionFailed,
    RecognizedLine,
    RecognizedPicture,
    TextRecognizer,
)

DATA_FOLDERS = (
    "/usr/share/tesseract-ocr",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)
"""Where packages put the data of languages: `*.traineddata`, below a folder of the version on Debian."""
LANGUAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Cyrillic": ("rus", "ukr", "bul", "srp"),
        "Greek": ("ell",),
        "Arabic": ("ara", "fas"),
        "Hebrew": ("heb",),
    }
)
"""Script, as Tesseract names it → languages whose data reads it. Any of them will do."""
_BESIDE = "eng"
"""Read along with any script: names and numbers."""
_ORIENTATION = "osd"
_MIN_SCORE = 0.4
"""Of a line; what is less sure is noise."""


_BOX = re.compile(r"bbox (\d+) (\d+) (\d+) (\d+)")
_CONFIDENCE = re.compile(r"x_wconf (\d+)")


class Tesseract:
    """Reads the scripts whose data is installed. Made new for each parsing child; an engine takes 20 MB while it reads."""

    def __init__(self, folders: Sequence[str] = DATA_FOLDERS, *, threads: int) -> None:
        self._folders = folders
        self._threads = threads

    @cached_property
    def data(self) -> Mapping[str, Path]:
        """Language → folder of its data; empty without the engine."""
        if importlib.util.find_spec("tesserocr") is None:
            return {}
        files = (file for folder in map(Path, self._folders) for file in sorted(folder.glob("**/*.traineddata")))
        return {file.stem: file.parent for file in files}

    @property
    def readable(self) -> list[str]:
        """The scripts that can be read."""
        return [script for script, languages in LANGUAGES.items() if any(each in self.data for each in languages)]

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        """As the port says. What script it is, is asked first; where that is not known, all are tried together."""
        script, turn = self._orientation(picture)
        scripts = [script] if script in self.readable else self.readable
        wanted = [each for name in scripts for each in LANGUAGES[name] if each in self.data]
        upright = np.ascontiguousarray(np.rot90(picture, -turn // 90))
        return self._read(upright, [*wanted, *([_BESIDE] if _BESIDE in self.data else [])], turn, time_limit_s)

    def _read(self, upright: Picture, languages: Sequence[str], turn: int, time_limit_s: float) -> RecognizedPicture:
        import tesserocr  # noqa: PLC0415 - only the child that meets such a picture pays for it

        os.environ.setdefault("OMP_THREAD_LIMIT", str(self._threads))
        with self._engine("+".join(languages), tesserocr.PSM.AUTO) as engine:
            engine.SetImage(_image(upright))
            complete = bool(engine.Recognize(max(1, int(1000 * time_limit_s))))
            found = list(_lines(engine.GetHOCRText(0))) if complete else []
        height, width = upright.shape[:2]
        lines = [replace(line, box=_turned_back(line.box, turn, width, height)) for line in found]
        sure = tuple(line for line in lines if line.score >= _MIN_SCORE)
        return RecognizedPicture(sure, turn, len(lines) - len(sure), complete)

    def _orientation(self, picture: Picture) -> tuple[str, int]:
        """The script and by how many degrees to turn the picture clockwise; "" and 0 where that cannot be told."""
        if _ORIENTATION not in self.data:
            return "", 0
        import tesserocr  # noqa: PLC0415

        with self._engine(_ORIENTATION, tesserocr.PSM.OSD_ONLY) as engine:
            engine.SetImage(_image(picture))
            try:
                found = engine.DetectOrientationScript()
            except RuntimeError:  # too few characters
                return "", 0
        return (str(found["script_name"]), -int(found["orient_deg"]) % 360) if found else ("", 0)

    def _engine(self, languages: str, mode: int) -> Any:
        import tesserocr  # noqa: PLC0415

        folder = self.data[languages.partition("+")[0]]
        try:
            engine = tesserocr.PyTessBaseAPI(path=f"{folder}{os.sep}", lang=languages, psm=mode)
        except RuntimeError as error:
            raise RecognitionFailed(f"Tesseract cannot load {languages}: {error}"[:200]) from error
        # The binding sends messages to /dev/null, which a parsing child may not open to write: the first one would crash it.
        engine.SetVariable("debug_file", "")
        return engine


class ByScript:
    """The first recogniser, and Tesseract for pictures that it cannot read for the most part: theirs is another script."""

    def __init__(self, first: TextRecognizer, other: Tesseract) -> None:
        self._first = first
        self._other = other
        self.scripts = ", ".join((*other.readable, first.scripts))
        self.missing = _missing(other.readable)

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        """As the port says."""
        began = time.monotonic()
        found = self._first.read(picture, time_limit_s)
        judged = with_misread_lines_unread(found, self._first.scripts)
        if judged.unread_count <= len(judged.lines) or not self._other.readable:
            return found
        other = self._other.read(picture, time_limit_s - (time.monotonic() - began))
        return other if _letters(other) > _letters(judged) else found


def _missing(readable: Sequence[str]) -> str:
    """What to install for the scripts that are not read; empty when all are."""
    packages = [
        f"tesseract-ocr-{codes[0]} for {script}" for script, codes in LANGUAGES.items() if script not in readable
    ]
    return f"install {', '.join(packages)} (names of Debian's packages)" if packages else ""


def _letters(picture: RecognizedPicture) -> int:
    return sum(char.isalpha() for line in picture.lines for char in line.text)


def _image(picture: Picture) -> Any:
    from PIL import Image  # noqa: PLC0415

    return Image.fromarray(np.ascontiguousarray(picture[:, :, ::-1]))


def _lines(hocr: str) -> Iterator[RecognizedLine]:
    """The lines of Tesseract's page in hOCR, whose words stand in the order in which they are read, from right to left too."""
    from lxml import html  # noqa: PLC0415

    for line in html.fromstring(hocr).xpath("//span[span[@class='ocrx_word']]"):
        words = [(" ".join(word.text_content().split()), str(word.get("title"))) for word in line]
        scores = [int(found[1]) / 100 for _, title in words if (found := _CONFIDENCE.search(title))]
        box = _BOX.search(str(line.get("title")))
        if scores and box:
            x0, y0, x1, y1 = map(float, box.groups())
            text = " ".join(word for word, _ in words if word)
            yield RecognizedLine(text, (x0, y0, x1, y1), sum(scores) / len(scores))


def _turned_back(
    box: tuple[float, float, float, float], turn: int, width: float, height: float
) -> tuple[float, float, float, float]:
    """A box on a picture of this size that was turned clockwise, on the picture as it was."""
    x0, y0, x1, y1 = box
    match turn:
        case 90:
            return y0, width - x1, y1, width - x0
        case 180:
            return width - x1, height - y1, width - x0, height - y0
        case 270:
            return height - y1, x0, height - y0, x1
        case _:
            return box
