"""Real files of other people's programs, where they are at hand: what our own small ones may have missed."""

import io
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.ingest.errors import DocumentRejected
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import PreparedDocument, PrepareRequest
from services.ingest.reading.parsers.registry import check_readable

DOCUMENTS = Path(os.environ.get("TEST_DOCUMENTS_DIR", Path(__file__).resolve().parents[4] / "shared" / "data" / "docs"))

pytestmark = pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="set TEST_DOCUMENTS_DIR")


@dataclass(frozen=True)
class Real:
    """A file, what must be found in one chunk each, and what must not be found at all."""

    file: str
    chunker: str
    holds: tuple[str, ...]
    lacks: tuple[str, ...] = ()
    title: str = ""


READABLE = (
    Real(
        "office/word_sample.docx",
        "headings",
        ("2. Don’t forget to drink water", "Leaves; Food: Ash, Elm, Maple; Calories per portion: 50"),
        title="Swimming in the lake",
    ),
    Real(
        "office/docx_lists.docx",
        "headings",
        ("  - List item 1.1", "    - List item 1.1.1", "4. Fourth item with numId 2"),
    ),
    Real(
        "office/docx_page_header_footer_first_page.docx",
        "recursive",
        ("This is body text on page 1.",),
        ("Regular header", "First-page header"),
    ),
    Real(
        "office/docx_comments.docx",
        "recursive",
        ("This second paragraph also has a reviewer annotation.",),
        ("This is a comment",),
    ),
    Real("office/equations.docx", "recursive", ("A=πr2", "E=mc2")),
    Real(
        "office/powerpoint_sample.pptx",
        "pages",
        ("Test Table Slide", "- And baz things", "Some notes on the second slide."),
    ),
    Real("office/powerpoint_comments.pptx", "pages", ("Install Docling as a Python library",)),
    Real(
        "office/fake-power-point-table.pptx",
        "pages",
        ("Column 1: Purple; Column 2: Orange; Column 3: Yellow",),
        title="A Slide with a Table",
    ),
    Real("corrupt/powerpoint_bad_text.pptx", "pages", ("X-Library",)),
    Real("office/stanley-cups.xlsx", "rows", ("Team: Maple Leafs; Location: TOR; Stanley Cups: 13",)),
    Real("office/xlsx_01.xlsx", "rows", ("first: 6; second: 0; third: -6", "col-1: 4; col-2: 8; col-3: 12")),
    Real(
        "office/2023-half-year-analyses-by-segment.xlsx",
        "rows",
        (
            "In millions of CHF / January–June 2023: Zone EUR; Sales (a): 9467; Underlying Trading operating profit (b): 1570",
            "(c) Included in Trading operating profit.",
        ),
    ),
    Real(
        "office/epub_purvis_poetry.epub",
        "headings",
        ("He is safe in his last home, he feels not the storm.",),
        ("<p>",),
        title="Poetry",
    ),
    Real("web_text/fake-email-attachment.eml", "recursive", ("Lots of whitespace", "Hey this is a fake attachment!")),
    Real("web_text/email-no-utf8-2008-07-16.062410.eml", "recursive", ("סלבה היקר",), title="RE: שלום"),
    Real(
        "web_text/wiki_duck.html",
        "headings",
        ("Ducks are generally smaller and shorter-necked than swans",),
        ("Jump to navigation",),
    ),
    Real("web_text/fake-html-cp1252.html", "recursive", ("My First Heading",)),
    Real("csv/UNSD-ru.csv", "rows", ("Алжир",)),
    Real("csv/country-codes.csv", "rows", ("Afghanistan",)),
    Real("csv/csv-with-long-lines.csv", "rows", ()),
    Real("markdown/arxiv_2203.01017_tableformer.md", "headings", ("TableFormer",)),
    Real(
        "telegram/chatpack_telegram_export.json",
        "messages",
        ("In reply to Alice: “By the way, did you see the news?”\nNo, what happened?",),
    ),
    Real("telegram/langchain_personal_chat/result.json", "messages", ("Hi nemesis",), title="Jimmeny"),
    Real(
        "office/fake.odt",
        "recursive",
        ("Lorem ipsum dolor sit amet.", "Header row: Time; Mon: 1pm; Wed: 2pm; Fri: 3pm"),
    ),
    Real(
        "telegram/langchain_telegram_channel_telethon.json",
        "rows",
        ("text: Langchain is great.; date: 2023-05-03T23:43:33+00:00",),
    ),
    Real("telegram/game_news_telegram_export.json", "messages", ("hidden (https://other.example/news)",)),
)

UNREADABLE = {
    "office/fake.doc": ("UNSUPPORTED_TYPE", "save it as .docx"),
    "corrupt/random.bin": ("UNSUPPORTED_TYPE", "cannot be read"),
    "corrupt/empty.pdf": ("EMPTY_FILE", "empty"),
    "corrupt/invalid.pdf": ("PDF_BROKEN", "damaged"),
}


def _prepared(file: str) -> PreparedDocument:
    path = DOCUMENTS / file
    media_type = detect_media_type(io.BytesIO(path.read_bytes()), path.name)
    check_readable(media_type, path.name)
    return prepare(PrepareRequest(str(path), media_type, path.name, "", 256), lambda _: None, EstimatedTokens())


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.file)
def test_real_file_is_read(case: Real) -> None:
    prepared = _prepared(case.file)
    texts = [chunk.text for chunk in prepared.chunks]
    assert prepared.chunker == case.chunker
    assert all(chunk.token_count <= 256 for chunk in prepared.chunks)
    for words in case.holds:
        assert any(words in text for text in texts), words
    for words in case.lacks:
        assert not any(words in text for text in texts), words
    assert case.title in ("", prepared.title)


@pytest.mark.parametrize("file", UNREADABLE)
def test_real_file_that_cannot_be_read_says_why(file: str) -> None:
    reason, words = UNREADABLE[file]
    with pytest.raises(DocumentRejected, match=words) as rejected:
        _prepared(file)
    assert rejected.value.reason == reason
