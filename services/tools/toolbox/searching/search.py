"""Searches the documents: several queries at once, fused, within filters."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments
from services.tools.models import Policy, ToolOutput, WithoutModel
from services.tools.passages.rendering import all_described, citable, counted, degradations, fitted, quoted, sentences
from services.tools.passages.retrieval import SearchQuery, Strategy
from services.tools.passages.scope import search_readable

QUERIES_MAX = 8
PASSAGES_MAX = 50
DEFAULT_PASSAGES = 8

_NAMES = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": 256},
    "minItems": 1,
    "maxItems": 50,
}
_DATE = {"type": ["string", "null"], "maxLength": 40}
"""null is what temporal_normalize says of a side without a limit."""
SCHEMA = {
    "type": "function",
    "function": {
        "name": "search",
        "description": (
            "Searches the user's documents and returns the best passages with their ids, documents and scores. Long passages are "
            "cut: fetch_docs gives them whole, with what stands around them."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "queries": {
                    "type": "array",
                    "description": "What to search for: first the user's own words, then other wordings, if any.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 2000},
                    "minItems": 1,
                    "maxItems": QUERIES_MAX,
                },
                "filters": {
                    "type": "object",
                    "description": "Conditions that every passage must meet. Leave out what was not asked for.",
                    "properties": {
                        "date_from": _DATE | {"description": "Earliest date or time, ISO 8601: 2024-01-31."},
                        "date_to": _DATE
                        | {"description": "Latest date, that day included, or the time before which it must be."},
                        "channel": _NAMES | {"description": "Names of chats or channels."},
                        "author": _NAMES | {"description": "Names of authors."},
                        "document_ids": _NAMES | {"description": "Ids of documents."},
                        "metadata": {
                            "type": "object",
                            "description": "Other fields of the documents, each with the values it may have.",
                            "additionalProperties": _NAMES,
                            "maxProperties": 16,
                        },
                    },
                    "additionalProperties": False,
                },
                "k": {
                    "type": "integer",
                    "description": f"Most passages to return. Default: {DEFAULT_PASSAGES}.",
                    "minimum": 1,
                    "maximum": PASSAGES_MAX,
                },
                "strategy": {
                    "type": "string",
                    "description": "auto (default); lexical for exact words and numbers; dense for the meaning; hybrid for both.",
                    "enum": [strategy.value for strategy in Strategy],
                },
                "must_phrases": {
                    "type": "array",
                    "description": "Phrases that every passage must contain word for word.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 500},
                    "maxItems": 8,
                },
                "collection_ids": {
                    "type": "array",
                    "description": "Collections to search; knowledge-base holds curated documents, if it is there. Default: all.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 64},
                    "maxItems": 256,
                },
            },
            "required": ["queries"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=5.0,
    key_arguments=("queries", "filters", "must_phrases", "collection_ids"),
    worth=7,
    called_for_by=(
        r"\b(?:search|find|look up)",
        r"\b(?:such|finde?)\w*",
        r"cherch|trouve",
        r"\bbusca|encuentra|procura",
        r"\bcerca|trova",
        r"\bzoek|vind\b",
        r"szukaj|znajdź",
        r"найди|найти|поиск|поищи|знайди|пошук",
        r"\bara\b|\bbul\b",
        r"搜索|查找|検索|探して|검색|찾아|ابحث",
        r"knowledge ?base|wissens(?:datenbank|basis)|base de (?:connaissances|conocimientos?|conhecimento)",
        r"base di conoscenza|kennisbank|baza wiedzy",
        r"баз[аеуы] знаний|баз[аіу] знань|bilgi (?:taban|bankas)|知识库|ナレッジ|지식 ?베이스|قاعدة المعرفة",
    ),
    without_model=WithoutModel("search", "queries", "find and quote what your documents say"),
)


async def search(
    context: ToolContext,
    queries: Sequence[str],
    filters: Mapping[str, Any] | None = None,
    k: int = DEFAULT_PASSAGES,
    strategy: str = Strategy.AUTO,
    must_phrases: Sequence[str] = (),
    collection_ids: Sequence[str] = (),
) -> ToolOutput:
    """`hits`, best first. Scores are comparable within one answer only. What the search had to do without is in `degraded`."""
    filters = filters or {}
    query = SearchQuery(
        queries,
        collection_ids,
        k,
        Strategy(strategy),
        tuple(filters.get("document_ids", ())),
        _metadata(filters),
        _moment("date_from", filters.get("date_from")),
        _moment("date_to", filters.get("date_to"), is_end=True),
        must_phrases,
    )
    found = await search_readable(context, query)
    hits = fitted(found.passages, context.settings.tools_text_tokens)
    content = {"hits": all_described(hits), "strategy": found.strategy, **degradations(found.degraded)}
    words = quoted(queries[0])
    if not hits:
        content["note"] = "Nothing was found. Try other words, or fewer conditions."
        return ToolOutput(content, sentences(f"Nothing found for {words}.", degraded=found.degraded))
    return ToolOutput(content, sentences(f"{counted(hits)} for {words}.", degraded=found.degraded), citable(hits))


def _metadata(filters: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Conditions on fields. A channel is named with or without the @ in front."""
    channels = [name for given in filters.get("channel", ()) for name in (given, given.removeprefix("@"))]
    named = {"channel": list(dict.fromkeys(channels)), "author": filters.get("author", ())}
    return {**filters.get("metadata", {}), **{key: values for key, values in named.items() if values}}


def _moment(name: str, value: str | None, *, is_end: bool = False) -> datetime | None:
    """The beginning of a day, or its end; a time as it is. UTC where it names no zone."""
    if not value:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if is_end and _is_day(value):
            moment = datetime.combine(moment.date() + timedelta(days=1), time.min)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidArguments(
            f"filters.{name}: {value!r} is no ISO 8601 date; write 2024-12-31, or ask temporal_normalize for the date"
        ) from error


def _is_day(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True
