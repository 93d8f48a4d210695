"""Active revisions in a NATS key-value bucket: one key a document, `<tenant>.<document_id>`, whose value is JSON."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict

import structlog

from kit.errors import Aborted, AlreadyExists, DataLoss
from kit.jetstream import Entry, KeyValue, Nats
from services.retriever.errors import PointerConflict
from services.retriever.models import Pointer, PointerEntry

_log = structlog.get_logger()
BUCKET = "ACTIVE_REVISIONS"


class NatsRevisions:
    """RevisionStore. A key's version is its revision in the bucket."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    @classmethod
    async def open(cls, nats: Nats, *, replicas: int = 1) -> "NatsRevisions":
        """Makes the bucket on first use."""
        return cls(await KeyValue.open(nats, BUCKET, replicas=replicas))

    async def get(self, tenant_id: str, document_id: str) -> PointerEntry | None:
        entry = await self._bucket.get(f"{tenant_id}.{document_id}")
        return _decode(entry) if entry else None

    async def put(
        self, tenant_id: str, document_id: str, pointer: Pointer, expected_version: int | None
    ) -> PointerEntry:
        key, value = f"{tenant_id}.{document_id}", json.dumps(asdict(pointer)).encode()
        try:
            if expected_version is None:
                version = await self._bucket.create(key, value)
            else:
                version = await self._bucket.update(key, value, expected_version)
        except (Aborted, AlreadyExists) as error:
            raise PointerConflict(key) from error
        return PointerEntry(tenant_id, document_id, pointer, version)

    async def watch(self) -> AsyncGenerator[PointerEntry | None]:
        async with aclosing(self._bucket.watch()) as changes:
            async for entry in changes:
                if entry is None:
                    yield None
                # Nobody deletes a pointer: a deleted document keeps its tombstone. An operator's delete changes nothing.
                elif entry.value is not None:
                    try:
                        yield _decode(entry)
                    except DataLoss as error:
                        # One broken value hides its document; it must not hide all the others too.
                        _log.error("pointer_unreadable", key=entry.key, error=error.message)


def _decode(entry: Entry) -> PointerEntry:
    tenant_id, _, document_id = entry.key.partition(".")
    try:
        fields = json.loads(entry.value or b"")
        pointer = Pointer(**fields | {"languages": tuple(fields.get("languages", ()))})
    except (ValueError, TypeError, AttributeError) as error:
        raise DataLoss(f"{BUCKET}/{entry.key} does not hold a pointer: {error}; delete the document again") from error
    return PointerEntry(tenant_id, document_id, pointer, entry.revision)
