"""What networks, disks and hands do to files: cut them, flip their bits, give them the name of another kind."""

import random
from collections.abc import Iterator

from tests.unit.ingest.malformed.case import WORDS, BadFile
from tests.unit.ingest.malformed.good import good_files
from tests.unit.ingest.office_files import zip_of


def truncated() -> Iterator[BadFile]:
    reasons = {"docx": "FILE_DAMAGED", "pptx": "FILE_DAMAGED", "xlsx": "FILE_DAMAGED", "epub": "FILE_DAMAGED"}
    for name, data in good_files().items():
        kind = name.rpartition(".")[2]
        for percent in (1, 25, 60, 99):
            cut = max(1, len(data) * percent // 100)
            keeps = WORDS if percent >= 60 and kind in ("html", "md", "csv", "json", "txt", "eml") else ""
            # Even a hundredth of a container still begins like one.
            yield BadFile(f"cut-{percent}.{kind}", lambda data=data, cut=cut: data[:cut], reasons.get(kind, ""), keeps)  # type: ignore[misc]


def flipped() -> Iterator[BadFile]:
    for name, data in good_files().items():
        for seed in range(4):

            def flipped(data: bytes = data, seed: int = seed) -> bytes:
                chance = random.Random(seed)
                changed = bytearray(data)
                for _ in range(1 + len(data) // 400):
                    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                return bytes(changed)

            yield BadFile(f"flipped-{seed}-{name}", flipped)


def misnamed() -> Iterator[BadFile]:
    good = good_files()
    for kind, claimed in (("docx", "pdf"), ("pdf", "docx"), ("xlsx", "docx"), ("pptx", "xlsx"), ("epub", "zip"),
                          ("html", "txt"), ("html", "docx"), ("docx", "txt"), ("json", "txt")):  # fmt: skip
        yield BadFile(f"{kind}-named.{claimed}", lambda kind=kind: good[f"good.{kind}"], keeps=WORDS)  # type: ignore[misc]
    yield BadFile("text-named.docx", WORDS.encode, "FILE_DAMAGED")
    yield BadFile("text-named.xlsx", lambda: b"a,b\n1,2\n", "FILE_DAMAGED")
    yield BadFile("text-named.epub", WORDS.encode, "FILE_DAMAGED")
    yield BadFile("text-named.pdf", WORDS.encode, "PDF_BROKEN")
    yield BadFile("random.docx", lambda: random.Random(1).randbytes(4096), "FILE_DAMAGED")
    yield BadFile("random.pdf", lambda: random.Random(2).randbytes(4096), "PDF_BROKEN")
    yield BadFile("random.txt", lambda: random.Random(3).randbytes(4096), "UNSUPPORTED_TYPE")
    yield BadFile("random.html", lambda: random.Random(4).randbytes(4096), "UNSUPPORTED_TYPE")
    yield BadFile("program.txt", lambda: b"\x7fELF" + bytes(200), "UNSUPPORTED_TYPE")
    yield BadFile("archive.docx", lambda: zip_of({"holiday.jpg": b"\xff\xd8\xff"}), "FILE_DAMAGED")
    yield BadFile("empty-archive.epub", lambda: zip_of({}), "FILE_DAMAGED")
    yield BadFile("page.xls", f"<html><body><p>{WORDS}</p></body></html>".encode, keeps=WORDS)


def polyglots() -> Iterator[BadFile]:
    good = good_files()
    yield BadFile("pdf-and-zip.pdf", lambda: good["good.pdf"] + good["good.docx"], keeps=WORDS)
    yield BadFile("gif-and-page.html", lambda: b"GIF89a/*" + good["good.html"])
    yield BadFile("page-and-pdf.html", lambda: b"<html>%PDF-1.4" + good["good.html"])
    yield BadFile("zip-behind-text.txt", lambda: WORDS.encode() + b"\n\n" + good["good.docx"])
    yield BadFile("prefixed.docx", lambda: b"#!/bin/sh\nexit\n" + good["good.docx"])
    yield BadFile("followed.docx", lambda: good["good.docx"] + b"garbage" * 100, keeps=WORDS)
    yield BadFile("csv-in-html.csv", lambda: b"<html>,<b>\n" + WORDS.encode() + b",2\n", keeps=WORDS)
