"""What the contract demands of requests, checked before anything is done. Messages name the field and the limit."""

import math
import re
from collections.abc import Sequence

import numpy as np

from kit.language.phrases import phrase_tokens
from services.retriever.errors import InvalidRequest
from services.retriever.model_change.evaluation import Question
from services.retriever.models import Activation, IndexBatch, RevisionKey, SearchRequest

MAX_QUERIES = 8
MAX_QUERY_CHARS = 8192
MAX_COLLECTIONS = 64
MAX_TOP_K = 200
MAX_MUST_PHRASES = 8
MAX_PHRASE_CHARS = 500
MAX_FILTER_DOCUMENTS = 1000
MAX_CONDITIONS = 32
MAX_CONDITION_VALUES = 100
MAX_FETCH = 200
MAX_REVISION_CHECKS = 200
MAX_WINDOW = 10
MAX_DIMENSION = 4096
MAX_LANGUAGES = 16
MAX_QUESTIONS = 200
MAX_QUESTION_CHARS = 500
MAX_QUESTION_DOCUMENTS = 8
"""With all limits reached, what is recorded of a collection's model still fits into a message of NATS."""
_NORM_TOLERANCE = 0.02
"""int8 and bf16 embedders normalise before they round: their rows are off by up to 1 %."""

_SCOPE_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_=-]{0,127}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


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
    if request.top_k is not None and not 1 <= request.top_k <= MAX_TOP_K:
        raise InvalidRequest(f"top_k is {request.top_k}; use 1 to {MAX_TOP_K}", field="top_k")
    check_window(request.window)
    _check_phrases(request.must_phrases)
    _check_weights(request)
    _check_share("diversity", request.diversity, 0.0)
    if request.min_score is not None:
        _check_share("min_score", request.min_score, -1.0)
    _check_count("collection_ids", request.scope.collection_ids, 1, MAX_COLLECTIONS)
    for collection_id in request.scope.collection_ids:
        check_scope_id("collection_ids", collection_id)
    _check_filter(request)


def _check_filter(request: SearchRequest) -> None:
    _check_count("filter.document_ids", request.scope.document_ids, 0, MAX_FILTER_DOCUMENTS)
    for document_id in request.scope.document_ids:
        check_id("filter.document_ids", document_id)
    date_from_s, date_to_s = request.scope.date_from_s, request.scope.date_to_s
    if date_from_s is not None and date_to_s is not None and date_from_s >= date_to_s:
        raise InvalidRequest("filter.date_from is not before filter.date_to; swap them", field="filter.date_from")
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
    _check_count("languages", activation.languages, 0, MAX_LANGUAGES)
    for language in activation.languages:
        if not _LANGUAGE.fullmatch(language):
            raise InvalidRequest(
                f"languages has {language[:40]!r}, which is no language; send codes such as en or pt-BR",
                field="languages",
            )


def check_revision_count(keys: Sequence[RevisionKey]) -> None:
    """The limit of CheckRevisions."""
    _check_count("revisions", keys, 1, MAX_REVISION_CHECKS)


def check_fetch(chunk_ids: Sequence[str], window: int) -> None:
    """The limits of FetchChunks."""
    _check_count("chunk_ids", chunk_ids, 1, MAX_FETCH)
    for chunk_id in chunk_ids:
        check_id("chunk_ids", chunk_id)
    check_window(window)


def check_section(document_id: str, chunk_count: int) -> None:
    """The limits of FetchChunks of a document."""
    check_id("document_id", document_id)
    if not 1 <= chunk_count <= MAX_FETCH:
        raise InvalidRequest(f"chunk_count is {chunk_count}; use 1 to {MAX_FETCH}", field="chunk_count")


def check_questions(questions: Sequence[Question]) -> None:
    """Those that embedding models are compared on."""
    _check_count("questions", questions, 0, MAX_QUESTIONS)
    for question in questions:
        if not question.text.strip():
            raise InvalidRequest("a question is empty; say what is asked", field="questions")
        if len(question.text) > MAX_QUESTION_CHARS:
            raise InvalidRequest(f"a question has over {MAX_QUESTION_CHARS} characters; shorten it", field="questions")
        _check_count("questions.document_ids", question.document_ids, 1, MAX_QUESTION_DOCUMENTS)
        for document_id in question.document_ids:
            check_id("questions.document_ids", document_id)


def check_margin(margin: float) -> None:
    """By which a new model may be worse."""
    _check_share("margin", margin, 0.0)


def check_window(window: int) -> None:
    """Neighbours on each side."""
    if not 0 <= window <= MAX_WINDOW:
        raise InvalidRequest(f"window is {window}; use 0 to {MAX_WINDOW}", field="window")


def _check_phrases(phrases: Sequence[str]) -> None:
    _check_count("must_phrases", phrases, 0, MAX_MUST_PHRASES)
    for phrase in phrases:
        if len(phrase) > MAX_PHRASE_CHARS:
            raise InvalidRequest(f"a phrase has over {MAX_PHRASE_CHARS} characters; shorten it", field="must_phrases")
        if not phrase_tokens(phrase):
            raise InvalidRequest(
                f"the phrase {phrase!r} has no letters or digits; there is nothing to look for", field="must_phrases"
            )


def _check_weights(request: SearchRequest) -> None:
    weights = {
        "weights": [weight for weight in (request.dense_weight, request.lexical_weight) if weight is not None],
        "query_weights": request.query_weights,
    }
    for field, values in weights.items():
        if values and not (all(math.isfinite(value) and value >= 0 for value in values) and sum(values) > 0):
            raise InvalidRequest(f"{field} are {list(values)}; use numbers from 0, at least one over 0", field=field)
    if request.query_weights and len(request.query_weights) != len(request.queries):
        raise InvalidRequest(
            f"{len(request.query_weights)} query_weights came with {len(request.queries)} queries; give one a query",
            field="query_weights",
        )


def _check_share(field: str, value: float, least: float) -> None:
    if not least <= value <= 1.0:  # false for NaN too
        raise InvalidRequest(f"{field} is {value:g}; use {least:g} to 1", field=field)


def _check_count(field: str, values: Sequence[object], least: int, most: int) -> None:
    if not least <= len(values) <= most:
        raise InvalidRequest(f"{field} has {len(values)} entries; give {least} to {most}", field=field)
