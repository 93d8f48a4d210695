"""Idempotency keys: a caller names a request by a key of their own, so that asking again after a lost answer starts nothing twice.

    same key, same request          the thing that the first one made
    same key, another request       IdempotencyConflict (409)
    the first is still in hand      IdempotencyInFlight (409, Retry-After)

A key is noted, with the id of the thing that is to be made, before anything is made. A process that finds the note of one that died
makes that very thing, or finds it made. So `make` must be harmless when repeated under the id that it is given.
"""

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from kit.access.principal import Principal
from kit.errors import Aborted, AlreadyExists, GroundworkError
from kit.jetstream import KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from kit.state import Bucket

IN_HAND_S = 30.0
"""After this long without an end the one who noted the key is taken for dead: calls that make things have shorter deadlines."""
KEY_PATTERN = r"^[\x21-\x7e]{1,255}$"
"""What a key may be: visible ASCII. A UUID is the usual choice."""
_RETRY_AFTER_S = 1.0


class IdempotencyConflict(AlreadyExists):
    """The key was used for another request."""

    reason = "IDEMPOTENCY_KEY_REUSED"


class IdempotencyInFlight(Aborted):
    """The first request with this key has not ended."""

    reason = "IDEMPOTENCY_KEY_IN_FLIGHT"


@dataclass(frozen=True)
class Attempt:
    """What `make` is to make."""

    item_id: str
    is_first: bool
    """False when an earlier attempt may have made it already."""


@dataclass(frozen=True)
class _Note:
    digest: str
    item_id: str
    began_at: float
    """Seconds since 1970; 0 once the attempt has failed, so that the next one need not wait."""
    is_made: bool = False
    newer_fields: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What a newer version noted besides; written back with every change."""


_FIELDS = [each.name for each in fields(_Note) if each.name != "newer_fields"]


class IdempotencyKeys:
    """The keys of one service, in a bucket. They belong to a caller and an operation: others may use the same words."""

    def __init__(self, bucket: KeyValue, name: str, now: Callable[[], float] = time.time) -> None:
        self._bucket = bucket
        self._name = name
        self._now = now

    @classmethod
    async def open(cls, nats: Nats, bucket: Bucket) -> "IdempotencyKeys":
        return cls(await KeyValue.open(nats, bucket.name, ttl_s=bucket.kept_for_s), bucket.name)

    async def once(
        self,
        principal: Principal,
        operation: str,
        key: str,
        request: bytes,
        new_id: Callable[[], str],
        make: Callable[[Attempt], Awaitable[str]],
    ) -> str:
        """The id of what `key` stands for; made by `make`, which returns it, unless it has been. `request` is what has to be the
        same; only its digest is stored. Raises IdempotencyConflict, IdempotencyInFlight, and what `make` raises.
        """
        place = _place(principal, operation, key)
        wanted = _Note(hashlib.sha256(request).hexdigest(), new_id(), self._now())
        note, revision, is_first = await self._noted(place, wanted)
        if note.digest != wanted.digest:
            raise IdempotencyConflict(
                f"the idempotency key {key!r:.80} was used for another {operation}; use a new key for a new request"
            )
        if note.is_made:
            return note.item_id
        if not is_first:
            note, revision = await self._taken_over(place, key, note, revision)
        try:
            item_id = await make(Attempt(note.item_id, is_first))
        except GroundworkError as error:
            await self._give_up(place, note, revision, started_nothing=is_first and not error.retryable)
            raise
        with suppress(GroundworkError):  # it is made; without this note the next attempt finds it
            await self._bucket.update(place, _encode(replace(note, item_id=item_id, is_made=True)), revision)
        return item_id

    async def _noted(self, place: str, wanted: _Note) -> tuple[_Note, int, bool]:
        """What is noted under the key, its revision, and whether that is `wanted`."""
        while True:
            try:
                return wanted, await self._bucket.create(place, _encode(wanted)), True
            except AlreadyExists:
                entry = await self._bucket.get(place)
            if entry is None:
                continue  # it expired meanwhile
            try:
                return _decode(entry.value or b""), entry.revision, False
            except UNREADABLE as error:
                set_aside(self._name, place, error)
                await self._bucket.purge(place)

    async def _taken_over(self, place: str, key: str, note: _Note, revision: int) -> tuple[_Note, int]:
        """The note of an attempt that has failed or died, made this one's."""
        # Also when the clock was set back: else the key would be in hand until it has caught up.
        if abs(self._now() - note.began_at) >= IN_HAND_S:
            note = replace(note, began_at=self._now())
            try:
                return note, await self._bucket.update(place, _encode(note), revision)
            except Aborted:
                pass  # another was faster
        raise IdempotencyInFlight(
            f"the first request with the idempotency key {key!r:.80} is still in hand; ask again in a moment",
            retry_after_s=_RETRY_AFTER_S,
        )

    async def _give_up(self, place: str, note: _Note, revision: int, *, started_nothing: bool) -> None:
        """A refusal leaves the key free; after any other failure the next attempt goes on with the same id."""
        with suppress(GroundworkError):  # without this the attempt is taken for dead in a while
            if started_nothing:
                await self._bucket.purge(place, revision)
            else:
                await self._bucket.update(place, _encode(replace(note, began_at=0.0)), revision)


def _place(principal: Principal, operation: str, key: str) -> str:
    words = "\0".join((principal.subject, operation, key))
    return f"{principal.tenant_id}.{hashlib.sha256(words.encode()).hexdigest()}"


def _encode(note: _Note) -> bytes:
    fields_ = asdict(note)
    return json.dumps(fields_.pop("newer_fields") | fields_).encode()


def _decode(value: bytes) -> _Note:
    """Raises one of UNREADABLE."""
    stored = json.loads(value)
    known = {name: stored.pop(name) for name in _FIELDS if name in stored}
    return _Note(**known, newer_fields=stored)
