"""Office files and e-books that are made to be slow."""

from tests.unit.ingest.office_files import (
    chart_part,
    docx_of,
    epub_parts,
    paragraph,
    pptx_of,
    pptx_parts,
    relationships,
    shape,
    zip_of,
)
from tests.unit.ingest.slow.case import SENTENCE, SlowFile


def _notes(n: int) -> bytes:
    notes = f'<w:footnote w:id="7"><w:p><w:r><w:t>{"note " * n}</w:t></w:r></w:p></w:footnote>'
    mark = '<w:p><w:r><w:t>x</w:t></w:r><w:r><w:footnoteReference w:id="7"/></w:r></w:p>'
    return docx_of(mark * n, footnotes=notes)


def _docx_rows(n: int, properties: str = "", first: str = "") -> bytes:
    def row(cells: str) -> str:
        return f"<w:tr><w:trPr>{properties}</w:trPr>{cells}</w:tr>"

    def cell(text: str) -> str:
        return f"<w:tc>{paragraph(text)}</w:tc>"

    wide = row("".join(cell(f"n{i}") for i in range(n)))
    return docx_of(f"<w:tbl>{wide}{row(cell('a') + cell('b')) * n}</w:tbl>")


def _slide_of_charts(n: int) -> bytes:
    chart = "http://schemas.openxmlformats.org/drawingml/2006/chart"
    frame = f'<p:graphicFrame><c:chart xmlns:c="{chart}" r:id="rId1"/></p:graphicFrame>'
    parts = pptx_parts([shape(["words"]) + frame * n])
    parts["ppt/slides/_rels/slide1.xml.rels"] = relationships({"rId1": ("chart", "../charts/chart1.xml")})
    parts["ppt/charts/chart1.xml"] = chart_part({"": range(n)}, [f"value {i}" for i in range(n)])
    return zip_of(parts)


def _notes_of_slides(n: int) -> bytes:
    """All slides have the same notes."""
    parts = pptx_parts([shape(["words"])] * n, dict.fromkeys(range(1, n + 1), "x"))
    notes = parts["ppt/notesSlides/notesSlide1.xml"]
    for number in range(1, n + 1):
        parts.pop(f"ppt/notesSlides/notesSlide{number}.xml")
        parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relationships(
            {"rId1": ("notesSlide", "../notesSlides/notesSlide1.xml")}
        )
    parts["ppt/notesSlides/notesSlide1.xml"] = str(notes).replace(">x<", f">{'note ' * 50 * n}<")
    return zip_of(parts)


def _slide_table(n: int) -> bytes:
    text = "<a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody>"
    first = f"<a:tr><a:tc>{text.format('long ' * n)}</a:tc><a:tc>{text.format('b')}</a:tc></a:tr>"
    rows = f'<a:tr><a:tc vMerge="1"/><a:tc>{text.format("c")}</a:tc></a:tr>' * n
    return pptx_of([f"<p:graphicFrame><a:tbl>{first}{first}{rows}</a:tbl></p:graphicFrame>"])


def _contents_lists(n: int) -> bytes:
    parts = epub_parts({"c.xhtml": f"<p>{SENTENCE}</p>"}, toc={f"c{i}.xhtml": "t" for i in range(n)})
    nav = '<item id="nav{}" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
    opf = str(parts["OEBPS/book.opf"])
    parts["OEBPS/book.opf"] = opf.replace("</manifest>", "".join(nav.format(i) for i in range(n)) + "</manifest>")
    return zip_of(parts)


OFFICE = {
    "docx: paragraphs": SlowFile("a.docx", 1_000, lambda n: docx_of(paragraph(SENTENCE) * n)),
    "docx: notes": SlowFile("a.docx", 700, _notes),
    "docx: header wider than rows": SlowFile("a.docx", 500, _docx_rows),
    "docx: rows that are all headers": SlowFile("a.docx", 500, lambda n: _docx_rows(n, "<w:tblHeader/>")),
    "pptx: paragraphs": SlowFile("a.pptx", 2_000, lambda n: pptx_of([shape([SENTENCE] * n)])),
    "pptx: charts": SlowFile("a.pptx", 100, _slide_of_charts),
    "pptx: notes": SlowFile("a.pptx", 50, _notes_of_slides),
    "pptx: merged cells": SlowFile("a.pptx", 700, _slide_table),
    "epub: tables of contents": SlowFile("a.epub", 200, _contents_lists),
    "epub: attributes in contents": SlowFile(
        "a.epub",
        3_000,
        lambda n: zip_of(
            {
                **epub_parts({"c.xhtml": f"<p>{SENTENCE}</p>"}),
                "OEBPS/nav.xhtml": "<p " + " ".join(f"a{i}=1" for i in range(n)) + ">",
            }
        ),
    ),
}
