"""Chunks as points of Qdrant Edge, and the conditions that find them again."""

from collections.abc import Iterator, Sequence
from typing import Any

import qdrant_edge as qe

from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import encode, point_id
from services.retriever.indexes.filters import AnyOf, Clause, NoneOf
from services.retriever.models import IndexedChunk, Languages, RevisionKey, SearchScope, Vectors, WriteKey

STORED = "stored"
LANGUAGE = "language"
ORDINAL = "ordinal"
PLACE = "place"
"""Tenant and collection in one field. A search names both, and the engine looks up each condition for each vector: one instead of
two takes a third off a scan of 100 000."""


def to_points(key: WriteKey, chunks: Sequence[IndexedChunk], vectors: Vectors) -> Iterator[Any]:
    """The chunks as points."""
    for item, vector in zip(chunks, vectors.tolist(), strict=True):
        payload: dict[str, Any] = dict(filters.chunk_keywords(item.chunk, key))
        payload |= filters.chunk_numbers(item.chunk)
        place = _place(key.revision.tenant_id, item.chunk.collection_id)
        payload |= {ORDINAL: item.chunk.ordinal, PLACE: place, STORED: encode(item.chunk)}
        if item.chunk.language:
            payload[LANGUAGE] = item.chunk.language
        yield qe.Point(point_id(key.revision.tenant_id, item.chunk.chunk_id), vector, payload)


def revision_filter(key: RevisionKey) -> Any:
    """All chunks of a revision."""
    return all_of((AnyOf(filters.REVISION, (filters.revision_term(key),)),))


def scope_filter(scope: SearchScope, languages: Languages | None) -> Any:
    """What a search may see, and of that what is in these languages."""
    others = [
        clause for clause in filters.compile_scope(scope) if clause.field not in (filters.TENANT, filters.COLLECTION)
    ]
    places = AnyOf(PLACE, tuple(_place(scope.tenant_id, collection_id) for collection_id in scope.collection_ids))
    clauses = [places, *others]
    if languages is None:
        return all_of(clauses)
    in_them = AnyOf(LANGUAGE, languages.codes)
    if not languages.are_left_out:
        return all_of([*clauses, in_them])
    return qe.Filter(must=[_condition(clause) for clause in clauses], must_not=[any_of(in_them)])


def _place(tenant_id: str, collection_id: str) -> str:
    return f"{tenant_id}\x1f{collection_id}"


def all_of(clauses: Sequence[Clause]) -> Any:
    """Points for which all clauses hold."""
    return qe.Filter(must=[_condition(clause) for clause in clauses])


def _condition(clause: Clause) -> Any:
    if isinstance(clause, AnyOf):
        return any_of(clause)
    if isinstance(clause, NoneOf):
        return qe.FieldCondition(clause.field, match=qe.MatchExcept(list(clause.values)))
    return qe.FieldCondition(clause.field, range=qe.RangeFloat(gte=clause.gte, lt=clause.lt))


def any_of(clause: AnyOf) -> Any:
    """The condition that a field has one of the values."""
    match = qe.MatchValue(*clause.values) if len(clause.values) == 1 else qe.MatchAny(list(clause.values))
    return qe.FieldCondition(clause.field, match=match)
