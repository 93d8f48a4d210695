"""A run's answer as Markdown, HTML and Word."""

import io

from docx import Document

from services.gateway.reports.runs import DOCX, HTML, MARKDOWN, render
from services.gateway.reports.threads import render_thread
from services.gateway.reports.word import WordDocument, is_right_to_left

TEXT = "# Who built the tower?\n\nEdda built it. [1]\n\n## When\n\nIn 1889. [2] <script>alert(1)</script> ![x](http://x/?d=1)"
CITATIONS = [
    {
        "number": 1,
        "document_name": "a|b.md",
        "heading_path": ["Tower"],
        "page": 3,
        "text": "Edda built it.",
        "quote_start": 0,
        "quote_end": 14,
    },
    {
        "number": 2,
        "document_name": "c.md",
        "heading_path": [],
        "page": None,
        "origin": {"channel": "", "author": "Ann", "date": "2026-01-15T09:30:00Z", "message_id": "17"},
        "text": "In 1889.",
        "quote_start": 0,
        "quote_end": 0,
    },
]
PARTS = [{"text": "tower", "state": "found", "evidence": [1]}, {"text": "cost", "state": "missing", "evidence": []}]
ANSWER = {"text": TEXT, "citations": CITATIONS, "coverage": {"parts": PARTS}}
RUN = {"question": "Who built the tower?", "answer": ANSWER}


def test_markdown_has_text_coverage_and_sources() -> None:
    text = render(RUN, MARKDOWN).decode()
    assert text.startswith("# Who built the tower?\n\nEdda built it. [1]")
    assert "| cost | not found |" in text
    assert "| 2 | c.md | author: Ann, date: 2026-01-15T09:30:00Z, message id: 17 | In 1889. |" in text
    assert "| 1 | a\\|b.md | Tower, page 3 | Edda built it. |" in text


def test_claims_of_a_written_answer_are_told_with_their_judge() -> None:
    judge = {"name": "a/1", "measured": False, "false_passed": 0.25, "true_failed": 0.5, "claims": 8}
    effects = {"name": "effects", "measured": True, "false_passed": None, "true_failed": None, "claims": 0}
    claim = {"sentence": "Edda built it.", "is_action": False, "removed": False, "checked_by": judge}
    claims = [
        claim | {"verdict": "similar_wording"},
        claim | {"verdict": "not_found", "removed": True},
        claim | {"verdict": "contradicted", "is_action": True, "checked_by": effects},
        claim | {"verdict": "no_claim", "checked_by": None},
    ]
    shares = {"citation_recall": 0.5, "citation_precision": 0.25, "citation_coverage": 1.0}
    answer = ANSWER | {"method": "model", "verification": {"sentences": claims, **shares}}
    text = render(RUN | {"answer": answer}, MARKDOWN).decode()
    said = "a/1 (25% of false claims pass, 50% of true ones do not)"
    assert f"| Edda built it. | similar wording; its meaning is not checked | {said} |" in text
    assert f"| Edda built it. | not found in the documents; left out | {said} |" in text
    assert "| Edda built it. | did not happen | effects |" in text
    assert text.count("| Edda built it. |") == 4, "three claims and a source"
    assert "| citations that are kept | 25% |" in text
    assert "## Claims" not in render(RUN | {"answer": answer | {"method": "extractive"}}, MARKDOWN).decode()


def test_html_runs_nothing_and_loads_nothing() -> None:
    page = render(RUN, HTML).decode()
    assert "<h2>When</h2>" in page
    assert "<table>" in page
    assert "<script>" not in page
    assert "<img" not in page


def test_word_document_has_headings_and_tables() -> None:
    document = Document(io.BytesIO(render(RUN, DOCX)))
    headings = [each.text for each in document.paragraphs if each.style.name.startswith("Heading")]
    assert headings == ["Who built the tower?", "When", "Covered", "Sources"]
    assert [cell.text for cell in document.tables[1].rows[1].cells] == [
        "1",
        "a|b.md",
        "Tower, page 3",
        "Edda built it.",
    ]


def test_short_answer_gets_its_question_as_title() -> None:
    short = {**RUN, "answer": {**ANSWER, "text": "Edda built it. [1]", "coverage": None}}
    assert render(short, MARKDOWN).decode().startswith("# Who built the tower?\n\nEdda built it. [1]\n\n## Sources")


def message(role: str, text: str, **fields: object) -> dict[str, object]:
    return {"role": role, "text": text, "citations": [], "artefacts": [], **fields}


THREAD = {
    "title": "Towers *and* more",
    "message_count": 4,
    "messages": [
        message("user", "Who built\nthe tower?"),
        message(
            "assistant",
            "**Edda** built it. [1]",
            citations=CITATIONS[:1],
            artefacts=[{"title": "Years", "outline": "1887: begun\n1889: ready"}],
        ),
    ],
}


def test_conversation_as_markdown_has_questions_answers_and_their_sources() -> None:
    text = render_thread(THREAD, MARKDOWN, "de").decode()
    assert text.startswith(
        "# Towers \\*and\\* more\n\nFrühere Nachrichten fehlen: 2.\n\n## Who built the tower?\n\n**Edda** built it. [1]"
    )
    assert "### Years\n\n```\n1887: begun\n1889: ready\n```" in text
    assert text.endswith("### Quellen\n\n- \\[1\\] a\\|b.md (Tower, Seite 3): “Edda built it.”\n")


def test_conversation_as_word_document_has_questions_as_headings_and_sources_below_answers() -> None:
    document = Document(io.BytesIO(render_thread(THREAD, DOCX)))
    assert [(each.style.name, each.text) for each in document.paragraphs] == [
        ("Title", "Towers *and* more"),
        ("Normal", "Earlier messages are left out: 2."),
        ("Heading 1", "Who built\nthe tower?"),
        ("Normal", "Edda built it. [1]"),
        ("Heading 2", "Years"),
        ("Normal", "1887: begun"),
        ("Normal", "1889: ready"),
        ("Heading 2", "Sources"),
        ("List", "[1] a|b.md (Tower, page 3): “Edda built it.”"),
    ]
    assert [run.text for run in document.paragraphs[3].runs if run.bold] == ["Edda"]


def test_word_document_keeps_what_markdown_means() -> None:
    written = WordDocument()
    written.add_markdown(
        "# A\n\n1. one\n2. two\n   - deep\n\n3. three\n\n| x | y |\n|---|---|\n| *1* | `2` |\n\n```\na\n\nb\n```\n\n[l](http://x/)\x07",
        heading_level=1,
    )
    document = Document(io.BytesIO(written.to_bytes()))
    assert [(each.style.name, each.text) for each in document.paragraphs] == [
        ("Heading 2", "A"),
        ("List", "1. one"),
        ("List", "2. two"),
        ("List Bullet 2", "deep"),
        ("List", "3. three"),
        ("Normal", "a"),
        ("Normal", ""),
        ("Normal", "b"),
        ("Normal", "[l](http://x/)"),
    ]
    assert [[cell.text for cell in row.cells] for row in document.tables[0].rows] == [["x", "y"], ["1", "2"]]


def test_word_document_leaves_out_what_xml_forbids() -> None:
    written = WordDocument()
    written.add_paragraph("a\x00\x1f\ud800\udfff\ufffe\uffffb \x7f\ufffd\U0001f600\U0010ffff")
    (paragraph,) = Document(io.BytesIO(written.to_bytes())).paragraphs
    assert paragraph.text == "ab \x7f\ufffd\U0001f600\U0010ffff"


def test_hebrew_runs_from_right_to_left_paragraph_by_paragraph() -> None:
    written = WordDocument()
    written.add_heading("שלום", 1)
    written.add_markdown("**כמה** ימים? [1]\n\nTwo days.\n\n| א | ב |\n|---|---|\n| 1 | 2 |")
    document = Document(io.BytesIO(written.to_bytes()))
    bidi = ["w:bidi" in each._p.xml for each in document.paragraphs]
    assert bidi == [True, True, False]
    assert all(run.font.rtl for run in document.paragraphs[1].runs)
    assert "w:bidiVisual" in document.tables[0]._tbl.xml
    assert [is_right_to_left(each) for each in ("1. שלום", "مرحبا", "[1] Hello שלום", "12")] == [
        True,
        True,
        False,
        False,
    ]
