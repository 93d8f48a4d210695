"""A run's answer as a document to keep: Markdown, HTML or Word, with what it covers, what judges said of its claims, and a table of
its sources."""

import html
from collections.abc import Iterator, Mapping, Sequence

from kit.vocabulary.passages import ORIGIN_FIELDS
from services.gateway.models import Json
from services.gateway.reports.word import WordDocument, markdown_reader

MARKDOWN, HTML, DOCX = "markdown", "html", "docx"
MEDIA_TYPES: Mapping[str, str] = {
    MARKDOWN: "text/markdown; charset=utf-8",
    HTML: "text/html; charset=utf-8",
    DOCX: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
ENDINGS: Mapping[str, str] = {MARKDOWN: "md", HTML: "html", DOCX: "docx"}
_STATES = {"found": "found", "partly": "partly found", "conflicting": "sources disagree", "missing": "not found"}
_VERDICTS = {
    "supported": "carried by its source",
    "similar_wording": "similar wording; its meaning is not checked",
    "partly": "carried in part",
    "contradicted": "its sources say otherwise",
    "not_found": "not found in the documents",
}
_ACTIONS = {
    "supported": "was done",
    "contradicted": "did not happen",
    "not_found": "nobody knows whether this happened",
}
_TABLES = {
    "Covered": ("Part of the question", "State", "Passages"),
    "Claims": ("Claim", "Verdict", "Judged by"),
    "Citations": ("What is counted", "Share"),
    "Sources": ("No.", "Document", "Place", "Passage"),
}
_SHARES = {
    "citation_recall": "claims that keep what they cite",
    "citation_precision": "citations that are kept",
    "citation_coverage": "claims that a passage was found for",
}
"""Gao et al., arXiv:2305.14627."""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{font:1rem/1.5 sans-serif;max-width:45rem;margin:2rem auto;padding:0 1rem}}table{{border-collapse:collapse}}
td,th{{border:1px solid #bbb;padding:.2rem .6rem;text-align:left;vertical-align:top}}</style></head>
<body>{body}</body></html>
"""


def render(run: Json, form: str) -> bytes:
    """The run, as GET /v1/runs/{run_id} has it, in that form. It must have an answer."""
    if form == DOCX:
        return _docx(run)
    text = markdown(run)
    return (text if form == MARKDOWN else as_html(run["question"], text)).encode()


def markdown(run: Json) -> str:
    """With a title, what is covered, and the sources; marks are the numbers of the sources."""
    answer = run["answer"]
    text = answer["text"].strip()
    parts = [text if text.startswith("# ") else f"# {run['question'].strip()}\n\n{text}"]
    parts += [f"## {title}\n\n{_table(_TABLES[title], rows)}" for title, rows in _rows(answer) if rows]
    return "\n\n".join(parts) + "\n"


def as_html(title: str, text: str) -> str:
    """A page that loads nothing: HTML, links and pictures in the text are shown as they are written."""
    return _PAGE.format(title=html.escape(title), body=markdown_reader().render(text))


def _docx(run: Json) -> bytes:
    answer, document = run["answer"], WordDocument()
    text = answer["text"].strip()
    if not text.startswith("# "):
        document.add_heading(run["question"], 1)
    document.add_markdown(text)
    for title, rows in _rows(answer):
        if rows:
            document.add_heading(title, 2)
            document.add_table(_TABLES[title], rows)
    return document.to_bytes()


def _rows(answer: Json) -> Iterator[tuple[str, Sequence[Sequence[str]]]]:
    """By title, the rows of the tables behind the text. Quotes have no claims: they are their sources' own words."""
    yield "Covered", _covered(answer)
    verification = answer.get("verification") or {}
    if answer.get("method") != "extractive":
        claims = [each for each in verification.get("sentences") or [] if each["verdict"] != "no_claim"]
        yield "Claims", [(each["sentence"], _verdict(each), _judge(each["checked_by"])) for each in claims]
        yield "Citations", [(text, f"{verification[name]:.0%}") for name, text in _SHARES.items() if claims]
    yield "Sources", _sources(answer)


def _verdict(claim: Json) -> str:
    verdict = str(claim["verdict"])
    words = (_ACTIONS if claim["is_action"] else _VERDICTS).get(verdict, verdict)
    return f"{words}; left out" if claim["removed"] else words


def _judge(judge: Json | None) -> str:
    """Its name, and how often it is wrong where that was measured."""
    if not judge:
        return ""
    name = str(judge["name"])
    if not judge["claims"]:
        return name
    shares = f"{judge['false_passed']:.0%} of false claims pass, {judge['true_failed']:.0%} of true ones do not"
    return f"{name} ({shares})"


def _covered(answer: Json) -> list[tuple[str, str, str]]:
    parts = (answer.get("coverage") or {}).get("parts", [])
    return [
        (
            part["text"],
            _STATES.get(part["state"], part["state"] or ""),
            " ".join(f"[{number}]" for number in part["evidence"]),
        )
        for part in parts
    ]


def _sources(answer: Json) -> list[tuple[str, str, str, str]]:
    return [
        (
            str(each["number"]),
            each["document_name"],
            ", ".join(_place(each)),
            each["text"][each["quote_start"] : each["quote_end"]] or each["text"],
        )
        for each in answer["citations"]
    ]


def _place(citation: Json) -> Iterator[str]:
    """Its headings and page, and who wrote it, when, and its id, as far as that is known and not among the headings."""
    yield from citation["heading_path"]
    if citation["page"]:
        yield f"page {citation['page']}"
    for field in ORIGIN_FIELDS:
        said = (citation.get("origin") or {}).get(field)
        if said and said not in citation["heading_path"]:
            yield f"{field.replace('_', ' ')}: {said}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _cell(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|")
