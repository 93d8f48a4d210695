"""Active revisions in a NATS key-value bucket: one key a document, `<tenant>.<document_id>`, whose value is JSON."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict

import structlog

from kit.jetstream import Entry, KeyValue, Nats
from services.retriever import metrics
from services.retriever.adapters.compare_and_set import put_if_unchanged
from services.retriever.models import Pointer, PointerEntry, PointerRemoved
from services.retriever.state import ACTIVE_REVISIONS

_log = structlog.get_logger()

_COPIES = "copies"
"""With the revision that they are of: a version before them carries the field along into the next revision, where it says
nothing."""
_FIELDS = {
    "revision_id": str,
    "number": int,
    "collection_id": str,
    "chunk_count": int,
    "activated_at_ms": int,
    "deleted": bool,
    "languages": list,
    "embedding_model": str,
    _COPIES: dict,
}


class NatsRevisions:
    """RevisionStore. A key's version is its revision in the bucket."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    @classmethod
    async def open(cls, nats: Nats) -> "NatsRevisions":
        """Makes the bucket on first use."""
        return cls(await KeyValue.open(nats, ACTIVE_REVISIONS.name))

    async def get(self, tenant_id: str, document_id: str) -> PointerEntry | None:
        entry = await self._bucket.get(f"{tenant_id}.{document_id}")
        return _decode(entry, entry.value) if entry and entry.value is not None else None

    async def put(
        self, tenant_id: str, document_id: str, pointer: Pointer, expected_version: int | None
    ) -> PointerEntry:
        key = f"{tenant_id}.{document_id}"
        version = await put_if_unchanged(self._bucket, key, _encode(pointer), expected_version)
        return PointerEntry(tenant_id, document_id, pointer, version)

    async def remove(self, tenant_id: str, document_id: str) -> None:
        await self._bucket.purge(f"{tenant_id}.{document_id}")

    async def latest_version(self) -> int:
        return await self._bucket.last_revision()

    async def watch(self) -> AsyncGenerator[PointerEntry | PointerRemoved | None]:
        async with aclosing(self._bucket.watch()) as changes:
            async for entry in changes:
                if entry is None:
                    yield None
                elif entry.value is None:
                    yield PointerRemoved(*_ids(entry), entry.revision)
                else:
                    yield _decode(entry, entry.value)


def _ids(entry: Entry) -> tuple[str, str]:
    tenant_id, _, document_id = entry.key.partition(".")
    return tenant_id, document_id


def _encode(pointer: Pointer) -> bytes:
    fields = asdict(pointer)
    copies = fields.pop(_COPIES)
    if copies:
        fields[_COPIES] = {"of": pointer.revision_id, "models": copies}
    return json.dumps(fields.pop("newer_fields") | fields).encode()


def _decode(entry: Entry, value: bytes) -> PointerEntry:
    """A broken value hides its document; it must not stop anything else."""
    try:
        pointer = _pointer(json.loads(value))
    except (ValueError, TypeError) as error:
        metrics.UNREADABLE.labels("pointer").inc()
        _log.error("pointer_unreadable", key=f"{ACTIVE_REVISIONS.name}/{entry.key}", error=str(error))
        pointer = None
    return PointerEntry(*_ids(entry), pointer, entry.revision)


def _pointer(fields: object) -> Pointer:
    if not isinstance(fields, dict):
        raise TypeError("it is no JSON object")
    for name, kind in _FIELDS.items():
        if name in fields and not isinstance(fields[name], kind):
            raise TypeError(f"{name} is not of type {kind.__name__}")
    known = {name: fields.pop(name) for name in _FIELDS if name in fields}
    languages = tuple(map(str, known.pop("languages", ())))
    copies = known.pop(_COPIES, {})
    models = copies.get("models") if copies.get("of") == known.get("revision_id") else ()
    return Pointer(**known, languages=languages, copies=tuple(map(str, models or ())), newer_fields=fields)
