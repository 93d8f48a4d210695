"""The MCP tools about documents: search and fetch as assistants' connectors expect them, lists, and the upload."""

import base64
import binascii
import secrets
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from services.gateway.mcp.caller import CallersApi, part, request_of
from services.gateway.mcp.own_api import ApiRequest, Refused
from services.gateway.mcp.results import (
    FetchedItem,
    FoundItem,
    FoundItems,
    ListedCollection,
    ListedCollections,
    ListedDocument,
    ListedDocuments,
)
from services.gateway.models import Json

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_NEIGHBOURS = 4
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
"""A document of the same name gets the new text."""
_ANSWERED_HITS = 10

Collections = Annotated[
    list[str] | None, Field(description="Collections to look in, at most 64; all that you may read when left out.")
]


class DocumentTools:
    """The tools over the API."""

    def __init__(self, api: CallersApi) -> None:
        self._api = api

    def register(self, server: MCPServer[Any]) -> None:
        """Adds the tools to the server."""
        for function in (self.search, self.fetch, self.list_collections, self.list_documents):
            server.add_tool(function, annotations=READS)
        server.add_tool(self.upload_document, annotations=_WRITES)

    async def search(
        self,
        query: Annotated[str, Field(min_length=1, max_length=8000, description="What to look for, in plain words.")],
        context: Context[Any, Any],
        collection_ids: Collections = None,
    ) -> FoundItems:
        """Searches the user's documents and returns the passages that fit best. Read one with `fetch`."""
        client = request_of(context)
        where = await self._api.readable(client, collection_ids)
        body = {"query": query, "collection_ids": where, "top_k": _ANSWERED_HITS}
        found = await self._api.json(client, "POST", "/v1/search", body=body)
        return FoundItems(
            results=[
                FoundItem(id=hit["chunk_id"], title=_title(hit), url=self._api.passage_url(client, hit["chunk_id"]))
                for hit in found["hits"]
            ]
        )

    async def fetch(
        self,
        id: Annotated[str, Field(description="The `id` of a search result or of an answer's source.")],  # noqa: A002 - the convention's name
        context: Context[Any, Any],
    ) -> FetchedItem:
        """Returns a passage that `search` found, with the text around it."""
        client = request_of(context)
        window = await self._api.json(client, "GET", f"/v1/chunks/{part(id)}", query={"window": _NEIGHBOURS})
        chunk = window["chunk"]
        passages = [*window["before"], chunk, *window["after"]]
        own = {name: chunk[name] for name in ("document_id", "document_name", "collection_id", "page", "language")}
        return FetchedItem(
            id=chunk["chunk_id"],
            title=_title(chunk),
            text="\n\n".join(each["text"] for each in passages),
            url=self._api.passage_url(client, chunk["chunk_id"]),
            metadata={**chunk["metadata"], **own},
        )

    async def list_collections(self, context: Context[Any, Any]) -> ListedCollections:
        """Lists the collections of documents that the user may read."""
        listed = await self._api.json(request_of(context), "GET", "/v1/collections")
        return ListedCollections(
            collections=[ListedCollection(id=each["id"], name=each["name"]) for each in listed["collections"]]
        )

    async def list_documents(
        self,
        context: Context[Any, Any],
        collection_id: Annotated[str, Field(description="The collection; `default` is the user's own.")] = "default",
        page_size: Annotated[int, Field(ge=1, le=200, description="At most this many.")] = 50,
        page_token: Annotated[str, Field(description="`next_page_token` of the page before.")] = "",
    ) -> ListedDocuments:
        """Lists the documents of a collection, newest first."""
        path = f"/v1/collections/{part(collection_id)}/documents"
        query = {"page_size": page_size, "page_token": page_token}
        listed = await self._api.json(request_of(context), "GET", path, query=query)
        return ListedDocuments(
            documents=[listed_document(each) for each in listed["documents"]], next_page_token=listed["next_page_token"]
        )

    async def upload_document(
        self,
        context: Context[Any, Any],
        name: Annotated[
            str, Field(min_length=1, max_length=400, description="File name with its ending, as `notes.md`.")
        ],
        text: Annotated[str, Field(description="The document, where it is text.")] = "",
        content_base64: Annotated[str, Field(description="Its bytes in base64, where it is not text.")] = "",
        collection_id: Annotated[str, Field(description="Where to put it; `default` is the user's own.")] = "default",
    ) -> ListedDocument:
        """Stores a document of up to 700 kB; it is searchable a few seconds later. A document of that name gets the new content."""
        content = _content(text, content_base64)
        boundary = secrets.token_hex(16)
        asked = ApiRequest(
            "POST",
            f"/v1/collections/{part(collection_id)}/documents",
            body=_form(boundary, name, content),
            media_type=f"multipart/form-data; boundary={boundary}",
        )
        try:
            answer = await self._api.own.parsed(request_of(context), asked)
        except Refused as refused:
            raise ToolError(str(refused)) from refused
        return listed_document(answer["document"])


def listed_document(document: Json) -> ListedDocument:
    """A document of the API as tools list it."""
    return ListedDocument(
        id=document["id"],
        name=document["name"],
        status=document["status"],
        collection_id=document["collection_id"],
        metadata=document.get("metadata") or {},
        uri=f"groundwork://documents/{document['id']}",
    )


def _title(passage: Json) -> str:
    return " › ".join([passage["document_name"], *passage["heading_path"]])


def _content(text: str, content_base64: str) -> bytes:
    if bool(text) == bool(content_base64):
        raise ToolError("give the document either as `text` or as `content_base64`")
    if text:
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode(content_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolError("`content_base64` is not base64; encode the bytes of the file again") from error


def _form(boundary: str, name: str, content: bytes) -> bytes:
    quoted = name.replace("\\", "\\\\").replace('"', "%22").replace("\r", " ").replace("\n", " ")
    head = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{quoted}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
