"""Who works on which run, in NATS key-value buckets.

RUN_ACTIVE holds a marker for each run that has not ended; RUN_OWNERS a key for each orchestrator process, which expires by itself
when the process falls silent.
"""

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from datetime import UTC

from google.protobuf.message import DecodeError
from groundwork.orchestrator.v1 import record_pb2 as pb

from kit.errors import Aborted, AlreadyExists
from kit.jetstream import Entry, KeyValue, Nats
from kit.jetstream.bell import Bell
from kit.records import set_aside
from services.orchestrator.models import MarkerChange, RunKey, RunMarker, Wait
from services.orchestrator.state import BELL, MARKERS, OWNERS


class KeyValueMarkers:
    """Markers over two buckets, and a bell for runs that anybody may take."""

    def __init__(self, active: KeyValue, owners: KeyValue, bell: Bell) -> None:
        self._bell = bell
        self._active = active
        self._owners = owners

    @classmethod
    async def open(cls, nats: Nats, *, lease_s: float) -> "KeyValueMarkers":
        return cls(
            await KeyValue.open(nats, MARKERS.name),
            await KeyValue.open(nats, OWNERS.name, ttl_s=lease_s),
            Bell(nats, BELL.name),
        )

    async def renew(self, owner: str) -> None:
        await self._owners.put(owner, b"")

    async def leave(self, owner: str) -> None:
        await self._owners.delete(owner)

    async def is_alive(self, owner: str) -> bool:
        return await self._owners.get(owner) is not None

    async def create(self, key: RunKey, marker: RunMarker) -> int | None:
        try:
            return await self._active.create(key.name, _encode(marker))
        except AlreadyExists:
            return None

    async def read(self, key: RunKey) -> RunMarker | None:
        entry = await self._active.get(key.name)
        return None if entry is None else _decode(entry)

    async def update(self, key: RunKey, marker: RunMarker) -> int | None:
        try:
            revision = await self._active.update(key.name, _encode(marker), marker.revision)
        except Aborted:
            return None
        if not marker.owner and not marker.parked:
            await self._bell.ring(key.tenant_id)
        return revision

    async def released(self) -> AsyncGenerator[None, None]:
        async with aclosing(self._bell.heard()) as rings:
            async for _ in rings:
                yield

    async def changes(self, after: int) -> AsyncGenerator[MarkerChange, None]:
        async with aclosing(self._active.changes(after=after)) as entries:
            async for entry in entries:
                marker = None if entry.value is None else _decode(entry)
                yield MarkerChange(RunKey.named(entry.key), marker, entry.revision)

    async def last_revision(self) -> int:
        return await self._active.last_revision()

    async def living(self) -> Collection[str]:
        return await self._owners.keys(">")


def _encode(marker: RunMarker) -> bytes:
    message = pb.RunMarker.FromString(marker.raw)
    message.owner, message.begun, message.parked = marker.owner, marker.begun, marker.parked
    for name in ("wakes_at", "waiting_since", "subjects"):
        message.ClearField(name)
    if marker.wait is not None:
        message.wakes_at.FromDatetime(marker.wait.until)
        message.waiting_since.FromDatetime(marker.wait.since)
        message.subjects.extend(marker.wait.subjects)
    return message.SerializeToString()


def _decode(entry: Entry) -> RunMarker:
    try:
        message = pb.RunMarker.FromString(entry.value or b"")
    except DecodeError as error:
        # Of nobody, so that the run is looked at; begun, so that it is not done again where its log is empty.
        set_aside(MARKERS.name, entry.key, error)
        return RunMarker("", begun=True, revision=entry.revision)
    return RunMarker(
        message.owner, message.begun, message.parked, _wait(message), entry.revision, raw=entry.value or b""
    )


def _wait(message: pb.RunMarker) -> Wait | None:
    if not (message.HasField("wakes_at") and message.HasField("waiting_since")):
        return None
    since, until = (each.ToDatetime(tzinfo=UTC) for each in (message.waiting_since, message.wakes_at))
    return Wait(since, until, tuple(message.subjects))
