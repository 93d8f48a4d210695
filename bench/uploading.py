"""Files into the system through its public door, and waiting until they can be found."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from bench.corpus import SampleDocument
from cli.client.sse import read_events

READY_TIMEOUT_S = 1800.0
UPLOADS_AT_ONCE = 4


@dataclass(frozen=True)
class Ingested:
    """Documents that are ready, and how long that took."""

    seconds: float
    """From the first byte uploaded to the moment a client heard that the last document is ready."""
    documents: Sequence[dict[str, Any]]

    @property
    def chunks(self) -> int:
        return sum(document["report"]["chunk_count"] for document in self.documents)


async def ingest(
    client: httpx.AsyncClient,
    collection_id: str,
    documents: Sequence[SampleDocument],
    uploads_at_once: int = UPLOADS_AT_ONCE,
) -> Ingested:
    """Makes the collection, uploads all documents and waits until each is ready. Raises RuntimeError when one fails."""
    (await client.post("/v1/collections", json={"id": collection_id})).raise_for_status()
    watching = asyncio.Event()
    async with asyncio.timeout(READY_TIMEOUT_S), asyncio.TaskGroup() as group:
        ready = group.create_task(_all_ready(client, collection_id, len(documents), watching))
        await watching.wait()
        started_at = time.perf_counter()
        waiting = iter(documents)
        for _ in range(uploads_at_once):
            group.create_task(_upload(client, collection_id, waiting))
        by_id = await ready
        seconds = time.perf_counter() - started_at
    return Ingested(seconds, list(by_id.values()))


async def _upload(client: httpx.AsyncClient, collection_id: str, waiting: Any) -> None:
    for document in waiting:  # shared: each is taken once
        files = {"file": (document.name, document.text.encode())}
        (await client.post(f"/v1/collections/{collection_id}/documents", files=files)).raise_for_status()


async def _all_ready(
    client: httpx.AsyncClient, collection_id: str, count: int, watching: asyncio.Event
) -> dict[str, dict[str, Any]]:
    by_id: dict[str, dict[str, Any]] = {}
    query = {"collection_id": collection_id}
    async with client.stream("GET", "/v1/events", params=query, timeout=READY_TIMEOUT_S) as response:
        response.raise_for_status()
        async for event in read_events(response.aiter_bytes()):
            if event.kind == "snapshot_complete":
                watching.set()
            if event.kind == "error":
                raise RuntimeError(f"the gateway ended the stream of documents: {event.data}")
            if event.kind != "document":
                continue
            document = event.data
            if document["status"] == "failed":
                raise RuntimeError(f"{document['name']} failed: {document['error']}")
            if document["status"] == "ready":
                by_id[document["id"]] = document
            if len(by_id) == count:
                return by_id
    raise RuntimeError("the gateway ended the stream of documents before all were ready")
