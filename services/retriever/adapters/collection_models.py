"""The collections' embedding models in a NATS key-value bucket: one key a collection, `<tenant>.<collection>`, whose value is
JSON. One write of it swaps the models of a collection for all retrievers."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

import structlog

from kit.jetstream import Entry, KeyValue, Nats
from services.retriever import metrics
from services.retriever.adapters.compare_and_set import put_if_unchanged
from services.retriever.model_change.collection_embedding import CollectionEmbedding, Stage
from services.retriever.model_change.evaluation import Comparison, Evaluation, Quality, Question
from services.retriever.ports import EmbeddingEntry
from services.retriever.state import COLLECTION_MODELS

_log = structlog.get_logger()
_STAGE = "stage"
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "model": str,
    "other": str,
    _STAGE: str,
    "began_at_ms": int,
    "margin": (int, float),
    "problem": str,
}


class NatsCollectionModels:
    """EmbeddingStore. A key's version is its revision in the bucket."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    @classmethod
    async def open(cls, nats: Nats) -> "NatsCollectionModels":
        """Makes the bucket on first use."""
        return cls(await KeyValue.open(nats, COLLECTION_MODELS.name))

    async def get(self, tenant_id: str, collection_id: str) -> EmbeddingEntry | None:
        entry = await self._bucket.get(f"{tenant_id}.{collection_id}")
        return _decode(entry) if entry is not None else None

    async def put(
        self, tenant_id: str, collection_id: str, record: CollectionEmbedding, expected_version: int | None
    ) -> EmbeddingEntry:
        key = f"{tenant_id}.{collection_id}"
        version = await put_if_unchanged(self._bucket, key, encode(record), expected_version)
        return EmbeddingEntry(tenant_id, collection_id, record, version)

    async def remove(self, tenant_id: str, collection_id: str) -> None:
        await self._bucket.purge(f"{tenant_id}.{collection_id}")

    async def watch(self) -> AsyncGenerator[EmbeddingEntry | None]:
        async with aclosing(self._bucket.watch()) as changes:
            async for entry in changes:
                yield None if entry is None else _decode(entry)


def encode(record: CollectionEmbedding) -> bytes:
    fields = asdict(record)
    if record.stage is Stage.UNKNOWN:
        del fields[_STAGE]
    return json.dumps(fields.pop("newer_fields") | fields, ensure_ascii=False).encode()


def decode(value: bytes) -> CollectionEmbedding:
    """Raises ValueError, TypeError or LookupError for what is no record."""
    fields = json.loads(value)
    if not isinstance(fields, dict):
        raise TypeError("it is no JSON object")
    known: dict[str, Any] = {}
    for name, kind in _FIELDS.items():
        if name in fields:
            known[name] = fields.pop(name)
            if not isinstance(known[name], kind):
                raise TypeError(f"{name} is not of the type it should have")
    evaluation = fields.pop("evaluation", None)
    word = known.pop(_STAGE, Stage.SETTLED.value)
    if word not in {each.value for each in Stage} - {Stage.UNKNOWN.value}:
        fields[_STAGE], word = word, Stage.UNKNOWN.value
    return CollectionEmbedding(
        **known,
        stage=Stage(word),
        questions=tuple(
            Question(str(each["text"]), tuple(map(str, each.get("document_ids", ()))))
            for each in fields.pop("questions", ())
        ),
        evaluation=_evaluation(evaluation) if evaluation else None,
        newer_fields=fields,
    )


def _evaluation(fields: dict[str, Any]) -> Evaluation:
    return Evaluation(
        str(fields["before"]),
        str(fields["after"]),
        int(fields["question_count"]),
        bool(fields["are_made"]),
        _comparison(fields["vectors"]),
        _comparison(fields["both"]),
        int(fields["at_ms"]),
    )


def _comparison(fields: dict[str, Any]) -> Comparison:
    before, after = (
        Quality(float(fields[name]["ndcg_at_10"]), float(fields[name]["mrr_at_10"])) for name in ("before", "after")
    )
    return Comparison(before, after)


def _decode(entry: Entry) -> EmbeddingEntry:
    """A broken value leaves its collection searched where its documents lie; it must not stop anything else."""
    record = None
    if entry.value is not None:
        try:
            record = decode(entry.value)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            metrics.UNREADABLE.labels("collection_model").inc()
            _log.error("collection_model_unreadable", key=f"{COLLECTION_MODELS.name}/{entry.key}", error=str(error))
    tenant_id, _, collection_id = entry.key.partition(".")
    return EmbeddingEntry(tenant_id, collection_id, record, entry.revision)
