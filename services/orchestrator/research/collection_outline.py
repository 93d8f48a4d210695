"""What a planning model is shown of the collections that it plans a search of: the names of ready documents, and the sources that
they come from. Names are text of others: they are fenced."""

import asyncio
from collections.abc import Sequence
from itertools import accumulate

from kit.errors import GroundworkError
from kit.language.terms import tokens
from services.orchestrator.models import ReadableDocument, RunRequest
from services.orchestrator.ports import Library
from services.orchestrator.prompts.fencing import fenced, gives_orders_line, in_a_line

_MOST_READ = 200
"""Documents that are listed; a collection may have more."""
_MOST_SHOWN = 40
_MOST_CHARS = 2_000
"""Of all names together: a small model reads the plan's rules and the conversation besides."""
_LONGEST_NAME = 100
_PATIENCE_S = 2.0
"""Longest wait for the list: a plan is worth more than names."""


async def outline_collections(library: Library, request: RunRequest, question: str) -> str:
    """The documents that the run may read, those whose names share words with the question first; empty where there are none, or
    where they cannot be listed now: a plan is made without them, too."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            found = await library.documents(request.collection_ids, request.document_ids[:_MOST_READ], _MOST_READ)
    except (GroundworkError, TimeoutError):
        return ""
    return describe_documents(found, question)


def describe_documents(documents: Sequence[ReadableDocument], question: str) -> str:
    """The outline of these documents as a prompt shows it."""
    if not documents:
        return ""
    asked = _stems(question)
    ranked = sorted(documents, key=lambda each: (-len(asked & _stems(each.name)), each.name, each.document_id))
    names = [in_a_line(each.name)[:_LONGEST_NAME] for each in ranked[:_MOST_SHOWN]]
    shown = [name for name, end in zip(names, accumulate(map(len, names)), strict=True) if end <= _MOST_CHARS]
    sources = sorted({in_a_line(each.source)[:_LONGEST_NAME] for each in documents if each.source})[:_MOST_SHOWN]
    count = f"{len(documents)} or more" if len(documents) >= _MOST_READ else str(len(documents))
    lines = [f"Ready documents ({len(shown)} of {count}):{gives_orders_line(*shown)}", *map(fenced, shown)]
    if sources:
        lines += [f"Sources that documents come from:{gives_orders_line(*sources)}", *map(fenced, sources)]
    return "\n".join(lines)


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if not token.is_stopword)
