"""What the contract demands of requests, checked before anything is done. Messages name the field and the limit."""

import re
from collections.abc import Sequence

import numpy as np

from services.retriever.errors import InvalidRequest
from services.retriever.models import Activation, IndexBatch, RevisionKey, SearchRequest

MAX_QUERIES = 8
MAX_QUERY_CHARS = 8192
MAX_COLLECTIONS = 64
MAX_TOP_K = 200
DEFAULT_TOP_K = 10
MAX_FILTER_DOCUMENTS = 1000
MAX_CONDITIONS = 32
MAX_CONDITION_VALUES = 100
MAX_FETCH = 200
MAX_WINDOW = 10
MAX_DIMENSION = 4096
_NORM_TOLERANCE = 0.02
"""int8 and bf16 embedders normalise before they round: their rows are off by up to 1 %."""

_SCOPE_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_=-]{0,127}")


def check_scope_id(field: str, value: str) -> None:
    """Tenant and collection ids: part of NATS subjects and index terms."""
    if not _SCOPE_ID.fullmatch(value):
        raise InvalidRequest(f"{field} {value!r} is not an id; use 1 to 64 of a-z, 0-9, '-' and '_'", field=field)


def check_id(field: str, value: str) -> None:
    """Document, revision and chunk ids."""
    if not _ID.fullmatch(value):
        raise InvalidRequest(
            f"{field} {value!r} is not an id; use 1 to 128 of A-Z, a-z, 0-9, '-', '_', '='", field=field
        )


def check_revision(key: RevisionKey) -> None:
    """All three parts become index terms and store keys."""
    check_scope_id("tenant_id", key.tenant_id)
    check_id("document_id", key.document_id)
    check_id("revision_id", key.revision_id)


def check_search(request: SearchRequest) -> None:
    """Raises InvalidRequest for the first rule that is broken."""
    check_scope_id("tenant_id", request.scope.tenant_id)
    _check_count("queries", request.queries, 1, MAX_QUERIES)
    for query_text in request.queries:
        if not query_text.strip():
            raise InvalidRequest("a query is empty; say what to search for", field="queries")
        if len(query_text) > MAX_QUERY_CHARS:
            raise InvalidRequest(f"a query has over {MAX_QUERY_CHARS} characters; shorten it", field="queries")
    if not 1 <= request.top_k <= MAX_TOP_K:
        raise InvalidRequest(f"top_k is {request.top_k}; use 1 to {MAX_TOP_K}", field="top_k")
    _check_count("collection_ids", request.scope.collection_ids, 1, MAX_COLLECTIONS)
    for collection_id in request.scope.collection_ids:
        check_scope_id("collection_ids", collection_id)
    _check_filter(request)


def _check_filter(request: SearchRequest) -> None:
    _check_count("filter.document_ids", request.scope.document_ids, 0, MAX_FILTER_DOCUMENTS)
    for document_id in request.scope.document_ids:
        check_id("filter.document_ids", document_id)
    _check_count("filter.metadata", request.scope.metadata, 0, MAX_CONDITIONS)
    for condition in request.scope.metadata:
        check_metadata_key(condition.key)
        _check_count(f"filter.metadata[{condition.key}].values", condition.values, 1, MAX_CONDITION_VALUES)


def check_metadata_key(key: str) -> None:
    """Control characters would let one field pose as another: a key and its value share an index term."""
    if not key or len(key) > 256 or not key.isprintable():
        raise InvalidRequest(f"metadata key {key!r} is not usable; use 1 to 256 printable characters", field="metadata")


def check_batch(batch: IndexBatch, dimension: int | None) -> None:
    """Chunks and vectors belong together, and the vectors are what an index of cosines needs."""
    rows, width = batch.vectors.shape
    if rows != len(batch.chunks):
        raise InvalidRequest(f"a batch has {len(batch.chunks)} chunks and {rows} vectors; send one vector a chunk")
    if not 1 <= width <= MAX_DIMENSION:
        raise InvalidRequest(f"vectors of {width} dimensions cannot be indexed; use 1 to {MAX_DIMENSION}")
    if dimension is not None and width != dimension:
        raise InvalidRequest(f"a batch has vectors of {width} dimensions after one of {dimension}; do not mix models")
    norms = np.linalg.norm(batch.vectors, axis=1)
    if not np.all(np.abs(norms - 1.0) <= _NORM_TOLERANCE):  # false for NaN and infinity too
        raise InvalidRequest("a vector is not L2-normalised or not finite; divide each by its norm before sending")
    for item in batch.chunks:
        check_id("chunk_id", item.chunk.chunk_id)
        if not item.embedded_text:
            raise InvalidRequest(f"chunk {item.chunk.chunk_id} has no embedded_text; there is nothing to search")
        for key in item.chunk.metadata:
            check_metadata_key(key)


def check_activation(activation: Activation) -> None:
    """A revision without chunks would hide the document while it is said to be ready."""
    check_revision(activation.key)
    check_scope_id("collection_id", activation.collection_id)
    if activation.number < 1:
        raise InvalidRequest("revision_number is 0; revisions are numbered from 1", field="revision_number")
    if activation.chunk_count < 1:
        raise InvalidRequest(
            "expected_chunk_count is 0; a revision without chunks cannot be activated, delete the document instead",
            field="expected_chunk_count",
        )


def check_fetch(chunk_ids: Sequence[str], window: int) -> None:
    """The limits of FetchChunks."""
    _check_count("chunk_ids", chunk_ids, 1, MAX_FETCH)
    for chunk_id in chunk_ids:
        check_id("chunk_ids", chunk_id)
    if window > MAX_WINDOW:
        raise InvalidRequest(f"window is {window}; use 0 to {MAX_WINDOW}", field="window")


def _check_count(field: str, values: Sequence[object], least: int, most: int) -> None:
    if not least <= len(values) <= most:
        raise InvalidRequest(f"{field} has {len(values)} entries; give {least} to {most}", field=field)
