"""Files of vector stores in the shape of OpenAI's API, one by one and in batches: documents of a collection."""

import uuid

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from groundwork.ingest.v1 import ingest_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2

from services.gateway.access.existence import require_existing
from services.gateway.access.own_default import resolve_collection_id
from services.gateway.access.scopes import NEEDS_INGEST, NEEDS_QUERY, NEEDS_QUERY_AND_INGEST
from services.gateway.backends import Backends, Services
from services.gateway.errors import FileNotInStore
from services.gateway.models import Json
from services.gateway.openai.errors import OpenAiRoute
from services.gateway.openai.replies import reply
from services.gateway.openai.stores.calls import copy_files, delete_documents, find_in_store, require_files
from services.gateway.openai.stores.requests import (
    MOST_FILES,
    BatchPath,
    ChangedStoreFile,
    Limit,
    NewFileBatch,
    NewStoreFile,
    Order,
    State,
    metadata,
)
from services.gateway.openai.stores.shapes import deleted, file_batch, file_name, page_of, vector_store_file
from services.gateway.schemas.fields import AfterFile, FilePath, VectorStorePath
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/vector_stores/{vector_store_id}", tags=["openai"], route_class=OpenAiRoute)

_STATES = {
    None: (
        pb.DOCUMENT_STATUS_QUEUED,
        pb.DOCUMENT_STATUS_PROCESSING,
        pb.DOCUMENT_STATUS_READY,
        pb.DOCUMENT_STATUS_FAILED,
    ),
    "in_progress": (pb.DOCUMENT_STATUS_QUEUED, pb.DOCUMENT_STATUS_PROCESSING),
    "completed": (pb.DOCUMENT_STATUS_READY,),
    "failed": (pb.DOCUMENT_STATUS_FAILED,),
}
_CHUNKS_AT_ONCE = 200


@router.post(
    "/files",
    dependencies=[NEEDS_INGEST],
    responses={200: {"description": "The file in the store."}, **problems(404, 413, 415)},
)
async def add_file(vector_store_id: VectorStorePath, new: NewStoreFile, services: Services) -> JSONResponse:
    """Adds a file to a vector store, which reads and indexes it. Harmless when repeated."""
    added = await copy_files(
        services, resolve_collection_id(services, vector_store_id), {new.file_id: metadata(new.attributes)}
    )
    return reply(vector_store_file(added[0]), new)


@router.get("/files", dependencies=[NEEDS_QUERY], responses={200: {"description": "A page of files."}, **problems(404)})
async def list_store_files(
    vector_store_id: VectorStorePath,
    services: Services,
    limit: Limit = 20,
    after: AfterFile = None,
    order: Order = "desc",
    filter: State = None,  # noqa: A002 # its name in OpenAI's API
) -> JSONResponse:
    """The files of a vector store."""
    request = pb.ListDocumentsRequest(
        collection_id=resolve_collection_id(services, vector_store_id), oldest_first=order == "asc"
    )
    return await _page(services, request, filter, limit, after)


@router.get(
    "/files/{file_id}", dependencies=[NEEDS_QUERY], responses={200: {"description": "The file."}, **problems(404)}
)
async def get_store_file(vector_store_id: VectorStorePath, file_id: FilePath, services: Services) -> JSONResponse:
    """One file of a vector store: whether it is searchable yet."""
    return reply(
        vector_store_file(await find_in_store(services, resolve_collection_id(services, vector_store_id), file_id))
    )


@router.post(
    "/files/{file_id}",
    dependencies=[NEEDS_QUERY_AND_INGEST],
    responses={200: {"description": "The file as it is now."}, **problems(404, 413, 415)},
)
async def update_store_file(
    vector_store_id: VectorStorePath, file_id: FilePath, changed: ChangedStoreFile, services: Services
) -> JSONResponse:
    """Gives a file other attributes. It is indexed again; the present version is searched until that is done."""
    store_id = resolve_collection_id(services, vector_store_id)
    await find_in_store(services, store_id, file_id)
    done = await copy_files(services, store_id, {file_id: metadata(changed.attributes)})
    return reply(vector_store_file(done[0]), changed)


@router.delete(
    "/files/{file_id}",
    dependencies=[NEEDS_QUERY_AND_INGEST],
    responses={200: {"description": "It is gone."}, **problems(404)},
)
async def remove_store_file(vector_store_id: VectorStorePath, file_id: FilePath, services: Services) -> JSONResponse:
    """Takes a file out of a vector store. A file of POST /v1/files stays; a document that was uploaded into the collection goes."""
    found = await find_in_store(services, resolve_collection_id(services, vector_store_id), file_id)
    await delete_documents(services, [found.document_id])
    return reply(deleted(file_id, "vector_store.file.deleted"))


@router.get(
    "/files/{file_id}/content",
    dependencies=[NEEDS_QUERY],
    responses={200: {"description": "What was read of the file, chunk by chunk."}, **problems(404)},
)
async def get_store_file_content(
    vector_store_id: VectorStorePath, file_id: FilePath, services: Services
) -> JSONResponse:
    """The text of a file as it is searched; empty until it is."""
    found = await find_in_store(services, resolve_collection_id(services, vector_store_id), file_id)
    texts: list[Json] = []
    while True:
        request = retriever_pb2.FetchChunksRequest(
            document_id=found.document_id, first_ordinal=len(texts), chunk_count=_CHUNKS_AT_ONCE
        )
        answer = await services.retriever.FetchChunks(request, timeout=services.settings.rpc_timeout_s)
        texts += ({"type": "text", "text": each.chunk.text} for each in answer.chunks)
        if not answer.chunks or len(texts) >= answer.document_chunk_count:
            break
    body = {"object": "vector_store.file_content.page", "data": texts, "has_more": False, "next_page": None}
    return reply({**body, "file_id": file_id, "filename": file_name(found.name), "attributes": dict(found.metadata)})


@router.post(
    "/file_batches",
    dependencies=[NEEDS_QUERY_AND_INGEST],
    responses={200: {"description": "The batch."}, **problems(404, 413, 415)},
)
async def create_file_batch(vector_store_id: VectorStorePath, new: NewFileBatch, services: Services) -> JSONResponse:
    """Adds files together. Where one of them is not there, none is added."""
    store_id = resolve_collection_id(services, vector_store_id)
    files = {each.file_id: metadata(each.attributes) for each in new.chosen()}
    await require_existing(services, (store_id,))
    await require_files(services, files)
    batch_id = f"vsfb_{uuid.uuid4().hex}"
    await copy_files(services, store_id, files, batch_id)
    return reply(await _batch(services, store_id, batch_id), new)


@router.get(
    "/file_batches/{batch_id}",
    dependencies=[NEEDS_QUERY],
    responses={200: {"description": "The batch."}, **problems(404)},
)
async def get_file_batch(vector_store_id: VectorStorePath, batch_id: BatchPath, services: Services) -> JSONResponse:
    """How far the files of a batch are. A file that was added again since belongs to the later batch."""
    return reply(await _batch(services, resolve_collection_id(services, vector_store_id), batch_id))


@router.get(
    "/file_batches/{batch_id}/files",
    dependencies=[NEEDS_QUERY],
    responses={200: {"description": "A page of files."}, **problems(404)},
)
async def list_batch_files(
    vector_store_id: VectorStorePath,
    batch_id: BatchPath,
    services: Services,
    limit: Limit = 20,
    after: AfterFile = None,
    order: Order = "desc",
    filter: State = None,  # noqa: A002 # its name in OpenAI's API
) -> JSONResponse:
    """The files of a batch."""
    store_id = resolve_collection_id(services, vector_store_id)
    request = pb.ListDocumentsRequest(collection_id=store_id, oldest_first=order == "asc", batch=batch_id)
    return await _page(services, request, filter, limit, after)


@router.post(
    "/file_batches/{batch_id}/cancel",
    dependencies=[NEEDS_QUERY_AND_INGEST],
    responses={200: {"description": "The batch."}, **problems(404)},
)
async def cancel_file_batch(vector_store_id: VectorStorePath, batch_id: BatchPath, services: Services) -> JSONResponse:
    """Takes those files of a batch out of the store that are not searchable yet."""
    store_id = resolve_collection_id(services, vector_store_id)
    await _batch(services, store_id, batch_id)
    request = pb.ListDocumentsRequest(collection_id=store_id, batch=batch_id, statuses=_STATES["in_progress"])
    request.page.page_size = MOST_FILES
    answer = await services.ingest.ListDocuments(request, timeout=services.settings.rpc_timeout_s)
    await delete_documents(services, [each.document_id for each in answer.documents])
    return reply(await _batch(services, store_id, batch_id, cancelled=list(answer.documents)))


async def _page(
    services: Backends, request: pb.ListDocumentsRequest, state: str | None, limit: int, after: str | None
) -> JSONResponse:
    if state == "cancelled":  # such files are taken out of the store
        return reply(page_of([], has_more=False))
    request.statuses.extend(_STATES[state])
    request.page.page_size = limit
    if after:
        request.after_document_id = (await find_in_store(services, request.collection_id, after)).document_id
    answer = await services.ingest.ListDocuments(request, timeout=services.settings.rpc_timeout_s)
    files = [vector_store_file(each) for each in answer.documents]
    return reply(page_of(files, has_more=bool(answer.next_page_token)))


async def _batch(services: Backends, store_id: str, batch_id: str, cancelled: list[pb.Document] | None = None) -> Json:
    """Raises FileNotInStore."""
    request = pb.ListDocumentsRequest(collection_id=store_id, batch=batch_id, oldest_first=True)
    request.page.page_size = 1
    answer = await services.ingest.ListDocuments(request, timeout=services.settings.rpc_timeout_s)
    first = next(iter([*answer.documents, *(cancelled or ())]), None)
    if first is None:
        raise FileNotInStore(f"the vector store {store_id} has no batch {batch_id}, or its files were taken out")
    return file_batch(batch_id, store_id, first.created_at.seconds, answer.counts, len(cancelled or ()))
