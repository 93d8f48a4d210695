"""Makes the sample documents in formats that nobody writes by hand, a PDF and a Word file, from the texts in scripts/samples: the
same bytes on every machine. With --check it writes nothing and fails when what is committed differs."""

import io
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ROOT / "scripts" / "samples"
SAMPLES = ROOT / "services" / "gateway" / "samples"

PAGE_BREAK = "---"
SIZES_POINTS = {"# ": 20, "## ": 14, "": 11}
"""Of a line of the PDF, by how it begins."""

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_STYLES = {"# ": "Heading1", "## ": "Heading2"}


def pdf_of(text: str) -> bytes:
    """A PDF of A4 pages in Helvetica, uncompressed. A line `---` ends a page; no line is broken."""
    pages = [page.strip("\n").split("\n") for page in text.split(f"\n{PAGE_BREAK}\n")]
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    objects += [
        f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>"
        for name in ("Helvetica", "Helvetica-Bold")
    ]
    kids = []
    for page in pages:
        content = _painted(page)
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    return _pdf_file(objects)


def _painted(lines: Sequence[str]) -> str:
    """The operators that paint these lines from the top of a page."""
    y, painted = 780, []
    for line in lines:
        mark, shown = _split(line)
        size = SIZES_POINTS[mark]
        y -= round(size * 1.5) + (10 if mark else 0)
        escaped = shown.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        painted.append(f"BT /{'F2' if mark else 'F1'} {size} Tf 1 0 0 1 64 {y} Tm ({escaped}) Tj ET")
    return "\n".join(painted)


def _pdf_file(objects: Sequence[str]) -> bytes:
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    tail = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + head.encode() + tail.encode()


def docx_of(text: str) -> bytes:
    """A Word file: headings, paragraphs, and rows of `| … |` lines as a table."""
    body = "".join(_blocks(text.strip("\n").split("\n")))
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{style}"><w:name w:val="heading {style[-1]}"/>'
        f'<w:pPr><w:spacing w:before="240"/></w:pPr><w:rPr><w:b/><w:sz w:val="{2 * SIZES_POINTS[mark]}"/></w:rPr></w:style>'
        for mark, style in _STYLES.items()
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{_WORD_TYPE}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{_WORD_TYPE}.styles+xml"/></Types>',
        "_rels/.rels": _relationship("officeDocument", "word/document.xml"),
        "word/_rels/document.xml.rels": _relationship("styles", "styles.xml"),
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(
                name, (2026, 1, 1, 0, 0, 0)
            )  # stored, not deflated: zlib differs from machine to machine
            entry.create_system = 0
            archive.writestr(entry, _XML + content)
    return out.getvalue()


def _relationship(kind: str, target: str) -> str:
    link = f'<Relationship Id="rId1" Type="{_OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{link}</Relationships>'


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    rows: list[str] = []
    for line in (*lines, ""):
        if line.startswith("|"):
            rows.append(_row(line))
            continue
        if rows:
            yield f"<w:tbl>{''.join(rows)}</w:tbl>"
            rows = []
        if line:
            yield _paragraph(line)


def _row(line: str) -> str:
    cells = (_paragraph(cell.strip()) for cell in line.strip("|").split("|"))
    return f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in cells)}</w:tr>"


def _paragraph(line: str) -> str:
    mark, shown = _split(line)
    style = f'<w:pPr><w:pStyle w:val="{_STYLES[mark]}"/></w:pPr>' if mark else ""
    return f'<w:p>{style}<w:r><w:t xml:space="preserve">{escape(shown)}</w:t></w:r></w:p>'


def _split(line: str) -> tuple[str, str]:
    """The mark of a heading, empty if it is none, and the text."""
    mark = next((mark for mark in ("## ", "# ") if line.startswith(mark)), "")
    return mark, line.removeprefix(mark)


def made() -> dict[Path, bytes]:
    """Every file that is made from a text."""
    return {
        SAMPLES / "skylark-s2-manual.pdf": pdf_of((TEXTS / "skylark-s2-manual.txt").read_text("utf-8")),
        SAMPLES / "warranty-and-returns.docx": docx_of((TEXTS / "warranty-and-returns.txt").read_text("utf-8")),
    }


def main(arguments: Sequence[str]) -> int:
    """Writes them, or with --check compares; the exit code."""
    if "--check" not in arguments:
        for path, content in made().items():
            path.write_bytes(content)
        return 0
    stale = [path for path, content in made().items() if not path.is_file() or path.read_bytes() != content]
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run make gen and commit it\n")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
