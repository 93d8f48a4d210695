"""Reads passages whole, with what stands around them, or a document from any place on."""

from collections.abc import Iterable, Sequence
from typing import Any

from kit.llm import estimate_tokens
from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.given import CHUNK_IDS, PASSAGES_MAX, askable, missing
from services.tools.passages.rendering import all_described, citable, counted, cut, sentences
from services.tools.passages.retrieval import Window
from services.tools.passages.scope import is_readable
from services.tools.passages.whole import readable_section

WINDOW_MAX = 5
_SECTION_PASSAGES = 40
"""More than the text that one answer may have, for passages of usual size."""

SCHEMA = {
    "type": "function",
    "function": {
        "name": "fetch_docs",
        "description": (
            "Returns passages whole, by their ids, with the passages before and after them where a window is given; or a document, "
            "from its beginning or from a position on."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "chunk_ids": CHUNK_IDS,
                "window": {
                    "type": "integer",
                    "description": "Neighbours of each passage to return on each side. Default: 0.",
                    "minimum": 0,
                    "maximum": WINDOW_MAX,
                },
                "document_id": {
                    "type": "string",
                    "description": "Document to read, where no chunk_ids are given.",
                    "minLength": 1,
                    "maxLength": 128,
                },
                "start": {
                    "type": "integer",
                    "description": "With document_id: position of the first passage. Default: 0. To go on: next_start.",
                    "minimum": 0,
                    "maximum": 1_000_000,
                },
            },
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=5.0,
    worth=4,
    called_for_by=(
        r"\b(?:whole|full|entire|complete)\b[\w\s]{0,20}\b(?:document|text|file|page|report)",
        r"(?:ganze[nrs]?|vollständige[nrs]?|komplette[nrs]?) (?:dokument|text|datei|bericht)",
        r"(?:texte|document|fichier) (?:entier|complet|intégral)",
        r"(?:documento|texto|testo|archivo) (?:completo|entero|intero|inteiro)",
        r"(?:hele|volledige) (?:document|tekst)|cał[ya] (?:dokument|tekst)",
        r"(?:весь|полный) (?:документ|текст)|документ целиком|повний текст",
        r"全文|整个文件|全体を|전문|النص الكامل",
    ),
)


async def fetch_docs(
    context: ToolContext, chunk_ids: Sequence[str] = (), window: int = 0, document_id: str = "", start: int = 0
) -> ToolOutput:
    """`passages` in reading order. What there was no room for is in `left_out` (ids) or begins at `next_start`."""
    if chunk_ids:
        return await _by_ids(context, chunk_ids, window, document_id)
    if document_id:
        return await _section(context, document_id, start)
    raise InvalidArguments("give chunk_ids or a document_id")


async def _by_ids(context: ToolContext, chunk_ids: Sequence[str], window: int, document_id: str) -> ToolOutput:
    ids = askable(chunk_ids)
    windows = [
        each
        for each in (await context.services.retriever.fetch(ids, window) if ids else ())
        if is_readable(context, each.passage) and document_id in ("", each.passage.document_id)
    ]
    not_found = missing(chunk_ids, {each.passage.chunk_id: each.passage for each in windows})
    asked = {each.passage.chunk_id for each in windows}
    shown, left_out = _with_room(_by_importance(windows), context.settings.tools_text_tokens)
    shown = _in_reading_order(shown)
    left_out = [passage for passage in left_out if passage.chunk_id in asked]
    content: dict[str, Any] = {"passages": all_described(shown)}
    if left_out:
        content["left_out"] = [passage.chunk_id for passage in left_out]
        content["note"] = "There was no room for those left out: fetch them with another call."
    if not_found:
        content["not_found"] = not_found
    gone = f"{len(not_found)} of the ids are unknown or gone." if not_found else ""
    return ToolOutput(content, sentences(f"{counted(shown)} read.", gone), citable(shown))


def _by_importance(windows: Sequence[Window]) -> list[Passage]:
    """What was asked for, then neighbours by their distance; each once."""
    by_distance = [each.passage for each in windows]
    for distance in range(max((max(len(each.before), len(each.after)) for each in windows), default=0)):
        for each in windows:
            by_distance += [*each.before[::-1][distance : distance + 1], *each.after[distance : distance + 1]]
    return list({passage.chunk_id: passage for passage in by_distance}.values())


def _in_reading_order(passages: Iterable[Passage]) -> list[Passage]:
    """Documents in the order of their first passage."""
    documents: dict[str, list[Passage]] = {}
    for passage in passages:
        documents.setdefault(passage.document_id, []).append(passage)
    return [passage for each in documents.values() for passage in sorted(each, key=lambda passage: passage.ordinal)]


async def _section(context: ToolContext, document_id: str, start: int) -> ToolOutput:
    section = await readable_section(context, document_id, start, _SECTION_PASSAGES)
    shown, _ = _with_room(section.passages, context.settings.tools_text_tokens, in_order=True)
    content: dict[str, Any] = {"passages": all_described(shown), "document_passages": section.document_chunk_count}
    if not shown:
        content["note"] = f"The document has {section.document_chunk_count} passages: there is none from {start} on."
        return ToolOutput(content, "Nothing is left of the document.")
    following = shown[-1].ordinal + 1
    if following < section.document_chunk_count:
        content["next_start"] = following
    return ToolOutput(content, f"{counted(shown)} read, of {section.document_chunk_count}.", citable(shown))


def _with_room(
    passages: Sequence[Passage], budget_tokens: int, *, in_order: bool = False
) -> tuple[list[Passage], list[Passage]]:
    """The passages that fit and those that do not; the first is cut where it does not fit alone. `in_order`: none behind the first
    that does not fit."""
    shown: list[Passage] = []
    left_out: list[Passage] = []
    for passage in passages:
        cost = estimate_tokens(passage.text)
        if not shown and cost > budget_tokens:
            shown.append(cut(passage, budget_tokens))
            budget_tokens = 0
        elif cost <= budget_tokens and len(shown) < PASSAGES_MAX and not (in_order and left_out):
            shown.append(passage)
            budget_tokens -= cost
        else:
            left_out.append(passage)
    return shown, left_out
