"""Documents into the system through its public door, as many at a time as it takes well, and waiting on `/v1/events` until all can
be found."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx

from cli.client.gateway import Gateway, Json
from cli.errors import ApiError
from evals.errors import IndexingFailed

UPLOADS_AT_ONCE = 8
STALLED_AFTER_S = 180.0
"""No document changed for this long: the system is stuck, or has died."""
_RECONNECT_DELAY_S = 0.5
_LISTED = 3


@dataclass(frozen=True)
class Indexed:
    """A collection that can be searched."""

    collection_id: str
    document_ids: frozenset[str]
    """As the system named them."""
    chunks: int
    seconds: float
    """From the first byte uploaded to the moment a client heard that the last document is ready."""


@dataclass
class _Progress:
    """The latest state of each document. States come from uploads and from events, in any order."""

    names: frozenset[str]
    documents: dict[str, Json] = field(default_factory=dict)
    by_status: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def update(self, document: Json) -> None:
        known = self.documents.get(document["name"])
        if document["name"] not in self.names or (known and _changed_at(known) > _changed_at(document)):
            return
        self.documents[document["name"]] = document
        if known:
            self.by_status[known["status"]] -= 1
        self.by_status[document["status"]] += 1
        self.changed.set()

    @property
    def ready(self) -> int:
        return self.by_status["ready"]

    @property
    def failed(self) -> list[Json]:
        if not self.by_status["failed"]:
            return []
        return [document for document in self.documents.values() if document["status"] == "failed"]


async def index(gateway: Gateway, collection_id: str, files: Mapping[str, Path]) -> Indexed:
    """Makes the collection if there is none, uploads and waits. Files that are there already are not read again.

    Raises IndexingFailed when documents fail or nothing moves any more.
    """
    try:
        await gateway.request("POST", "/v1/collections", json={"id": collection_id})
    except ApiError as error:
        if error.status != httpx.codes.CONFLICT:
            raise
    progress = _Progress(frozenset(files))
    uploaded = asyncio.Event()
    started_at = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(_watch(gateway, collection_id, progress))
        waiting = iter(files.items())
        uploads = [
            group.create_task(_upload(gateway, collection_id, waiting, progress)) for _ in range(UPLOADS_AT_ONCE)
        ]
        group.create_task(_tell_when_done(uploads, uploaded))
        await _until_ready(progress, uploaded)
        seconds = time.perf_counter() - started_at
        watching.cancel()
    documents = progress.documents.values()
    chunks = sum(document["report"]["chunk_count"] for document in documents)
    return Indexed(collection_id, frozenset(document["id"] for document in documents), chunks, seconds)


async def _upload(
    gateway: Gateway, collection_id: str, waiting: Iterator[tuple[str, Path]], progress: _Progress
) -> None:
    for name, path in waiting:  # shared: each is taken once
        progress.update(await gateway.upload(collection_id, path, name))


async def _tell_when_done(uploads: list[asyncio.Task[None]], uploaded: asyncio.Event) -> None:
    await asyncio.gather(*uploads)
    uploaded.set()


async def _watch(gateway: Gateway, collection_id: str, progress: _Progress) -> None:
    """Follows the collection until cancelled. A stream that ends is opened again: it begins with the present states."""
    while True:
        try:
            async with gateway.events("GET", "/v1/events", params={"collection_id": collection_id}) as (_, events):
                async for event in events:
                    if event.kind == "document":
                        progress.update(event.data)
        except httpx.TransportError:
            pass
        await asyncio.sleep(_RECONNECT_DELAY_S)


async def _until_ready(progress: _Progress, uploaded: asyncio.Event) -> None:
    while True:
        progress.changed.clear()
        if progress.failed:
            raise IndexingFailed(_failure(progress))
        # A document that is ready before all are uploaded may yet be replaced by another content of the same name.
        if uploaded.is_set() and progress.ready == len(progress.names):
            return
        change = asyncio.ensure_future(progress.changed.wait())
        rest = asyncio.ensure_future(uploaded.wait())
        pending = [change] if uploaded.is_set() else [change, rest]
        done, _ = await asyncio.wait(pending, timeout=STALLED_AFTER_S, return_when=asyncio.FIRST_COMPLETED)
        change.cancel()
        rest.cancel()
        if not done:
            raise IndexingFailed(
                f"{progress.ready} of {len(progress.names)} documents are ready and nothing has moved for "
                f"{STALLED_AFTER_S:.0f} s; look at the log of the ingest worker"
            )


def _changed_at(document: Json) -> datetime:
    return datetime.fromisoformat(document["updated_at"])


def _failure(progress: _Progress) -> str:
    shown = [f"{each['name']}: {each['error']['reason']}, {each['error']['message']}" for each in progress.failed]
    return f"{len(shown)} documents failed, the first: " + "; ".join(shown[:_LISTED])
