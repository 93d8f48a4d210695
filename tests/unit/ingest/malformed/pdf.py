"""Bad PDFs: references in circles, tables of offsets that lie, claims beyond all measure."""

import re
import zlib
from collections.abc import Callable, Iterator

from kit.testing.pdf_files import pdf_of
from tests.unit.ingest.malformed.case import WORDS, BadFile

Case = tuple[str, Callable[[], bytes], str, str]
_MANY = 100_000


def _plain(*objects: str, trailer: str = "", start: str = "") -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalog."""
    out = "%PDF-1.7\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(
        f"{place:010d} 00000 n \n" for place in places
    )
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{start or table}\n%%EOF"
    return out.encode("latin-1")


def pdfs() -> Iterator[BadFile]:
    """All bad PDFs."""
    return (BadFile(*case) for case in _cases(WORDS))


def _cases(words: str) -> Iterator[Case]:
    """(name, bytes, the only right reason, words that a reading must hold)."""
    catalog = "<< /Type /Catalog /Pages 2 0 R >>"
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    text = f"BT /F1 11 Tf 72 700 Td ({words}) Tj ET"
    stream = f"<< /Length {len(text)} >>\nstream\n{text}\nendstream"
    pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"

    def page(more: str = "/MediaBox [0 0 612 792]", contents: str = "4 0 R") -> str:
        return f"<< /Type /Page /Parent 2 0 R {more} /Contents {contents} /Resources << /Font << /F1 5 0 R >> >> >>"

    def one(
        kids: str = pages, sheet: str = page(), content: str = stream, trailer: str = "", start: str = ""
    ) -> Callable[[], bytes]:
        return lambda: _plain(catalog, kids, sheet, content, font, trailer=trailer, start=start)

    good = pdf_of([[words]])
    yield "sound.pdf", one(), "", words
    yield "kids-circle.pdf", one(kids="<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>"), "", ""
    yield "kids-only-itself.pdf", one(kids="<< /Type /Pages /Kids [2 0 R] /Count 1 >>"), "PDF_BROKEN", ""
    yield "parent-circle.pdf", one(sheet=page().replace("/Parent 2 0 R", "/Parent 3 0 R")), "", ""
    yield "reference-circle.pdf", one(content="4 0 R"), "", ""
    yield "contents-circle.pdf", one(sheet=page(contents="[4 0 R 3 0 R [3 0 R]]")), "", ""
    own_form = page().replace("/Font <<", "/XObject << /X 4 0 R >> /Font <<")
    form = stream.replace("/Length", "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length")
    yield "form-circle.pdf", one(sheet=own_form, content=form), "", ""
    yield "previous-circle.pdf", one(trailer="/Prev 9"), "", ""
    yield "previous-itself.pdf", lambda: re.sub(rb"/Root", b"/Prev 400 /Root", good), "", ""
    yield "wrong-start.pdf", one(start="7"), "", words
    yield "start-beyond.pdf", one(start="99999999999"), "", words
    yield "negative-start.pdf", one(start="-1"), "", words
    yield "no-table.pdf", lambda: good.replace(b"xref", b"xxxx"), "", words
    yield "wrong-offsets.pdf", lambda: re.sub(rb"\d{10} 00000 n", b"0000000001 00000 n", good), "", words
    yield "no-trailer.pdf", lambda: good.partition(b"trailer")[0], "PDF_BROKEN", ""
    yield "no-root.pdf", lambda: good.replace(b"/Root 1 0 R", b""), "", ""
    yield "no-pages.pdf", lambda: good.replace(b"/Pages 2 0 R", b""), "PDF_BROKEN", ""
    yield "no-contents.pdf", one(sheet="<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"), "NO_TEXT", ""
    yield "claims-pages.pdf", one(kids="<< /Type /Pages /Kids [3 0 R] /Count 2147483647 >>"), "", words
    yield "claims-minus-pages.pdf", one(kids="<< /Type /Pages /Kids [3 0 R] /Count -5 >>"), "", ""
    yield "missing-pages.pdf", one(kids=f"<< /Type /Pages /Kids [3 0 R {'99 0 R ' * 3000}] /Count 3001 >>"), "", words
    yield "same-page.pdf", one(kids=f"<< /Type /Pages /Kids [{'3 0 R ' * 300}] /Count 300 >>"), "", ""
    yield "huge-page.pdf", one(sheet=page("/MediaBox [0 0 1e38 1e38]")), "", ""
    yield "empty-page.pdf", one(sheet=page("/MediaBox [0 0 0 0]")), "", ""
    yield "turned-page.pdf", one(sheet=page("/MediaBox [0 0 612 792] /Rotate 37")), "", ""
    yield "no-box.pdf", one(sheet=page("")), "", words
    yield "odd-box.pdf", one(sheet=page("/MediaBox [(a) null 3 0 R]")), "", ""
    yield "length-lies.pdf", one(content=stream.replace(f"/Length {len(text)}", "/Length 999999999")), "", ""
    yield "length-is-itself.pdf", one(content=stream.replace(f"/Length {len(text)}", "/Length 4 0 R")), "", ""
    yield "nested-arrays.pdf", one(sheet=page("/MediaBox [0 0 612 792] /X " + "[" * _MANY)), "", ""
    yield "nested-dictionaries.pdf", one(sheet=page("/MediaBox [0 0 612 792] /X " + "<</A " * _MANY)), "", ""
    yield "nested-strings.pdf", one(content=f"<< /Length {_MANY} >>\nstream\n{'(' * _MANY}\nendstream"), "", ""
    yield "nested-states.pdf", one(content=f"<< /Length {2 * _MANY} >>\nstream\n{'q ' * _MANY}\nendstream"), "", ""
    yield "huge-type.pdf", one(content=stream.replace("11 Tf", "1e30 Tf")), "", ""
    yield "outside.pdf", one(content=stream.replace("72 700 Td", "-1e9 1e9 Td")), "", ""
    script = b"/Type /Catalog /OpenAction << /S /JavaScript /JS (app.alert(1)) >>"
    yield (
        "javascript.pdf",
        lambda: good.replace(b"/Type /Catalog", script),
        "",
        words,
    )
    yield "garbage-before.pdf", lambda: b"garbage\n" * 100 + good, "", words
    yield "garbage-behind.pdf", lambda: good + b"\0garbage" * 5000, "", words
    yield "twice.pdf", lambda: good + good, "", words
    yield "only-header.pdf", lambda: b"%PDF-1.7\n", "PDF_BROKEN", ""
    yield "only-header-and-end.pdf", lambda: b"%PDF-1.7\n%%EOF", "PDF_BROKEN", ""
    yield "version-99.pdf", lambda: good.replace(b"%PDF-1.4", b"%PDF-9.9"), "", words
    yield "unknown-protection.pdf", one(trailer="/Encrypt << /Filter /Bogus /V 99 >>"), "PDF_ENCRYPTED", ""
    yield "protection-circle.pdf", one(trailer="/Encrypt 1 0 R"), "", ""

    def packed(content: bytes, filters: str) -> bytes:
        body = _plain(catalog, pages, page(), "STREAM", font)
        head = f"<< /Length {len(content)} /Filter [{filters}] >>\nstream\n".encode()
        return body.replace(b"STREAM", head + content + b"\nendstream")

    yield "bomb.pdf", lambda: packed(zlib.compress(b" " * 60_000_000), "/FlateDecode"), "", ""
    twice = zlib.compress(zlib.compress(b" " * 60_000_000))
    yield "nested-bomb.pdf", lambda: packed(twice, "/FlateDecode /FlateDecode"), "", ""
    yield "many-filters.pdf", lambda: packed(b"x", "/ASCIIHexDecode " * 2000), "", ""
    yield "broken-stream.pdf", lambda: packed(b"not zlib at all", "/FlateDecode"), "NO_TEXT", ""
    yield "unknown-filter.pdf", lambda: packed(b"x", "/Klingon"), "NO_TEXT", ""
