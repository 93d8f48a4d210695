"""How chunks lie in a Qdrant collection: its name, its parameters, its payload indexes, a point, and a filter."""

from collections.abc import Iterator, Sequence
from typing import Any

from qdrant_client import models

from services.retriever.adapters.space_names import space_slug
from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import encode, point_id
from services.retriever.indexes.filters import AnyOf, Clause, NoneOf
from services.retriever.models import EmbeddingSpace, IndexedChunk, Languages, RevisionKey, Vectors, WriteKey
from services.retriever.options import QdrantOptions

STORED = "stored"
LANGUAGE = "language"
ORDINAL = "ordinal"
_MODEL = "embedding_model"
_DIMENSION = "dimension"
_LINKS_PER_NODE = 16
"""The server's own default for `m`."""


def collection_name(prefix: str, space: EmbeddingSpace) -> str:
    """One collection for each embedding space."""
    return f"{prefix}-{space_slug(space)}"


def collection_parameters(space: EmbeddingSpace, options: QdrantOptions) -> dict[str, Any]:
    """Arguments of `create_collection`.

    Every search names one tenant, so the graph is built per tenant and not over all (`m=0`, `payload_m`): see "Configure
    multitenancy" in Qdrant's documentation. Dot product, for vectors arrive normalised and are to be read back unchanged.
    A write counts once most replicas have it.
    """
    return {
        "vectors_config": models.VectorParams(size=space.dimension, distance=models.Distance.DOT),
        "hnsw_config": models.HnswConfigDiff(m=0, payload_m=_LINKS_PER_NODE),
        "on_disk_payload": True,  # the text of chunks; what is filtered by stays in memory with its index
        "shard_number": options.shards,
        "replication_factor": options.replicas,
        "write_consistency_factor": options.replicas // 2 + 1,
        "metadata": {_MODEL: space.model, _DIMENSION: space.dimension},
    }


def space_of(metadata: dict[str, Any] | None) -> EmbeddingSpace | None:
    """The space that a collection's metadata names; None when it was not made here."""
    match metadata:
        case {"embedding_model": str(model), "dimension": int(dimension)}:
            return EmbeddingSpace(model, dimension)
    return None


def payload_indexes() -> dict[str, models.KeywordIndexParams | models.IntegerIndexParams]:
    """An index for every field that anything is filtered by. Those with a value of their own for each chunk or document are
    read from disk: they are asked for by writers and for single chunks, not by searches."""
    rarely_asked = (filters.REVISION, filters.WRITE, filters.CHUNK)
    keywords: dict[str, models.KeywordIndexParams | models.IntegerIndexParams] = {
        field: models.KeywordIndexParams(
            type=models.KeywordIndexType.KEYWORD,
            is_tenant=True if field == filters.TENANT else None,
            on_disk=True if field in rarely_asked else None,
        )
        for field in (*filters.KEYWORD_FIELDS, LANGUAGE)
    }
    numbers = {
        field: models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True)
        for field in filters.NUMERIC_FIELDS
    }
    position = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=True, range=False, on_disk=True)
    return keywords | numbers | {ORDINAL: position}


def points(key: WriteKey, chunks: Sequence[IndexedChunk], vectors: Vectors) -> Iterator[models.PointStruct]:
    """The chunks with their vectors: row i belongs to chunk i."""
    for item, vector in zip(chunks, vectors.tolist(), strict=True):
        payload: dict[str, Any] = dict(filters.chunk_keywords(item.chunk, key))
        payload |= filters.chunk_numbers(item.chunk)
        payload |= {ORDINAL: item.chunk.ordinal, STORED: encode(item.chunk)}
        if item.chunk.language:
            payload[LANGUAGE] = item.chunk.language
        identifier = str(point_id(key.revision.tenant_id, item.chunk.chunk_id))
        yield models.PointStruct(id=identifier, vector=vector, payload=payload)


def all_of(clauses: Sequence[Clause]) -> models.Filter:
    """Points for which every clause holds."""
    return models.Filter(must=[_condition(clause) for clause in clauses])


def in_languages(condition: models.Filter, languages: Languages | None) -> models.Filter:
    """The same, of chunks in these languages."""
    if languages is None:
        return condition
    in_them = _condition(AnyOf(LANGUAGE, languages.codes))
    if languages.are_left_out:
        return condition.model_copy(update={"must_not": [in_them]})
    return models.Filter(must=[condition, in_them])


def of_revision(key: RevisionKey) -> models.Filter:
    return all_of(_revision_clauses(key))


def of_attempt(key: WriteKey) -> models.Filter:
    return all_of([*_revision_clauses(key.revision), _attempt(key)])


def of_other_attempts(key: WriteKey) -> models.Filter:
    """What other attempts left of the revision."""
    others = all_of(_revision_clauses(key.revision))
    others.must_not = [_condition(_attempt(key))]
    return others


def at_positions(key: RevisionKey, ordinals: Sequence[int]) -> models.Filter:
    positions = models.FieldCondition(key=ORDINAL, match=models.MatchAny(any=list(ordinals)))
    return models.Filter(must=[*(_condition(clause) for clause in _revision_clauses(key)), positions])


def _revision_clauses(key: RevisionKey) -> tuple[AnyOf, ...]:
    # The tenant is in the revision's term already; as a field of its own it keeps the server to the tenant's segments.
    return (AnyOf(filters.TENANT, (key.tenant_id,)), AnyOf(filters.REVISION, (filters.revision_term(key),)))


def _attempt(key: WriteKey) -> AnyOf:
    return AnyOf(filters.WRITE, (filters.write_term(key),))


def _condition(clause: Clause) -> models.FieldCondition:
    if isinstance(clause, AnyOf):
        return models.FieldCondition(key=clause.field, match=models.MatchAny(any=list(clause.values)))
    if isinstance(clause, NoneOf):
        return models.FieldCondition(key=clause.field, match=models.MatchExcept(**{"except": list(clause.values)}))
    return models.FieldCondition(key=clause.field, range=models.Range(gte=clause.gte, lt=clause.lt))
