"""Documents that a tool reads whole, in reading order."""

from collections.abc import Sequence
from typing import Any

from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Passage
from services.tools.passages.given import askable
from services.tools.passages.retrieval import Section
from services.tools.passages.scope import is_readable, readable

_PASSAGES_AT_ONCE = 200
DOCUMENT_ID: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}


class DocumentNotFound(ToolError):
    """There is no such document that the call may read."""

    reason = "DOCUMENT_NOT_FOUND"


async def readable_section(context: ToolContext, document_id: str, start: int, most: int) -> Section:
    """Raises DocumentNotFound, also for a document of a collection that the call must not read."""
    retriever = context.services.retriever
    for asked in askable([document_id]):
        section = await retriever.section(asked, start, most)
        # Behind the end of a document there is no passage that says which collection it is of; its first one does.
        first = section.passages or (await retriever.section(asked, 0, 1)).passages
        if first and is_readable(context, first[0]):
            return section
    raise DocumentNotFound(
        f"there is no document {document_id!r:.140} to read here; it may have been deleted. Search for it by words"
    )


async def whole_document(context: ToolContext, document_id: str, most: int) -> Section:
    """All passages of the document, at most so many. Raises DocumentNotFound."""
    passages: list[Passage] = []
    while True:
        section = await readable_section(
            context, document_id, len(passages), min(_PASSAGES_AT_ONCE, most - len(passages))
        )
        passages += section.passages
        if not section.passages or len(passages) >= min(most, section.document_chunk_count):
            return Section(passages, section.document_chunk_count)


async def resolve_documents(
    context: ToolContext, document_ids: Sequence[str], collection_ids: Sequence[str], most: int
) -> Sequence[str]:
    """Ids of the documents: those that are named, else the newest of the collections that may be read. Raises
    CollectionNotAllowed, CollectionMissing."""
    if document_ids:
        return list(dict.fromkeys(document_ids))[:most]
    found: list[str] = []
    for collection_id in await readable(context, collection_ids):
        if len(found) < most:
            page = await context.services.documents.page(collection_id, page_size=most - len(found))
            found += [each.document_id for each in page.documents if each.chunk_count]
    return found
