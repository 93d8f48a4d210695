"""Documents in a dict, and the context of a tool that asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from groundwork.retriever.v1 import retriever_pb2

from kit.access.principal import Principal
from services.tools.context import Services, ToolContext
from services.tools.documents import CollectionMissing, Document, DocumentPage, DocumentState
from services.tools.errors import ToolError
from services.tools.models import Passage
from services.tools.passages.retrieval import Degradation, Found, SearchQuery
from services.tools.settings import ToolsSettings
from tests.unit.tools.fakes import START

NOW = START


@dataclass
class FakeDocuments:
    """Documents of one tenant. What is kept is `settles_as` when it is waited for."""

    documents: dict[str, Document] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    collections: set[str] = field(default_factory=lambda: {"default"})
    by_key: dict[str, str] = field(default_factory=dict)
    source_files: dict[str, Sequence[str]] = field(default_factory=dict)
    """Collections that a source fills with the file, by its path."""
    settles_as: DocumentState = DocumentState.READY
    error: tuple[str, str] = ("", "")
    page_size_max: int = 1000

    def add(self, name: str, collection_id: str = "notes", **changes: Any) -> Document:
        self.collections.add(collection_id)
        document_id = f"{len(self.documents):08x}"
        document = Document(document_id, collection_id, name, DocumentState.READY, NOW, NOW, 3)
        self.documents[document_id] = replace(document, **changes)
        return self.documents[document_id]

    async def keep(self, collection_id: str, name: str, text: str, *, call_key: str, append: bool = False) -> Document:
        self._check(collection_id)
        if call_key in self.by_key:
            return self.documents[self.by_key[call_key]]
        place = (collection_id, name)
        there = next((each for each in self.documents.values() if (each.collection_id, each.name) == place), None)
        document = replace(there or self.add(name, collection_id), state=DocumentState.QUEUED)
        self.documents[document.document_id] = document
        before = self.texts.get(document.document_id, "") if append else ""
        self.texts[document.document_id] = f"{before}\n\n{text}" if before else text
        self.by_key[call_key] = document.document_id
        return document

    async def index_source_file(self, path: str, collection_ids: Sequence[str]) -> Document:
        found = [each for each in self.source_files.get(path, ()) if not collection_ids or each in collection_ids]
        if not found:
            raise ToolError(f"the source has no file {path}", reason="SOURCE_FILE_NOT_FOUND")
        there = next((each for each in self.documents.values() if each.name == path), None)
        return there or self.add(path, found[0], state=DocumentState.QUEUED)

    async def settled(self, document_id: str, *, timeout_s: float) -> Document | None:
        document = await self.get(document_id)
        if document is None:
            return None
        reason, message = self.error
        changed = replace(document, state=self.settles_as, error_reason=reason, error_message=message)
        self.documents[document_id] = changed
        return changed

    async def get(self, document_id: str) -> Document | None:
        return self.documents.get(document_id)

    async def page(self, collection_id: str, *, page_size: int, page_token: str = "") -> DocumentPage:
        self._check(collection_id)
        found = [each for each in self.documents.values() if each.collection_id == collection_id]
        start, size = int(page_token or 0), min(page_size, self.page_size_max)
        more = str(start + size) if len(found) > start + size else ""
        return DocumentPage(found[start : start + size], more)

    async def delete(self, document_id: str) -> bool:
        return self.documents.pop(document_id, None) is not None

    async def collection_ids(self) -> Sequence[str]:
        return sorted(self.collections)

    async def create_collection(self, collection_id: str) -> None:
        self.collections.add(collection_id)

    def _check(self, collection_id: str) -> None:
        if collection_id not in self.collections:
            raise CollectionMissing(f"there is no collection {collection_id}")


@dataclass
class FakeRetriever:
    """Finds the passages of the asked collections that hold a word of a query, in order."""

    passages: list[Passage] = field(default_factory=list)
    degraded: tuple[Degradation, ...] = ()
    queries: list[SearchQuery] = field(default_factory=list)

    def add(self, text: str, collection_id: str) -> None:
        number = len(self.passages)
        self.passages.append(
            Passage(f"c{number}", f"d{number}", f"{number}.md", collection_id, text, hit=hit_of(f"c{number}", text))
        )

    async def search(self, query: SearchQuery) -> Found:
        self.queries.append(query)
        words = {word for text in query.queries for word in text.lower().split()}
        found = [
            passage
            for passage in self.passages
            if passage.collection_id in query.collection_ids and words & set(passage.text.lower().split())
        ]
        return Found(found[: query.top_k], self.degraded)


def hit_of(chunk_id: str, text: str) -> retriever_pb2.Hit:
    return retriever_pb2.Hit(chunk=retriever_pb2.Chunk(chunk_id=chunk_id, text=text))


@dataclass
class Told:
    """What the person was told meanwhile."""

    messages: list[str] = field(default_factory=list)

    async def __call__(self, message: str) -> None:
        self.messages.append(message)


LOCAL = Principal("local", "local-user")


def tool_context(
    *,
    documents: Any = None,
    retriever: Any = None,
    models: Any = None,
    collection_ids: Sequence[str] = (),
    call_id: str = "run1/call1",
    told: Told | None = None,
    caller: Principal = LOCAL,
    **more: Any,
) -> ToolContext:
    services = Services(retriever, models, documents or FakeDocuments(), **more)
    return ToolContext(call_id, tuple(collection_ids), ToolsSettings(), services, _now, caller, told or Told())


def _now() -> datetime:
    return NOW
