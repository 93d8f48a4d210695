"""Keeps a text, or takes a file of a source, as a document, so that later searches find it.

Each call needs a person's approval: what is kept is found and cited from then on by everybody who may read the collection, a text
of the same title is replaced or grows, and a document that was read may have asked the model to keep something.
"""

import hashlib
import re
import unicodedata
from typing import Any

from kit.access.principal import INGEST
from services.tools.context import ToolContext
from services.tools.documents import CollectionMissing, Document, DocumentState
from services.tools.errors import InvalidArguments, ToolError
from services.tools.models import Effect, Policy, ToolOutput
from services.tools.passages.scope import permitted

TEXT_CHARACTERS_MAX = 100_000
"""A call is recorded with its arguments in one message of the run's log, which may have 1 MiB. What is larger is uploaded."""
TITLE_CHARACTERS_MAX = 200
SOURCE_PATH_CHARACTERS_MAX = 1000
READY_WAIT_S = 20.0
"""How long a call waits for the text to be searchable; a page takes a second or two."""
_NAME_FROM_TEXT_CHARACTERS = 60
_SUFFIXES = (".md", ".markdown", ".txt")

SCHEMA = {
    "type": "function",
    "function": {
        "name": "rag_index",
        "description": (
            "Keeps a text as a document that later searches find, for example a note or a summary. A document of the same title in "
            "the same collection is replaced, or grows with append. With source_path instead of text: indexes a file of a source "
            "now, as it is there. Says when the document is searchable. The user's notes are remembered in later conversations: "
            "MEMORY.md has what lasts, SESSION-STATE.md what is being worked on, daily/2026-01-31.md what a day brought, and the "
            "folder memories/ one subject a file."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "text": {
                    "type": "string",
                    "description": "The text to keep, plain or Markdown, complete in itself. Not with source_path.",
                    "minLength": 1,
                    "maxLength": TEXT_CHARACTERS_MAX,
                },
                "title": {
                    "type": "string",
                    "description": (
                        "Name of the document, with its folder where it has one: 'Q4 report', 'memories/tea.md'. Default: the "
                        "beginning of the text."
                    ),
                    "maxLength": TITLE_CHARACTERS_MAX,
                },
                "source_path": {
                    "type": "string",
                    "description": (
                        "File of a source to index: the source's name, a slash and the file's path there, for example "
                        "'contracts/2024/plan.pdf'. Not with text or title."
                    ),
                    "minLength": 1,
                    "maxLength": SOURCE_PATH_CHARACTERS_MAX,
                },
                "collection_id": {
                    "type": "string",
                    "description": (
                        "Collection to keep the text in; it must exist. Default: the agent's own notes. With source_path: the "
                        "collection that the source fills; only needed where two sources have the same name."
                    ),
                    "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$",
                },
                "append": {
                    "type": "boolean",
                    "description": (
                        "Puts the text behind what the document of this title has, instead of replacing it. For notes that grow: "
                        "nothing that others write meanwhile is lost. Default: false."
                    ),
                },
            },
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=65.0,
    needs_approval=True,
    effect=Effect.IDEMPOTENT,
    parallel_safe=False,
    scope=INGEST,
    called_for_by=(
        r"\b(?:note|remember|save|keep|store|memori[sz]e|remind)\b",
        r"notier|\bmerk|speicher|notiz|halte? .{0,30} fest",
        r"\bnote[rz]?\b|retien|enregistr|souvien|rappelle",
        r"\bguarda|\banota|apunta|recuerda|lembr",
        r"ricord|annota|salva",
        r"onthoud|noteer|bewaar|zapamiętaj|zapisz|zanotuj",
        r"запомни|запиши|сохрани|заметк|запам.?ятай|нотатк",
        r"kaydet|hatırla|not al",
        r"记住|记下|保存|備忘|覚え|メモ|기억|저장|메모|تذكر|احفظ",
    ),
)


async def rag_index(
    context: ToolContext,
    text: str = "",
    title: str = "",
    collection_id: str = "",
    source_path: str = "",
    append: bool = False,
) -> ToolOutput:
    """The document and whether it is searchable yet. The same call again ends in the same document."""
    if source_path:
        if text or title or append:
            raise InvalidArguments("give either source_path, or text with its title")
        return await _index_source_file(context, source_path, collection_id)
    if append and not title.strip():
        raise ToolError("nothing says which document to append to; give its title", reason="TITLE_MISSING")
    if not text.strip():
        raise ToolError("there is nothing to keep: the text is empty; give text or source_path", reason="TEXT_EMPTY")
    # A collection other than the notes has to be named, even the only one: who allows the call reads it in the arguments.
    collection = permitted(context.collection_ids, context.resolve_collection_id(collection_id) or context.notes)
    name = document_name(title, text, context.call_id)
    await context.progress(f"Keeping {name} in {collection}")
    document = await _kept(context, collection, name, text, append=append)
    if not document.is_settled:
        await context.progress(f"Waiting until {name} is searchable")
    return _output(await _settled(context, document), name)


async def _index_source_file(context: ToolContext, path: str, collection_id: str) -> ToolOutput:
    """Takes the file of a source that fills a collection of the call."""
    allowed = context.collection_ids
    if collection_id:
        allowed = (permitted(allowed, context.resolve_collection_id(collection_id)),)
    await context.progress(f"Taking {path} from its source")
    document = await context.services.documents.index_source_file(path, allowed)
    if not document.is_settled:
        await context.progress(f"Waiting until {document.name} is searchable")
    return _output(await _settled(context, document), document.name)


async def _kept(context: ToolContext, collection_id: str, name: str, text: str, *, append: bool) -> Document:
    documents = context.services.documents
    call_key = hashlib.sha256(context.call_id.encode()).hexdigest()
    try:
        return await documents.keep(collection_id, name, text, call_key=call_key, append=append)
    except CollectionMissing:
        if collection_id != context.notes:
            raise
    await documents.create_collection(collection_id)
    return await documents.keep(collection_id, name, text, call_key=call_key, append=append)


async def _settled(context: ToolContext, document: Document) -> Document | None:
    """The document as it is after a while. Where its state is not known, the document that was stored: the text is not lost."""
    try:
        return await context.services.documents.settled(document.document_id, timeout_s=READY_WAIT_S)
    except ToolError:
        return document


def _output(document: Document | None, name: str) -> ToolOutput:
    if document is None:
        raise ToolError(f"{name} was deleted while it was being read", reason="DOCUMENT_DELETED")
    if document.error_reason:
        raise ToolError(f"{name} could not be read: {document.error_message}", reason=document.error_reason)
    ready = document.state is DocumentState.READY
    said = "It is searchable now." if ready else "It is stored safely and will be searchable soon; rag_list says when."
    content: dict[str, Any] = {
        "document_id": document.document_id,
        "name": document.name,
        "collection_id": document.collection_id,
        "state": document.state.value,
        "searchable": ready,
        "chunks": document.chunk_count if ready else None,
        "message": said,
    }
    return ToolOutput(content, f"Kept {document.name} in {document.collection_id}. {said}")


def document_name(title: str, text: str, call_id: str) -> str:
    """A file name from the title, with its folders. Without a title it is the beginning of the text, with a mark of the call, so
    that two notes that begin alike are two documents and a repeated call makes one."""
    if named := "/".join(part for each in title.split("/") if (part := _clean(each))):
        return named if named.lower().endswith(_SUFFIXES) else f"{named}.md"
    beginning = _clean(text[: 4 * _NAME_FROM_TEXT_CHARACTERS].lstrip("#*>- \n"))[:_NAME_FROM_TEXT_CHARACTERS].strip()
    mark = hashlib.sha256(call_id.encode()).hexdigest()[:8]
    return f"{beginning or 'note'} ({mark}).md"


def _clean(raw: str) -> str:
    """Without what a file name cannot hold: invisible characters, slashes, line breaks, dots alone."""
    spaced = re.sub(r"[\s/\\]+", " ", raw)
    visible = "".join(character for character in spaced if not unicodedata.category(character).startswith("C"))
    return " ".join(visible.split()).strip(". ")
