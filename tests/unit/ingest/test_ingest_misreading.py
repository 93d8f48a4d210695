"""Pictures in scripts that text recognition does not know: it takes them for letters that it does, and that is no text."""

import io
import time
from pathlib import Path

import pytest

from services.ingest.adapters.rapidocr import RapidOcr
from services.ingest.errors import DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.misreading import with_misread_lines_unread
from services.ingest.reading.models import ParsedDocument
from services.ingest.reading.parsers.registry import parse
from services.ingest.reading.recognition import OcrBudget, RecognizedLine, RecognizedPicture, TextRecognizer
from tests.unit.ingest.recognizers import UNHURRIED, OffTheMainThread, ScriptedRecognizer, bytes_of, picture_of

PICTURES = Path(__file__).resolve().parents[2] / "data" / "pictures"
SCRIPTS = "Latin, Chinese and Japanese"


def picture(*lines: tuple[str, float]) -> RecognizedPicture:
    return RecognizedPicture(
        tuple(
            RecognizedLine(text, (0.0, 40.0 * n, 300.0, 40.0 * n + 30), score) for n, (text, score) in enumerate(lines)
        )
    )


MISREAD = {
    "hebrew": picture(("GUI 4UXLIL XU UUAX4U CXUL", 0.81), ("LI4LO XIUCIO XU AAU LOIGIL", 0.84), ("AGLU LAIL UIGU GUIUU", 0.86)),
    "one hebrew line": picture(("UUALL arIL tUrO ICUIALIO", 0.67)),
    "large hebrew": picture(("UCTQU LXI4O ULLXU UIX ULGAIU LCL UIACI U", 0.8), ("[X LUUIL XU LQGLO CIAl", 0.83)),
    "arabic": picture(("93-59.3. 96 _097 910167", 0.57), ("C36 IIF I6 60 c3", 0.57)),
    "armenian": picture(("anquonun nmumumu :uo nanm 6md", 0.85), ("nmuu umbmy bny aumghmpmunm nmhqums", 0.82)),
    "greek": picture(("εταιρεα ε τ 1990 στν να", 0.83), ("διευυντ εναι ργ ααδτουλ", 0.8)),
    "greek capitals": picture(("H ETAIPEIA IΔPYOHKE TO 1990 ΣTHN AOHNA", 0.95), ("H TIM'H EINAI ΠENHNTA EYPΩ", 0.95)),
}  # fmt: skip


@pytest.mark.parametrize("misread", MISREAD.values(), ids=MISREAD.keys())
def test_writing_taken_for_other_letters_is_unread(misread: RecognizedPicture) -> None:
    judged = with_misread_lines_unread(misread, SCRIPTS)
    assert (judged.lines, judged.unread_count) == ((), len(misread.lines))


READ = {
    "noisy German": picture(("Die Vertesdigung der Panthers gab nur 3o8 Punkte ab und befegte den", 0.89)),
    "blurred English": picture(
        ("WE went ti-toeing along a puth amongat", 0.88), ("the troos hock tuwarda the ond of the", 0.86)
    ),
    "noisy Turkish": picture(("Pantters savunmasi igdeko derecesi altinci srada olarak sadece 308", 0.82)),
    "Vietnamese capitals": picture(("THU'VIN THÀNH PH M CA MÕI NGÀY. GIÁM ĐC THUVIN", 0.94)),
    "codes": picture(("S/N C02XK1ZZJG5H", 0.98), ("BIC COBADEFF", 0.99), ("C6H12O6 + CH3CH2OH", 0.96)),
    "parts": picture(
        ("A12B flange 4", 0.92),
        ("C33D bolt 8", 0.92),
        ("E7F8G washer", 0.92),
        ("M8x20 screw", 0.92),
        ("SKU C3D4E", 0.88),
    ),
    "a company": picture(("Schwartz GmbH", 0.88), ("Please name the number of the invoice with your payment", 0.97)),
    "acronyms": picture(("HTTP TCP DNS", 0.99), ("XML XSLT CSS", 0.99)),
    "numbers": picture(("12,842 11,905", 0.85), ("2006", 0.9)),
    "formulas": picture(
        ("Let α and β be real numbers.", 0.98), ("Then α + β = γ and Σx = µ.", 0.92), ("∆G and NFκB in 2πf", 0.92)
    ),
    "an English line with a Greek word": picture(("the word λόγος means speech and reason", 0.96)),
    "Chinese": picture(("（U00~U99）SARS，", 0.9), ("渡船七点离开东港口", 0.9)),
    "nothing": picture(),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ.keys())
def test_what_is_read_stays(read: RecognizedPicture) -> None:
    assert with_misread_lines_unread(read, SCRIPTS) == read


def test_lines_in_another_script_on_a_page_that_is_read_are_unread() -> None:
    english = [(f"Invoice {number} of the harbour office", 0.99) for number in range(5)]
    page = picture(*english, ("LI4LO XIUCIO XU AAU 4XIGIL", 0.84), ("διευυντ εναι ργ ααδτουλ", 0.86))
    judged = with_misread_lines_unread(page, SCRIPTS)
    assert ([line.text for line in judged.lines], judged.unread_count) == ([text for text, _ in english], 2)


def test_greek_stays_where_the_recogniser_reads_it() -> None:
    greek = picture(("Η εταιρεία ιδρύθηκε το 1990", 0.98))
    assert with_misread_lines_unread(greek, "Latin and Greek") == greek


def parsed(path: Path, recognizer: TextRecognizer) -> ParsedDocument:
    media_type = detection.detect_media_type(io.BytesIO(path.read_bytes()), path.name)
    return parse(path, media_type, path.name, OcrBudget(recognizer, UNHURRIED, time.perf_counter))


def test_report_says_how_many_lines_of_a_page_were_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(bytes_of(picture_of(["Some text"]), "PNG"))
    english = [("The ferry leaves at seven", 0.99), ("from the east harbour", 0.99)]
    document = parsed(path, ScriptedRecognizer(picture(*english, ("διευυντ εναι ργ ααδτουλ", 0.86))))
    assert (
        document.warnings[0] == "page 1: text recognition (OCR) could not read 1 of its 3 lines: it reads Latin writing"
    )


@pytest.fixture(scope="module")
def real() -> TextRecognizer:
    return OffTheMainThread(RapidOcr(threads=1))


@pytest.mark.parametrize("script", ["hebrew", "arabic", "armenian", "greek"])
def test_picture_in_a_script_that_is_not_read_is_refused_as_such(real: TextRecognizer, script: str) -> None:
    with pytest.raises(DocumentRejected) as rejected:
        parsed(PICTURES / f"{script}.png", real)
    assert rejected.value.reason == "OCR_SCRIPT_UNSUPPORTED"


def test_lines_in_cyrillic_do_not_turn_a_page_upside_down(real: TextRecognizer) -> None:
    document = parsed(PICTURES / "mixed.png", real)
    assert document.blocks[0].text.split("\n")[:2] == ["Invoice 8831 of the harbour office", "Amount due: 1,250 euros"]
    assert document.blocks[0].turn == 0
    assert "could not read 2 of its 6 lines" in document.warnings[0]
