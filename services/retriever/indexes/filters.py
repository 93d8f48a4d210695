"""What a search may see, compiled once for both engines: a list of "field is any of these values", "field is none of these values"
and "field lies between", and all must hold.

Adapters translate the clauses one to one, so no engine can be given less than the other. Tenant and collection are clauses
like any other and always there: a scope without them is refused, never read as "all".
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from services.retriever.errors import InvalidRequest
from services.retriever.models import Chunk, RevisionKey, SearchScope, WriteKey

TENANT = "tenant"
COLLECTION = "collection"
DOCUMENT = "document"
REVISION = "revision"
WRITE = "write"
CHUNK = "chunk"
METADATA = "metadata"
KEYWORD_FIELDS = (TENANT, COLLECTION, DOCUMENT, REVISION, WRITE, CHUNK, METADATA)
"""Exact-match fields of both indexes."""
DATE = "date"
NUMERIC_FIELDS = (DATE,)
"""Fields of 64-bit signed integers of both indexes."""

_SEPARATOR = "\x1f"
_MAX_TERM_CHARS = 512


@dataclass(frozen=True)
class AnyOf:
    """The field has at least one of the values."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class NoneOf:
    """The field has none of the values."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class InRange:
    """The field has a value, and `gte` <= value < `lt`; None leaves that side open. One of them is given."""

    field: str
    gte: int | None
    lt: int | None


Clause: TypeAlias = AnyOf | NoneOf | InRange


def compile_scope(scope: SearchScope) -> tuple[Clause, ...]:
    """The clauses of a search. Raises InvalidRequest rather than widen it."""
    if not scope.tenant_id:
        raise InvalidRequest("a search needs a tenant; call with a principal that names one")
    if not scope.collection_ids or not all(scope.collection_ids):
        raise InvalidRequest("a search needs at least one collection; name the collections to search in")
    clauses: list[Clause] = [AnyOf(TENANT, (scope.tenant_id,)), AnyOf(COLLECTION, scope.collection_ids)]
    if scope.document_ids:
        clauses.append(AnyOf(DOCUMENT, scope.document_ids))
    for condition in scope.metadata:
        if not condition.values:
            raise InvalidRequest(f"the metadata condition on {condition.key!r} has no values; give at least one")
        clauses.append(AnyOf(METADATA, tuple(metadata_term(condition.key, value) for value in condition.values)))
    if scope.date_from_s is not None or scope.date_to_s is not None:
        clauses.append(InRange(DATE, scope.date_from_s, scope.date_to_s))
    if scope.hidden_document_ids:
        clauses.append(NoneOf(DOCUMENT, tuple(scope.hidden_document_ids)))
    if scope.chunk_ids:
        clauses.append(AnyOf(CHUNK, scope.chunk_ids))
    return tuple(clauses)


def metadata_term(key: str, value: str) -> str:
    """One term for "this field has this value". Long ones are hashed: engines bound the length of a term."""
    term = f"{key}{_SEPARATOR}{value}"
    return term if len(term) <= _MAX_TERM_CHARS else hashlib.sha256(term.encode()).hexdigest()


def chunk_keywords(chunk: Chunk, key: WriteKey) -> dict[str, list[str]]:
    """The exact-match fields of a chunk as both indexes store them."""
    tenant_id = key.revision.tenant_id
    return {
        TENANT: [tenant_id],
        COLLECTION: [chunk.collection_id],
        DOCUMENT: [chunk.document_id],
        REVISION: [revision_term(key.revision)],
        WRITE: [write_term(key)],
        CHUNK: [chunk.chunk_id],
        METADATA: [metadata_term(name, value) for name, value in chunk.metadata.items()],
    }


def chunk_numbers(chunk: Chunk) -> dict[str, int]:
    """The numeric fields of a chunk as both indexes store them; what a chunk lacks is left out."""
    date_s = unix_seconds(chunk.metadata.get(DATE, ""))
    return {} if date_s is None else {DATE: date_s}


def unix_seconds(date: str) -> int | None:
    """Of an ISO 8601 date or time; without a zone it is UTC, without a time it is midnight. None for anything else."""
    try:
        moment = datetime.fromisoformat(date.strip())
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def document_clauses(tenant_id: str, document_id: str) -> tuple[AnyOf, ...]:
    """All chunks of one document of one tenant."""
    return (AnyOf(TENANT, (tenant_id,)), AnyOf(DOCUMENT, (document_id,)))


def chunk_clauses(tenant_id: str, chunk_ids: Sequence[str]) -> tuple[AnyOf, ...]:
    """These chunks of one tenant."""
    return (AnyOf(TENANT, (tenant_id,)), AnyOf(CHUNK, tuple(chunk_ids)))


def revision_term(key: RevisionKey) -> str:
    """A revision in one term; the tenant is in it."""
    return _SEPARATOR.join((key.tenant_id, key.document_id, key.revision_id))


def document_prefix(tenant_id: str, document_id: str) -> str:
    """With it begin the terms of the document's revisions and attempts."""
    return _SEPARATOR.join((tenant_id, document_id, ""))


def write_term(key: WriteKey) -> str:
    """An attempt at a revision in one term."""
    return _SEPARATOR.join((revision_term(key.revision), str(key.started_at_ms), key.attempt_id))


def parse_write_term(term: str) -> WriteKey:
    """The inverse of `write_term`."""
    tenant_id, document_id, revision_id, started_at_ms, attempt_id = term.split(_SEPARATOR)
    return WriteKey(RevisionKey(tenant_id, document_id, revision_id), int(started_at_ms), attempt_id)
