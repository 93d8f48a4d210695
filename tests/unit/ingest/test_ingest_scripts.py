"""Pictures of text in scripts that the first recogniser does not read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evals.reading.ocr import _NOTO, SCRIPTS, _page
from services.ingest.adapters.tesseract import LANGUAGES, ByScript, Tesseract
from services.ingest.errors import DocumentRejected
from services.ingest.reading.models import PrepareRequest
from services.ingest.reading.parsers.registry import parse
from services.ingest.reading.pool.children import ParserPool
from services.ingest.reading.recognition import OcrBudget, Picture, RecognizedPicture, TextRecognizer
from tests.unit.ingest.reading_files import read_by
from tests.unit.ingest.recognizers import UNHURRIED, ScriptedRecognizer, bytes_of, picture_of, read_as

PAGE = np.zeros((10, 10, 3), np.uint8)
FOREIGN = read_as(unread_count=3)
RUSSIAN = read_as("Ключ от склада")


class Other(Tesseract):
    """Reads a script without an engine."""

    def __init__(self, answer: RecognizedPicture) -> None:
        self.answer = answer
        self.calls = 0

    @property
    def readable(self) -> list[str]:
        return ["Cyrillic"]

    def read(self, picture: Picture, time_limit_s: float) -> RecognizedPicture:
        self.calls += 1
        return self.answer


def test_a_picture_that_the_first_cannot_read_goes_to_the_other() -> None:
    other = Other(RUSSIAN)
    assert ByScript(ScriptedRecognizer(FOREIGN), other).read(PAGE, 1) == RUSSIAN


def test_a_picture_that_the_first_reads_does_not() -> None:
    other, read = Other(RUSSIAN), read_as("The key of the warehouse")
    assert ByScript(ScriptedRecognizer(read), other).read(PAGE, 1) == read
    assert other.calls == 0


def test_what_neither_reads_stays_unread() -> None:
    assert ByScript(ScriptedRecognizer(FOREIGN), Other(read_as())).read(PAGE, 1) == FOREIGN


def test_what_is_installed_is_known_and_what_is_not_is_named(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "heb.traineddata").touch()
    both = ByScript(ScriptedRecognizer(FOREIGN), Tesseract([str(tmp_path)], threads=1))
    assert both.scripts == "Hebrew, Latin"
    assert "tesseract-ocr-rus for Cyrillic" in both.missing
    assert "heb" not in both.missing


def test_the_refusal_says_which_package_to_install(tmp_path: Path) -> None:
    (tmp_path / "scan.png").write_bytes(bytes_of(picture_of(["x"]), "PNG"))
    both: TextRecognizer = ByScript(ScriptedRecognizer(FOREIGN), Tesseract([str(tmp_path / "nothing")], threads=1))
    with pytest.raises(DocumentRejected, match=r"install .*tesseract-ocr-heb for Hebrew") as rejected:
        parse(tmp_path / "scan.png", "image/png", "scan.png", ocr=OcrBudget(both, UNHURRIED, lambda: 0.0))
    assert rejected.value.reason == "OCR_SCRIPT_UNSUPPORTED"


@pytest.mark.parametrize("script", [each for each in SCRIPTS if each.name in LANGUAGES], ids=lambda script: script.name)
@pytest.mark.parametrize("turn", [0, 180])
def test_tesseract_reads_a_page_of_its_script(script: object, turn: int) -> None:
    real = Tesseract(threads=1)
    if script.name not in real.readable or not (_NOTO / script.font).exists():  # type: ignore[attr-defined]
        pytest.skip("install the Tesseract data of the script and fonts-noto-core")
    page, text = _page(script, 1)  # type: ignore[arg-type]
    found = real.read(np.asarray(page.rotate(turn))[:, :, ::-1], 600)
    words = set(text.split())
    read = {word for line in found.lines for word in line.text.split()}
    assert len(words & read) > len(words) / 2
    assert found.turn == turn
    assert all(0 <= line.box[0] < line.box[2] <= page.width for line in found.lines)


async def test_tesseract_reads_inside_the_sandbox_of_a_parsing_child(tmp_path: Path) -> None:
    script = next(each for each in SCRIPTS if each.name == "Cyrillic")
    if script.name not in Tesseract(threads=1).readable or not (_NOTO / script.font).exists():
        pytest.skip("install tesseract-ocr-rus and fonts-noto-core")
    page, text = _page(script, 1)
    (tmp_path / "scan").write_bytes(bytes_of(page, "PNG"))
    pool = ParserPool(size=1, time_limit_s=1800.0, memory_limit_bytes=4 * 1024**3, ocr=UNHURRIED)
    try:
        found = await read_by(pool, PrepareRequest(str(tmp_path / "scan"), "image/png", "scan.png", "", 64))
    finally:
        await pool.close()
    words = set(text.split())
    read = {word for chunk in found.chunks for word in chunk.text.split()}
    assert len(words & read) > len(words) / 2
