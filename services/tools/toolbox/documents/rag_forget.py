"""Deletes a document: no search finds it any more, and what quotes it is forgotten with it."""

import re

from kit.access.principal import INGEST
from services.tools.context import ToolContext
from services.tools.documents import CollectionMissing, Document
from services.tools.errors import ToolError
from services.tools.models import Effect, Policy, ToolOutput
from services.tools.passages.scope import permitted

PAGE_SIZE = 1000
PAGES_MAX = 20
"""A name is looked for among this many pages of documents; in a larger collection the id has to be given."""
_DOCUMENT_ID = re.compile(r"[0-9a-f]{8,64}")

SCHEMA = {
    "type": "function",
    "function": {
        "name": "rag_forget",
        "description": (
            "Deletes a document for good, by its id or its exact name. Afterwards no search finds it. rag_list shows ids and names."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "document": {
                    "type": "string",
                    "description": "Id or exact name of the document, for example 'Q4 report.md'.",
                    "minLength": 1,
                    "maxLength": 255,
                },
                "collection_id": {
                    "type": "string",
                    "description": "Collection in which the name is looked for. Default: the agent's own notes.",
                    "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$",
                },
            },
            "required": ["document"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=30.0,
    needs_approval=True,
    effect=Effect.IDEMPOTENT,
    parallel_safe=False,
    scope=INGEST,
    called_for_by=(
        r"\b(?:delete|forget|remove|erase|discard)\b",
        r"lösch|vergiss|entfern",
        r"supprim|efface|oublie",
        r"\bborra|\belimina|olvida|\bapaga|exclu[ai]|esquece",
        r"cancell|dimentica",
        r"verwijder|vergeet|usuń|skasuj|zapomnij",
        r"удали|забудь|сотри|видали",
        r"\bsil\b|\bunut",
        r"删除|忘记|削除|忘れて|消して|삭제|지워|잊어|احذف|انس",
    ),
)


async def rag_forget(document: str, context: ToolContext, collection_id: str = "") -> ToolOutput:
    """Whether there was such a document to delete. One that is gone already is no error: the call may be a repeated one."""
    collection_id = context.resolve_collection_id(collection_id)
    found = await _by_id(context, document, collection_id)
    if found is None:
        collection = permitted(context.collection_ids, collection_id or context.notes)
        found = await _by_name(context, document, collection)
        if found is None:
            said = f"There is no document {document!r} in {collection}; it may have been deleted before."
            return ToolOutput({"deleted": False, "message": f"{said} rag_list shows what there is."}, said)
    await context.progress(f"Deleting {found.name} from {found.collection_id}")
    deleted = await context.services.documents.delete(found.document_id)
    said = f"{found.name} in {found.collection_id} {'is' if deleted else 'was already'} deleted."
    content = {"deleted": deleted, "document_id": found.document_id, "name": found.name, "message": said}
    return ToolOutput(content, said)


async def _by_id(context: ToolContext, document_id: str, collection_id: str) -> Document | None:
    """Raises CollectionNotAllowed when the document is in a collection that the call may not touch."""
    if not _DOCUMENT_ID.fullmatch(document_id):
        return None
    found = await context.services.documents.get(document_id)
    if found is None or (collection_id and found.collection_id != collection_id):
        return None
    permitted(context.collection_ids, found.collection_id)
    return found


async def _by_name(context: ToolContext, name: str, collection_id: str) -> Document | None:
    """A name is unique in its collection. One without its ending .md, as it was given to rag_index, is found too."""
    names, token = {name, f"{name}.md"}, ""
    found: dict[str, Document] = {}
    for _ in range(PAGES_MAX):
        try:
            page = await context.services.documents.page(collection_id, page_size=PAGE_SIZE, page_token=token)
        except CollectionMissing:
            if collection_id != context.notes:
                raise
            return None
        found |= {document.name: document for document in page.documents if document.name in names}
        token = page.next_page_token
        if name in found or not token:
            return found.get(name) or found.get(f"{name}.md")
    raise ToolError(
        f"{collection_id} has too many documents to look for a name; give the document's id", reason="GIVE_ID"
    )
