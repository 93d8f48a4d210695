"""What the routes of files and of vector stores ask of ingestion."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from groundwork.ingest.v1 import ingest_pb2 as pb

from kit.errors import NotFound, PermissionDenied
from services.gateway.backends import Backends
from services.gateway.errors import FileNotInStore
from services.gateway.openai.stores.shapes import file_id

_AT_ONCE = 8
_NOBODYS = "0" * 32
"""An id that no document has."""

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


async def find_file(services: Backends, document_id: str) -> pb.Document:
    """The document that a file is. Raises NotFound."""
    request = pb.GetDocumentRequest(document_id=document_id)
    return (await services.ingest.GetDocument(request, timeout=services.settings.rpc_timeout_s)).document


async def find_in_store(services: Backends, store_id: str, document_id: str) -> pb.Document:
    """The document that a file is in a store. Raises FileNotInStore."""
    try:
        file = await find_file(services, document_id)
        if file.collection_id != store_id or file.status == pb.DOCUMENT_STATUS_KEPT:
            file = await find_file(services, file.copies.get(store_id, _NOBODYS))
    except NotFound as error:
        raise FileNotInStore(
            f"the vector store {store_id} has no file {document_id}; add it with POST /v1/vector_stores/{store_id}/files"
        ) from error
    return file


async def require_files(services: Backends, document_ids: Iterable[str]) -> None:
    """Raises NotFound for a file that is not there."""
    await _each(list(document_ids), lambda document_id: find_file(services, document_id))


async def copy_files(
    services: Backends, store_id: str, files: Mapping[str, Mapping[str, str]], batch_id: str = ""
) -> list[pb.Document]:
    """Adds files to a store, each with its metadata, and returns their documents there."""

    async def copy(document_id: str) -> pb.Document:
        request = pb.CopyDocumentRequest(
            document_id=document_id, collection_id=store_id, metadata=files[document_id], batch=batch_id
        )
        return (await services.ingest.CopyDocument(request, timeout=services.settings.rpc_timeout_s)).document

    return await _each(list(files), copy)


async def delete_documents(services: Backends, document_ids: Iterable[str], *, only_own: bool = False) -> None:
    """Removes documents. Those that are gone already are no error; with `only_own`, those that the caller may not remove are
    none either, and stay."""

    harmless = (NotFound, PermissionDenied) if only_own else (NotFound,)

    async def delete(document_id: str) -> None:
        request = pb.DeleteDocumentRequest(document_id=document_id)
        with suppress(*harmless):
            await services.ingest.DeleteDocument(request, timeout=services.settings.rpc_timeout_s)

    await _each(list(document_ids), delete)


async def file_ids(services: Backends, document_ids: Iterable[str]) -> dict[str, str]:
    """By what id clients know the files of documents. One that cannot be looked up is known by its own."""

    async def known_as(document_id: str) -> str:
        try:
            return file_id(await find_file(services, document_id))
        except NotFound:
            return document_id

    ids = list(document_ids)
    return dict(zip(ids, await _each(ids, known_as), strict=True))


async def _each(items: Sequence[ItemT], do: Callable[[ItemT], Awaitable[ResultT]]) -> list[ResultT]:
    """What `do` makes of each, a few at a time, in their order."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(item: ItemT) -> ResultT:
        async with slots:
            return await do(item)

    return await asyncio.gather(*map(one, items))
