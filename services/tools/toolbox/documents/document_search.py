"""Finds documents by their names, their fields and their content, and lists them."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.tools.context import ToolContext
from services.tools.documents import Document
from services.tools.errors import InvalidArguments
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.rendering import citable, cut, degradations, sentences
from services.tools.passages.retrieval import Found, SearchQuery
from services.tools.passages.scope import readable, search_readable

DOCUMENTS_MAX = 50
DEFAULT_DOCUMENTS = 10
_PAGE = 100
_MOST_LISTED = 2_000
"""Documents whose names and fields are looked at: what a person waits for."""
_PASSAGES = 50
_SHOWN_TOKENS = 60
"""Of the passage by which a document was found."""
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 256}, "minItems": 1, "maxItems": 50}
SCHEMA = {
    "type": "function",
    "function": {
        "name": "document_search",
        "description": (
            "Finds which documents there are about something: by words of their names, by their fields, and by their content. "
            "Returns a list of documents, each with what it was found by. search returns passages instead."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "Words of the name or the content. Without it the fields alone decide.",
                    "maxLength": 2000,
                },
                "metadata": {
                    "type": "object",
                    "description": "Fields of the documents, each with the values it may have.",
                    "additionalProperties": _NAMES,
                    "maxProperties": 16,
                },
                "k": {
                    "type": "integer",
                    "description": f"Most documents to return. Default: {DEFAULT_DOCUMENTS}.",
                    "minimum": 1,
                    "maximum": DOCUMENTS_MAX,
                },
                "collection_ids": {
                    "type": "array",
                    "description": "Collections to look in. Default: all.",
                    "items": {"type": "string", "minLength": 1, "maxLength": 64},
                    "maxItems": 64,
                },
            },
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=10.0,
    called_for_by=(
        r"\b(?:which|what|find|list)\b[\w\s]{0,20}\b(?:documents?|files?)\b[\w\s]{0,20}\b(?:about|on|named|called|by|from|with)\b",
        r"(?:welche|finde|liste)[\w\s]{0,20}(?:dokumente?|dateien?)[\w\s]{0,20}(?:über|zu|namens|von|mit)\b",
        r"(?:какие|найди|список)[\w\s]{0,20}(?:документ\w*|файл\w*)[\w\s]{0,20}(?:о|об|про|от|с)\b",
        r"(?:אילו|מצא|רשימת)[\w\s]{0,20}(?:מסמכים|קבצים)",
    ),
)


async def document_search(
    context: ToolContext,
    query: str = "",
    metadata: Mapping[str, Sequence[str]] | None = None,
    k: int = DEFAULT_DOCUMENTS,
    collection_ids: Sequence[str] = (),
) -> ToolOutput:
    """`documents`: those whose names have all words of the query first, then by how well their content fits. `is_partial` says that
    there are more documents than were looked at by name."""
    query, metadata = query.strip(), metadata or {}
    if not (query or metadata):
        raise InvalidArguments("say what to look for: a query, metadata, or both; rag_list lists all of a collection")
    collections = await readable(context, collection_ids)
    listed, is_partial = await _listed(context, collections)
    known = {each.document_id: each for each in listed if _fits(each, metadata)}
    words = query.casefold().split()
    named = [each for each in known.values() if all(word in each.name.casefold() for word in words)]
    found = await _found(context, query, collections, metadata)
    best: dict[str, Passage] = {}
    for passage in found.passages:
        best.setdefault(passage.document_id, passage)
    chosen = list(dict.fromkeys([*(each.document_id for each in named), *best]))[:k]
    documents = [_described(each, known.get(each), best.get(each), named) for each in chosen]
    content: dict[str, Any] = {"documents": documents, "is_partial": is_partial, **degradations(found.degraded)}
    if not documents:
        content["note"] = "No document was found. Try other words, or fewer fields."
    summary = f"{len(documents)} {'document' if len(documents) == 1 else 'documents'} found."
    return ToolOutput(
        content,
        sentences(summary, degraded=found.degraded),
        citable([best[each] for each in chosen if each in best]),
    )


async def _listed(context: ToolContext, collections: Sequence[str]) -> tuple[list[Document], bool]:
    """The documents of the collections, newest first within each, and whether some were left out."""
    found: list[Document] = []
    for collection_id in collections:
        token = ""
        while True:
            if len(found) >= _MOST_LISTED:
                return found, True
            page = await context.services.documents.page(collection_id, page_size=_PAGE, page_token=token)
            found += page.documents
            token = page.next_page_token
            if not token:
                break
    return found, False


def _fits(document: Document, metadata: Mapping[str, Sequence[str]]) -> bool:
    return all(document.metadata.get(key) in values for key, values in metadata.items())


async def _found(
    context: ToolContext, query: str, collections: Sequence[str], metadata: Mapping[str, Sequence[str]]
) -> Found:
    if not query or not collections:
        return Found(())
    return await search_readable(context, SearchQuery([query], collections, _PASSAGES, metadata=metadata))


def _described(
    document_id: str, document: Document | None, passage: Passage | None, named: Sequence[Document]
) -> dict[str, Any]:
    is_named = any(each.document_id == document_id for each in named)
    described: dict[str, Any] = {"document_id": document_id, "found_by": "name or fields" if is_named else "content"}
    if document is not None:
        described |= {
            "name": document.name,
            "collection_id": document.collection_id,
            "changed_at": document.updated_at.isoformat(timespec="seconds"),
            "metadata": dict(document.metadata),
        }
    elif passage is not None:
        described |= {"name": passage.document_name, "collection_id": passage.collection_id}
    if passage is not None:
        described["passage"] = cut(passage, _SHOWN_TOKENS).text
    return described
