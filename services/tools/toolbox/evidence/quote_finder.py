"""Finds where the documents say something word for word, or nearly so, with page and lines."""

import asyncio
from collections.abc import Sequence
from typing import Any

from services.tools.context import ToolContext
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.quoting import Place, find_quote
from services.tools.passages.rendering import boxes, citable, degradations, described, excerpt, quoted, sentences
from services.tools.passages.retrieval import SearchQuery, Strategy
from services.tools.passages.scope import search_readable
from services.tools.passages.whole import DOCUMENT_ID

_CANDIDATES = 50
_LEAST_LIKENESS = 0.6
_LONG = 60

SCHEMA = {
    "type": "function",
    "function": {
        "name": "quote_finder",
        "description": (
            "Finds where documents say something word for word, or nearly so: the exact words there, document, page and place "
            "on the page. Use it to check a quotation or to find its source."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "quote": {"type": "string", "description": "The words to find.", "minLength": 1, "maxLength": 2000},
                "document_ids": {
                    "type": "array",
                    "description": "Documents to look in. Default: all.",
                    "items": DOCUMENT_ID,
                    "maxItems": 50,
                },
                "collection_ids": {
                    "type": "array",
                    "description": "Collections to look in. Default: all that there are.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 64},
                    "maxItems": 64,
                },
                "k": {"type": "integer", "description": "Most places. Default: 5.", "minimum": 1, "maximum": 20},
            },
            "required": ["quote"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=10.0,
    on_request=True,
    called_for_by=(
        r"\bquot(?:e|es|ed|ation|ations)\b|\bword for word\b|\bverbatim\b|\bwho (?:said|wrote)\b|\bexact (?:words|wording)\b",
        r"zitat|wörtlich|wortlaut|citation exacte|mot pour mot|cita textual|literalmente|дословно|цитат\w*|原文|引用",
    ),
)


async def quote_finder(
    context: ToolContext,
    quote: str,
    document_ids: Sequence[str] = (),
    collection_ids: Sequence[str] = (),
    k: int = 5,
) -> ToolOutput:
    """`quotes`, the most like first: `exact`, `likeness` (0 to 1), the words with their document and page, `lines` on the page."""
    query = SearchQuery([quote], collection_ids, _CANDIDATES, Strategy.AUTO, document_ids)
    found = await search_readable(context, query)
    places = (await asyncio.to_thread(_places, quote, found.passages))[:k]
    shown = [excerpt(passage, place.start, place.end) for passage, place in places]
    content: dict[str, Any] = {
        "quotes": [_quote(passage, place) for passage, (_, place) in zip(shown, places, strict=True)],
        "passages_read": len(found.passages),
        **degradations(found.degraded),
    }
    exact = sum(place.likeness == 1 for _, place in places)
    summary = f"{quoted(quote)} stands word for word in {exact} places, nearly so in {len(places) - exact}."
    if not places:
        content["note"] = "No passage says it, nor nearly so. Try fewer words of it."
        summary = f"No passage says {quoted(quote)}."
    return ToolOutput(content, sentences(summary, degraded=found.degraded), citable(shown))


def _places(quote: str, passages: Sequence[Passage]) -> list[tuple[Passage, Place]]:
    found = [(passage, find_quote(quote, passage.text, _LEAST_LIKENESS)) for passage in passages]
    near = [(passage, place) for passage, place in found if place is not None]
    return sorted(near, key=lambda each: -each[1].likeness)


def _quote(passage: Passage, place: Place) -> dict[str, Any]:
    lines = {"lines": boxes(passage)[:_LONG]} if boxes(passage) else {}
    return {**described(passage), "exact": place.likeness == 1, "likeness": place.likeness, **lines}
