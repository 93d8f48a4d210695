"""What each format becomes."""

import io
from pathlib import Path

import pytest

from kit.testing.pdf_files import pdf_of
from services.ingest.errors import DocumentRejected
from services.ingest.reading import detection
from services.ingest.reading.cleaning import clean
from services.ingest.reading.decoding import decode
from services.ingest.reading.models import BlockKind, CleanDocument, ParsedDocument
from services.ingest.reading.parsers.registry import parse

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def read(tmp_path: Path):  # type: ignore[no-untyped-def]
    def read(data: bytes | str, name: str) -> tuple[ParsedDocument, CleanDocument]:
        path = tmp_path / "spooled"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        parsed = parse(path, detection.detect_media_type(io.BytesIO(path.read_bytes()), name), name)
        return parsed, clean(parsed)

    return read


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        (b"", "a.pdf", detection.EMPTY),
        (b"%PDF-1.7 ...", "a.txt", detection.PDF),
        (b"\n\n%PDF-1.7 ...", "a.pdf", detection.PDF),
        (b"no pdf at all", "a.pdf", detection.PDF),
        (b"plain words", "a.txt", detection.PLAIN),
        (b"plain words", "README", detection.PLAIN),
        (b"<!DOCTYPE html><html>", "a.txt", detection.HTML),
        (b"<p>hi", "a.html", detection.HTML),
        (b"# Title", "a.MD", detection.MARKDOWN),
        (b"a,b\n1,2", "a.csv", detection.CSV),
        ("wörter".encode("utf-16"), "a.txt", detection.PLAIN),
        ("words".encode("utf-16-le"), "a.txt", detection.PLAIN),
        (b"PK\x03\x04", "a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (b"PK\x03\x04", "a.txt", "application/zip"),
        (b"\xff\xd8\xff\xe0", "a.md", "image/jpeg"),
        (b"{}", "a.json", detection.JSON),
        (bytes(range(256)), "a.txt", detection.BINARY),
        (b"".join(number.to_bytes(2, "little") for number in range(1, 64)), "numbers.txt", detection.BINARY),
        (b"\x00\x01\x02\x03" * 50, "numbers.txt", detection.BINARY),
    ],
)
def test_type_is_found_by_content(head: bytes, name: str, expected: str) -> None:
    assert detection.media_type_of(head, name) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("naïve ☕".encode(), "naïve ☕"),
        (b"\xef\xbb\xbfhello", "hello"),
        ("Grüße".encode("utf-16"), "Grüße"),
        ("Grüße an alle".encode("utf-16-be"), "Grüße an alle"),
        ("Die schöne Straße kostet 3,50 € – „günstig“, größer für Bücher".encode("cp1252"), None),
        ("Привет, как дела? Это проверка кодировки.".encode("cp1251"), None),
        ("これは日本語の文章です。文字コードを確認します。".encode("shift_jis"), None),
        (b"", ""),
    ],
)
def test_text_is_read_in_its_encoding(data: bytes, expected: str | None) -> None:
    originals = {
        "Die schöne Straße kostet 3,50 € – „günstig“, größer für Bücher",
        "Привет, как дела? Это проверка кодировки.",
        "これは日本語の文章です。文字コードを確認します。",
    }
    decoded = decode(data)
    assert decoded.text == expected if expected is not None else decoded.text in originals


def test_html_declaration_is_believed() -> None:
    page = '<meta charset="windows-1251"><p>Добрый день</p>'.encode("cp1251")
    assert "Добрый день" in decode(page, is_html=True).text


def test_control_characters_and_direction_marks_are_removed(read) -> None:  # type: ignore[no-untyped-def]
    _, document = read("a\x00b\x07c \u202egnp\u202c d\u00ade\u200bf \ufb01n", "a.txt")
    assert document.text == "abc gnp def fin"


def test_wrapped_text_is_unwrapped_and_an_address_is_not(read) -> None:  # type: ignore[no-untyped-def]
    wrapped = (
        "The quick brown fox jumps over the lazy dog and then\nruns into the forest where it stays for the rest of\nthe day."
        "\n\nJane Doe\n1 Main Street\nSpringfield"
    )
    _, document = read(wrapped, "a.txt")
    first, second = document.text.split("\n\n")
    assert "\n" not in first
    assert second == "Jane Doe\n1 Main Street\nSpringfield"


def test_markdown_keeps_structure_and_drops_marks(read) -> None:  # type: ignore[no-untyped-def]
    source = """---
title: The Guide
---
# Install
Run **make** with [care](http://x.y) and `sudo`.

```sh
# not a heading
make   run
```

- one
  - two

| Name | Price |
|---|---|
| Tea | 3 |

<!-- hidden --><p>html words</p>
"""
    parsed, document = read(source, "guide.md")
    assert parsed.title == "The Guide"
    kinds = [(block.kind, block.text) for block in parsed.blocks]
    assert (BlockKind.HEADING, "Install") in kinds
    assert (BlockKind.CODE, "# not a heading\nmake   run") in kinds
    assert (BlockKind.TABLE, "Name: Tea; Price: 3") in kinds
    assert "Run make with care and sudo." in document.text
    assert "- one\n  - two" in document.text
    assert "html words" in document.text
    assert "hidden" not in document.text


def test_html_keeps_what_a_reader_sees(read) -> None:  # type: ignore[no-untyped-def]
    page = """<html><head><title>Tea</title><style>p{}</style></head><body><nav>Home About</nav>
    <h1>All about tea</h1><script>var x = 1;</script><p>Tea is<br>hot &amp; wet.</p>
    <ul><li>green<ul><li>sencha</li></ul></li><li>black</li></ul>
    <table><tr><th>Kind</th><th>Price</th></tr><tr><td>Green</td><td>3</td></tr></table>
    <pre>a
  b</pre><div hidden>secret</div><footer>Imprint</footer></body></html>"""
    parsed, document = read(page, "tea.html")
    assert parsed.title == "Tea"
    assert document.text.split("\n\n") == [
        "All about tea",
        "Tea is\nhot & wet.",
        "- green\n  - sencha\n- black",
        "Kind: Green; Price: 3",
        "a\n  b",
    ]


def test_layout_table_is_read_as_text(read) -> None:  # type: ignore[no-untyped-def]
    _, document = read(
        "<table><tr><td>menu</td><td><p>First.</p><p>Second.</p>" + "x " * 2000 + "</td></tr></table>", "a.html"
    )
    assert "First.\n\nSecond." in document.text


def test_deeply_nested_html_does_not_crash(read) -> None:  # type: ignore[no-untyped-def]
    _, document = read("<div>" * 20_000 + "deep" + "</div>" * 20_000, "a.html")
    assert document.text == "deep"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_rows_carry_their_column_names(read, delimiter: str) -> None:  # type: ignore[no-untyped-def]
    table = "\n".join(
        delimiter.join(row) for row in [["name", "city", "year"], ["Ann", "Bonn", "1990"], ["Bob", "", "1991"]]
    )
    _, document = read(table, "people.csv")
    assert document.text == "name: Ann; city: Bonn; year: 1990\nname: Bob; year: 1991"


def test_csv_without_header_gets_numbered_columns(read) -> None:  # type: ignore[no-untyped-def]
    _, document = read("1,2\n3,4\n", "numbers.csv")
    assert document.text == "column 1: 1; column 2: 2\ncolumn 1: 3; column 2: 4"


def test_csv_survives_quotes_newlines_and_ragged_rows(read) -> None:  # type: ignore[no-untyped-def]
    parsed, document = read('a,b\n"x\ny, ""z""",2\n1\n1,2,3\n', "odd.csv")
    assert 'a: x y, "z"; b: 2' in document.text
    assert "column 3: 3" in document.text
    assert any("do not have" in warning for warning in parsed.warnings)


def test_huge_line_is_read(read) -> None:  # type: ignore[no-untyped-def]
    _, document = read("word " * 400_000, "line.txt")
    assert len(document.text) == 5 * 400_000 - 1


LONG = "This line is long enough to count as a full line of the page, or nearly so,"


def test_pdf_pages_are_paragraphs_without_headers_footers_and_page_numbers(read) -> None:  # type: ignore[no-untyped-def]
    pages = [
        [
            "Annual Report",
            "",
            LONG,
            f"and number {n} continues here until it ends.",
            "",
            "",
            f"Second paragraph {n}.",
            "",
            "",
            f"Page {n} of 3",
        ]
        for n in (1, 2, 3)
    ]
    parsed, document = read(pdf_of(pages), "report.pdf")
    assert parsed.page_statuses == ("text", "text", "text")
    assert "Annual Report" not in document.text
    assert "Page 1 of 3" not in document.text
    assert f"{LONG} and number 2 continues here until it ends.\n\nSecond paragraph 2." in document.text
    assert [section.page for section in document.sections] == [1, 1, 2, 2, 3, 3]
    first = document.lines[0]
    assert 70 < first.box[0] < 75
    assert first.box[1] < first.box[3] < 150


def test_pdf_words_broken_at_line_ends_are_joined(read) -> None:  # type: ignore[no-untyped-def]
    lines = [
        "The committee has decided to recom-",
        "mend a well-known and often state-of-",
        "the-art method to everybody in town.",
    ]
    _, document = read(pdf_of([lines]), "a.pdf")
    assert "recommend a well-known" in document.text


def test_pdf_page_without_text_is_reported(read) -> None:  # type: ignore[no-untyped-def]
    parsed, _ = read(pdf_of([["Hello world."], []]), "a.pdf")
    assert parsed.page_statuses == ("text", "empty")
    assert parsed.warnings == ("page 2 has no text",)


@pytest.mark.parametrize(
    ("data", "name", "reason", "says"),
    [
        (b"", "a.txt", "EMPTY_FILE", "0 bytes"),
        (b"\x00\x01\x02\x03" * 50, "a.bin", "UNSUPPORTED_TYPE", "Supported are PDF"),
        (b"%PDF-1.4 rubbish", "a.pdf", "PDF_BROKEN", "damaged"),
        (b"not a pdf", "a.pdf", "PDF_BROKEN", "damaged"),
        (pdf_of([[], []]), "scan.pdf", "NO_TEXT", "no readable text on its 2 pages: nothing is printed there"),
        (pdf_of([[]]), "scan.pdf", "NO_TEXT", "no readable text on its only page: nothing is printed there"),
        ((DATA / "encrypted.pdf").read_bytes(), "secret.pdf", "PDF_ENCRYPTED", "password"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_unreadable_file_is_rejected_with_its_reason(read, data: bytes, name: str, reason: str, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DocumentRejected) as rejected:
        read(data, name)
    assert rejected.value.reason == reason
    assert says in rejected.value.message
    assert name in rejected.value.message
