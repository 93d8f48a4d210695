"""XML and HTML, Markdown and JSON as attackers write them: entities, and nesting without end."""

from collections.abc import Iterator

from tests.unit.ingest.malformed.case import MANY, WORDS, BadFile
from tests.unit.ingest.malformed.good import telegram_export, telegram_message
from tests.unit.ingest.office_files import (
    docx_of,
    docx_parts,
    epub_of,
    epub_parts,
    paragraph,
    pptx_of,
    pptx_parts,
    shape,
    sheet_rows,
    xlsx_parts,
    zip_of,
)

_LAUGHS = (
    "<!DOCTYPE a [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 10)) + "]>"
)
_EXTERNAL = "<!DOCTYPE a [<!ENTITY a9 SYSTEM 'file:///etc/passwd'>]>"
_PARAMETER = "<!DOCTYPE a [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/x.dtd'> %p; <!ENTITY a9 'x'>]>"
_QUADRATIC = f"<!DOCTYPE a [<!ENTITY a9 '{'a' * 50_000}'>]>"


def xml_attacks() -> Iterator[BadFile]:
    for label, prolog in (
        ("laughs", _LAUGHS),
        ("external", _EXTERNAL),
        ("parameter", _PARAMETER),
        ("quadratic", _QUADRATIC),
    ):
        times = 1000 if label == "quadratic" else 1
        text = "&a9;" * times

        def part(parts: dict[str, str | bytes], name: str, prolog: str = prolog, text: str = text) -> bytes:
            changed = str(parts[name]).replace("ENTITY", text)
            return zip_of({**parts, name: prolog + changed.partition("?>")[2] if "?>" in changed else prolog + changed})

        yield BadFile(
            f"{label}.docx", lambda part=part: part(docx_parts(paragraph("ENTITY")), "word/document.xml"), "UNSAFE_XML"
        )  # type: ignore[misc]
        yield BadFile(
            f"{label}-rels.docx", lambda part=part: part(docx_parts(paragraph("x")), "_rels/.rels"), "UNSAFE_XML"
        )  # type: ignore[misc]
        yield BadFile(
            f"{label}.pptx",
            lambda part=part: part(pptx_parts([shape(["ENTITY"])]), "ppt/slides/slide1.xml"),
            "UNSAFE_XML",
        )  # type: ignore[misc]
        yield BadFile(
            f"{label}-sheet.xlsx",
            lambda part=part: part(xlsx_parts(sheet_rows([["ENTITY"]])), "xl/worksheets/sheet1.xml"),
            "UNSAFE_XML",
        )  # type: ignore[misc]
        yield BadFile(
            f"{label}-book.xlsx",
            lambda part=part: part(xlsx_parts(sheet_rows([["x"]])), "xl/workbook.xml"),
            "UNSAFE_XML",
        )  # type: ignore[misc]
        yield BadFile(
            f"{label}.epub", lambda part=part: part(epub_parts({"c.xhtml": "x"}), "OEBPS/book.opf"), "UNSAFE_XML"
        )  # type: ignore[misc]
        yield BadFile(
            f"{label}-chapter.epub",
            lambda part=part: part(epub_parts({"c.xhtml": f"<p>{WORDS}</p>ENTITY"}), "OEBPS/text/c.xhtml"),
            keeps=WORDS,
        )  # type: ignore[misc]
        html = f"{prolog}<html><body><p>{WORDS}</p><p>{text}</p></body></html>"
        yield BadFile(f"{label}.html", lambda html=html: html.encode(), keeps=WORDS)  # type: ignore[misc]
        yield BadFile(
            f"{label}.svg", lambda prolog=prolog: f"{prolog}<svg><text>&a9;</text></svg>".encode(), "UNSAFE_XML"
        )  # type: ignore[misc]
    wide = f"{_LAUGHS}<w:document/>".encode("utf-16")
    yield BadFile("laughs-utf16.docx", lambda: zip_of({**docx_parts(""), "word/document.xml": wide}), "UNSAFE_XML")


def nested() -> Iterator[BadFile]:
    for tag in ("div", "blockquote", "ul><li", "b", "span", "table><tr><td", "a", "section", "font", "svg"):
        html = f"<p>{WORDS}</p>" + f"<{tag}>" * MANY + "deep"
        yield BadFile(f"nested-{tag.partition('>')[0]}.html", lambda html=html: html.encode(), keeps=WORDS)  # type: ignore[misc]
    yield BadFile("closed-div.html", (f"<p>{WORDS}</p>" + "<div>" * MANY + "</div>" * MANY).encode, keeps=WORDS)
    for label, mark in (("quotes", ">"), ("brackets", "["), ("images", "!["), ("stars", "**a "), ("ticks", "`` ` "),
                        ("links", "[a]("), ("tags", "<a>"), ("underscores", "_a"), ("backslashes", "\\")):  # fmt: skip
        text = f"{WORDS}.\n\n" + mark * (MANY if label in ("quotes", "brackets") else 20_000)
        yield BadFile(f"nested-{label}.md", lambda text=text: text.encode(), keeps=WORDS)  # type: ignore[misc]
    lists = "".join(" " * (2 * i) + "- a\n" for i in range(1500))
    yield BadFile("nested-lists.md", f"{WORDS}.\n\n{lists}".encode, keeps=WORDS)
    yield BadFile("nested-arrays.json", lambda: b'{"name": "x", "messages": ' + b"[" * MANY, "FILE_DAMAGED")
    yield BadFile("nested-objects.json", lambda: b'{"name": "x", "messages": [' + b'{"a":' * MANY, "FILE_DAMAGED")
    yield BadFile(
        "nested-late.json",
        lambda: telegram_export(telegram_message(1, f'"{WORDS}"') + ',{"text": ' + "[" * MANY),
        keeps=WORDS,
    )
    deep = "<w:tbl><w:tr><w:tc>" * MANY
    yield BadFile("nested-tables.docx", lambda: docx_of(paragraph(WORDS) + deep), "FILE_DAMAGED", WORDS)
    controls = "<w:sdt><w:sdtContent>" * 100 + paragraph(WORDS) + "</w:sdtContent></w:sdt>" * 100
    yield BadFile("nested-controls.docx", lambda: docx_of(controls), keeps=WORDS)
    yield BadFile("nested-groups.pptx", lambda: pptx_of([shape([WORDS]) + "<p:grpSp>" * MANY]), "FILE_DAMAGED", WORDS)
    yield BadFile("nested.epub", lambda: epub_of({"c.xhtml": f"<p>{WORDS}</p>" + "<div>" * MANY}), keeps=WORDS)
