"""A conversation as a document to keep: each question, its answer, and below it the passages that it cites."""

import re
from collections.abc import Mapping
from typing import Literal

from services.gateway.models import Json
from services.gateway.reports.runs import DOCX
from services.gateway.reports.word import WordDocument

Language = Literal["en", "de", "ru", "he"]
_PAGE: Mapping[str, str] = {"en": "page {}", "de": "Seite {}", "ru": "стр. {}", "he": "עמוד {}"}
_SOURCES: Mapping[str, str] = {"en": "Sources", "de": "Quellen", "ru": "Источники", "he": "מקורות"}
_LEFT_OUT: Mapping[str, str] = {
    "en": "Earlier messages are left out: {}.",
    "de": "Frühere Nachrichten fehlen: {}.",
    "ru": "Более ранних сообщений опущено: {}.",
    "he": "הודעות קודמות שהושמטו: {}.",
}
_MEANING = re.compile(r"([\\`*_\[\]#<>|])")


def render_thread(thread: Json, form: str, language: Language = "en") -> bytes:
    """The thread, as GET /v1/threads/{thread_id} has it, in that form. `language`: of the few words that are the document's own."""
    return _word(thread, language) if form == DOCX else _markdown(thread, language).encode()


def _markdown(thread: Json, language: Language) -> str:
    parts = [f"# {_escaped(thread['title'])}"]
    if left_out := _left_out(thread):
        parts.append(_LEFT_OUT[language].format(left_out))
    for message in thread["messages"]:
        if message["role"] == "user":
            parts.append(f"## {_escaped(message['text'])}")
            continue
        parts.append(message["text"].strip())
        parts += [f"### {_escaped(each['title'])}\n\n{_fenced(each['outline'])}" for each in message["artefacts"]]
        if sources := [_source(each, language) for each in message["citations"]]:
            lines = "\n".join(f"- {_escaped(each)}" for each in sources)
            parts.append(f"### {_SOURCES[language]}\n\n{lines}")
    return "\n\n".join(each for each in parts if each) + "\n"


def _word(thread: Json, language: Language) -> bytes:
    document = WordDocument()
    document.add_heading(thread["title"], 0)
    if left_out := _left_out(thread):
        document.add_paragraph(_LEFT_OUT[language].format(left_out))
    for message in thread["messages"]:
        if message["role"] == "user":
            document.add_heading(message["text"].strip(), 1)
            continue
        document.add_markdown(message["text"].strip(), heading_level=1)
        for artefact in message["artefacts"]:
            document.add_heading(artefact["title"], 2)
            for line in artefact["outline"].strip().split("\n"):
                document.add_paragraph(line)
        if message["citations"]:
            document.add_heading(_SOURCES[language], 2)
            for citation in message["citations"]:
                document.add_paragraph(_source(citation, language), "List")
    return document.to_bytes()


def _left_out(thread: Json) -> int:
    return max(0, int(thread["message_count"]) - len(thread["messages"]))


def _source(citation: Json, language: Language) -> str:
    """One line: number, document, place, and the quoted words, else the passage."""
    place = list(citation["heading_path"])
    if citation["page"]:
        place.append(_PAGE[language].format(citation["page"]))
    quote = citation["text"][citation["quote_start"] : citation["quote_end"]] or citation["text"]
    where = f" ({', '.join(place)})" if place else ""
    return f"[{citation['number']}] {citation['document_name']}{where}: “{' '.join(quote.split())}”"


def _escaped(text: str) -> str:
    """In one line, with no meaning in Markdown."""
    return _MEANING.sub(r"\\\1", " ".join(text.split()))


def _fenced(text: str) -> str:
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence}\n{text.strip()}\n{fence}"
