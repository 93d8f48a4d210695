"""Lists the documents of a collection, and the collections there are."""

from typing import Any

from services.tools.context import ToolContext
from services.tools.documents import CollectionMissing, Document, DocumentPage
from services.tools.models import Policy, ToolOutput
from services.tools.passages.scope import permitted

DOCUMENTS_MAX = 100

SCHEMA = {
    "type": "function",
    "function": {
        "name": "rag_list",
        "description": (
            "Lists the documents of a collection, newest first: name, id, state, date and number of chunks. Without a collection: "
            "those of the agent's own notes, and which collections there are."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "collection_id": {
                    "type": "string",
                    "description": "Collection. Default: the agent's own notes.",
                    "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$",
                },
                "limit": {
                    "type": "integer",
                    "description": "Most documents to list. Default: 20.",
                    "minimum": 1,
                    "maximum": DOCUMENTS_MAX,
                },
                "page_token": {
                    "type": "string",
                    "description": "next_page_token of an earlier answer, to go on after it.",
                    "maxLength": 500,
                },
            },
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=5.0,
    worth=1,
    called_for_by=(
        r"\b(?:which|what|list|show|all)\b[\w\s]{0,20}\b(?:documents|files|notes|collections|uploads)\b",
        r"(?:welche|liste|zeig\w*|alle)[\w\s]{0,20}(?:dokumente|dateien|notizen|sammlungen)",
        r"(?:quels|liste|montre)[\w\s]{0,20}(?:documents|fichiers|notes)",
        r"(?:qué|lista|muestra|quais|elenca|quali)[\w\s]{0,20}(?:documentos|archivos|notas|arquivos|documenti|file)",
        r"(?:welke|jakie|lista)[\w\s]{0,20}(?:documenten|bestanden|dokument\w*|pliki)",
        r"(?:какие|список|покажи|які)[\w\s]{0,20}(?:документ\w*|файл\w*|замет\w*)",
        r"(?:hangi|liste)\w*[\w\s]{0,20}(?:belge|dosya)\w*",
        r"列出|哪些文[件档]|文書.{0,6}一覧|文書の一覧|ファイル一覧|문서 ?목록|قائمة",
    ),
)


async def rag_list(context: ToolContext, collection_id: str = "", limit: int = 20, page_token: str = "") -> ToolOutput:
    """Documents of one collection; without a collection also the ids of those that may be listed."""
    collection = permitted(context.collection_ids, context.resolve_collection_id(collection_id) or _default(context))
    documents = context.services.documents
    content: dict[str, Any] = {"collection_id": collection}
    if not collection_id:
        content["collections"] = list(context.collection_ids or await documents.collection_ids())
    try:
        page = await documents.page(collection, page_size=limit, page_token=page_token)
    except CollectionMissing:
        if collection_id or collection != context.notes:
            raise
        page = DocumentPage(())  # nothing has been kept yet
    content |= {
        "documents": [_described(document) for document in page.documents],
        "next_page_token": page.next_page_token,
    }
    more = ", and there are more" if page.next_page_token else ""
    return ToolOutput(content, f"{len(page.documents)} documents in {collection}{more}.")


def _default(context: ToolContext) -> str:
    """The notes, or the first collection that may be listed where the notes may not."""
    notes = context.notes
    return notes if not context.collection_ids or notes in context.collection_ids else context.collection_ids[0]


def _described(document: Document) -> dict[str, Any]:
    described: dict[str, Any] = {
        "document_id": document.document_id,
        "name": document.name,
        "state": document.state.value,
        "uploaded_at": document.created_at.isoformat(timespec="seconds"),
        "changed_at": document.updated_at.isoformat(timespec="seconds"),
        "chunks": document.chunk_count,
    }
    if document.error_reason:
        described["error"] = document.error_message
    return described
