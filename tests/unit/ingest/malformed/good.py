"""One good file of each format: to be damaged, and to be read after the damaged ones."""

import gzip

from kit.testing.pdf_files import pdf_of
from tests.unit.ingest.malformed.case import WORDS
from tests.unit.ingest.office_files import docx_of, epub_of, paragraph, pptx_of, shape, xlsx_of
from tests.unit.ingest.opendocument_files import cell, opendocument_of
from tests.unit.ingest.opendocument_files import paragraph as opendocument_paragraph
from tests.unit.ingest.opendocument_files import table as opendocument_table
from tests.unit.ingest.outlook_files import msg_of


def good_files() -> dict[str, bytes]:
    """One file of each format, all with the same words."""
    table = [["Ship", "Text"], *[[f"Ship {i}", WORDS] for i in range(20)]]
    return {
        "good.docx": docx_of(paragraph("Ferries", "H1") + "".join(paragraph(f"{WORDS} {i}.") for i in range(40))),
        "good.pptx": pptx_of([shape([f"Slide {i}"], "title") + shape([WORDS, "Second"], "body") for i in range(5)]),
        "good.xlsx": xlsx_of(table),
        "good.epub": epub_of({f"c{i}.xhtml": f"<h2>Chapter {i}</h2>" + f"<p>{WORDS}.</p>" * 20 for i in range(3)}),
        "good.pdf": pdf_of(
            [[*[f"Line {i}" for i in range(9)], "", f"{WORDS}.", "", *[f"Row {i}" for i in range(9)]] for n in range(2)]
        ),
        "good.html": f"<html><head><title>Ferries</title></head><body>{f'<p>{WORDS}.</p>' * 30}</body></html>".encode(),
        "good.md": (f"# Ferries\n\n{WORDS}.\n\n" + "- item one\n- item two\n\n```\ncode\n```\n" * 10).encode(),
        "good.csv": "\n".join(",".join(row) for row in table).encode(),
        "good.json": telegram_export("".join(telegram_message(i, f'"{WORDS} {i}"') + "," for i in range(30))[:-1]),
        "good.eml": f"From: Anna <a@x.org>\nSubject: Ferries\nDate: Mon, 1 Jan 2024 10:00:00 +0100\n\n{f'{WORDS}. ' * 20}".encode(),
        "good.odt": opendocument_of("text", opendocument_paragraph(WORDS) * 40),
        "good.ods": opendocument_of(
            "spreadsheet", opendocument_table([[cell(f"Ship {i}"), cell(WORDS)] for i in range(20)])
        ),
        "good.odp": opendocument_of("presentation", f"<draw:page>{opendocument_paragraph(WORDS) * 9}</draw:page>" * 5),
        "good.rtf": (r"{\rtf1\ansi{\fonttbl{\f0 Arial;}}" + rf"\pard {WORDS}.\par" * 30 + "}").encode(),
        "good.jsonl": "\n".join(f'{{"ship": "Ship {i}", "text": "{WORDS}"}}' for i in range(20)).encode(),
        "good.msg": msg_of({0x0037: "Ferries", 0x0C1A: "Anna", 0x1000: f"{WORDS}. " * 20}, sent_s=1_704_103_200),
        "good.txt.gz": gzip.compress(f"{WORDS}.\n\n".encode() * 30, mtime=0),
        "good.txt": f"{WORDS}.\n\n".encode() * 30,
    }


def telegram_message(number: int, text: str, more: str = "") -> str:
    date = f"17000000{number % 100:02}"
    return f'{{"id": {number}, "type": "message", "date_unixtime": "{date}", "from": "Anna", "text": {text}{more}}}'


def telegram_export(messages: str) -> bytes:
    return f'{{"name": "Harbour", "type": "private_group", "id": 7, "messages": [{messages}]}}'.encode()
