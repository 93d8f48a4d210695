"""Files and vector stores in the shapes of OpenAI's API. A file is a document, and a vector store is a collection."""

from collections.abc import Mapping, Sequence

from groundwork.ingest.v1 import ingest_pb2 as pb

from services.gateway.models import Json
from services.gateway.openai.stores.file_form import PURPOSE, PURPOSES

_STATES: Mapping[int, str] = {
    pb.DOCUMENT_STATUS_READY: "completed",
    pb.DOCUMENT_STATUS_FAILED: "failed",
}
_UNSUPPORTED = "UNSUPPORTED_TYPE"
_SERVER_FAULTS = ("UNAVAILABLE", "INTERNAL", "DEADLINE", "LOST", "STORE")


def file_object(document: pb.Document) -> Json:
    """A document as a file."""
    return {
        "id": document.document_id,
        "object": "file",
        "bytes": document.size_bytes,
        "created_at": document.created_at.seconds,
        "expires_at": None,
        "filename": file_name(document.name),
        "purpose": document.metadata.get(PURPOSE, PURPOSES[0]),
        "status": "processed",
        "status_details": None,
    }


def file_name(name: str) -> str:
    """The name of a document without its folders."""
    return name.rpartition("/")[2]


def vector_store(collection: pb.Collection) -> Json:
    """A collection with its counts as a vector store."""
    counts = collection.counts
    return {
        "id": collection.collection_id,
        "object": "vector_store",
        "created_at": collection.created_at.seconds,
        "name": collection.name,
        "usage_bytes": counts.size_bytes,
        "file_counts": file_counts(counts),
        "status": "in_progress" if counts.on_their_way else "completed",
        "expires_after": None,
        "expires_at": None,
        "last_active_at": None,
        "metadata": {},
    }


def vector_store_file(document: pb.Document) -> Json:
    """A document as a file of a vector store. Its id is that of the file that was uploaded."""
    is_failed = document.status == pb.DOCUMENT_STATUS_FAILED
    return {
        "id": file_id(document),
        "object": "vector_store.file",
        "usage_bytes": document.size_bytes,
        "created_at": document.created_at.seconds,
        "vector_store_id": document.collection_id,
        "status": _STATES.get(document.status, "in_progress"),
        "last_error": _last_error(document.error) if is_failed else None,
        "chunking_strategy": {"type": "other"},
        "attributes": dict(document.metadata),
    }


def file_id(document: pb.Document) -> str:
    """The id by which clients know the file of a document."""
    return document.copy_of or document.document_id


def file_batch(batch_id: str, store_id: str, created_at_s: int, counts: pb.DocumentCounts, cancelled: int = 0) -> Json:
    """Files that were added to a vector store together."""
    state = "cancelled" if cancelled else "in_progress" if counts.on_their_way else "completed"
    return {
        "id": batch_id,
        "object": "vector_store.files_batch",
        "created_at": created_at_s,
        "vector_store_id": store_id,
        "status": state,
        "file_counts": file_counts(counts, cancelled),
    }


def file_counts(counts: pb.DocumentCounts, cancelled: int = 0) -> Json:
    """Files by state."""
    known = {"in_progress": counts.on_their_way, "completed": counts.ready, "failed": counts.failed}
    return {**known, "cancelled": cancelled, "total": sum(known.values()) + cancelled}


def page_of(data: Sequence[Json], *, has_more: bool) -> Json:
    """A page of a list."""
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"object": "list", "data": list(data), "first_id": first, "last_id": last, "has_more": has_more}


def deleted(item_id: str, kind: str) -> Json:
    """That something is gone."""
    return {"id": item_id, "object": kind, "deleted": True}


def _last_error(error: pb.DocumentError) -> Json:
    if error.reason == _UNSUPPORTED:
        code = "unsupported_file"
    else:
        code = "server_error" if any(word in error.reason for word in _SERVER_FAULTS) else "invalid_file"
    return {"code": code, "message": error.message}
