"""Writes small office files and e-books for tests, part by part, so that a test says exactly what is in them."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


def zip_of(parts: Mapping[str, str | bytes], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP file with these parts, the same bytes on every call."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), content, compression)
    return out.getvalue()


def relationships(links: Mapping[str, tuple[str, str]]) -> str:
    """A part that says which id stands for which (kind, target)."""
    entries = "".join(
        f'<Relationship Id="{key}" Type="{_R}/{kind}" Target="{target}"/>' for key, (kind, target) in links.items()
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{entries}</Relationships>'
    )


def paragraph(text: str, style: str = "", properties: str = "") -> str:
    """A Word paragraph."""
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f'<w:p><w:pPr>{styled}{properties}</w:pPr><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def docx_parts(body: str, *, styles: str = "", numbering: str = "", footnotes: str = "") -> dict[str, str | bytes]:
    """The parts of a Word file whose body is this XML."""
    standard = "".join(
        f'<w:style w:type="paragraph" w:styleId="H{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2, 3)
    )
    return {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": relationships({"rId1": ("officeDocument", "word/document.xml")}),
        "word/document.xml": f'<w:document xmlns:w="{_W}" xmlns:r="{_R}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{_W}">{standard}{styles}</w:styles>',
        "word/numbering.xml": f'<w:numbering xmlns:w="{_W}">{numbering}</w:numbering>',
        "word/footnotes.xml": f'<w:footnotes xmlns:w="{_W}">{footnotes}</w:footnotes>',
    }


def docx_of(body: str, **parts: str) -> bytes:
    """A Word file whose body is this XML."""
    return zip_of(docx_parts(body, **parts))


def shape(lines: Sequence[str], placeholder: str = "") -> str:
    """A shape on a slide, one paragraph a line."""
    kind = f'<p:nvPr><p:ph type="{placeholder}"/></p:nvPr>' if placeholder else "<p:nvPr/>"
    text = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in lines)
    return f"<p:sp><p:nvSpPr>{kind}</p:nvSpPr><p:txBody>{text}</p:txBody></p:sp>"


def pptx_parts(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> dict[str, str | bytes]:
    """The parts of a presentation whose slides hold these shapes; `notes` by slide number from 1."""
    space = f'xmlns:p="{_P}" xmlns:a="{_A}" xmlns:r="{_R}"'
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": relationships({"rId1": ("officeDocument", "ppt/presentation.xml")}),
        "ppt/presentation.xml": f"<p:presentation {space}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relationships(
            {f"rId{n}": ("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)}
        ),
    }
    for number, shapes in enumerate(slides, 1):
        parts[f"ppt/slides/slide{number}.xml"] = (
            f"<p:sld {space}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
        if notes and number in notes:
            parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relationships(
                {"rId1": ("notesSlide", f"../notesSlides/notesSlide{number}.xml")}
            )
            body = shape([notes[number]], "body") + shape([str(number)], "sldNum")
            parts[f"ppt/notesSlides/notesSlide{number}.xml"] = f"<p:notes {space}><p:cSld>{body}</p:cSld></p:notes>"
    return parts


def pptx_of(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """A presentation whose slides hold these shapes."""
    return zip_of(pptx_parts(slides, notes))


def xlsx_parts(rows: str, *, merged: str = "", dimension: str = "A1") -> dict[str, str | bytes]:
    """The parts of a workbook whose one sheet has these rows."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    merges = f"<mergeCells>{merged}</mergeCells>" if merged else ""
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/xl/workbook.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>'
    )
    sheets = '<sheets><sheet name="Data" sheetId="1" r:id="rId1"/></sheets>'
    data = f'<dimension ref="{dimension}"/><sheetData>{rows}</sheetData>{merges}'
    return {
        "[Content_Types].xml": types,
        "_rels/.rels": relationships({"rId1": ("officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": f'<workbook {space} xmlns:r="{_R}">{sheets}</workbook>',
        "xl/_rels/workbook.xml.rels": relationships({"rId1": ("worksheet", "worksheets/sheet1.xml")}),
        "xl/worksheets/sheet1.xml": f"<worksheet {space}>{data}</worksheet>",
    }


def sheet_rows(rows: Sequence[Sequence[str]]) -> str:
    """Rows of inline texts."""
    return "".join(
        f'<row r="{number}">'
        + "".join(
            f'<c r="{chr(65 + i)}{number}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
            for i, cell in enumerate(row)
        )
        + "</row>"
        for number, row in enumerate(rows, 1)
    )


def xlsx_of(rows: Sequence[Sequence[str]]) -> bytes:
    """A workbook of one sheet of texts."""
    return zip_of(xlsx_parts(sheet_rows(rows)))


def epub_parts(chapters: Mapping[str, str], *, toc: Mapping[str, str] | None = None) -> dict[str, str | bytes]:
    """The parts of an e-book: chapter bodies by file name, and titles in the table of contents by file name."""
    items = "".join(
        f'<item id="c{i}" href="text/{name}" media-type="application/xhtml+xml"/>' for i, name in enumerate(chapters)
    )
    refs = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
    links = "".join(f'<li><a href="text/{name}">{escape(title)}</a></li>' for name, title in (toc or {}).items())
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:title>The Lighthouse</dc:title></metadata><manifest>{items}<item id="nav" href="nav.xhtml" properties="nav" '
        f'media-type="application/xhtml+xml"/></manifest><spine>{refs}</spine></package>',
        "OEBPS/nav.xhtml": f"<html><body><nav><ol>{links}</ol></nav></body></html>",
    }
    for name, body in chapters.items():
        parts[f"OEBPS/text/{name}"] = (
            '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml">'
            f"<head><title/></head><body>{body}</body></html>"
        )
    return parts


def epub_of(chapters: Mapping[str, str], *, toc: Mapping[str, str] | None = None) -> bytes:
    """An e-book of these chapters."""
    return zip_of(epub_parts(chapters, toc=toc))


def chart_part(
    series: Mapping[str, Sequence[float]],
    categories: Sequence[str],
    *,
    title: str = "",
    sheet: str = "Sheet1",
    number_format: str = "General",
) -> str:
    """The part of a bar chart: series by name, one value for each category, taken from `sheet`."""
    space = f'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="{_A}"'

    def cache(kind: str, texts: Sequence[object], code: str = "") -> str:
        points = "".join(f'<c:pt idx="{i}"><c:v>{escape(str(text))}</c:v></c:pt>' for i, text in enumerate(texts))
        coded = f"<c:formatCode>{escape(code)}</c:formatCode>" if code else ""
        return (
            f"<c:{kind}Ref><c:f>'{sheet}'!$A$1:$A$9</c:f><c:{kind}Cache>{coded}{points}</c:{kind}Cache></c:{kind}Ref>"
        )

    every = "".join(
        f"<c:ser><c:tx>{cache('str', [name])}</c:tx><c:cat>{cache('str', categories)}</c:cat>"
        f"<c:val>{cache('num', values, number_format)}</c:val></c:ser>"
        for name, values in series.items()
    )
    heading = f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{escape(title)}</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    return (
        f"<c:chartSpace {space}><c:chart>{heading if title else ''}<c:plotArea><c:barChart>{every}</c:barChart></c:plotArea>"
        "</c:chart></c:chartSpace>"
    )
