"""Leases as keys that expire: the first process makes one, renews it while it holds it, and it expires when the process is gone."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator

from kit import deadline
from kit.errors import Aborted, AlreadyExists, Unavailable
from kit.jetstream.connection import Nats
from kit.jetstream.kv import KeyValue

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 1.0
_RELEASE_WITHIN_S = 2.0


class LeaseLost(Unavailable):
    """Another process may have taken over what the lease was for."""

    reason = "LEASE_LOST"


class Lease:
    """A lease in hand. It counts as lost before it can have expired on the server."""

    def __init__(self, bucket: KeyValue, key: str, token: bytes, revision: int, ttl_s: float) -> None:
        self._bucket = bucket
        self._key = key
        self._token = token
        self._revision = revision
        self._ttl_s = ttl_s
        self._renewed_at = time.monotonic()
        self._lost = False

    def check(self) -> None:
        """Raises LeaseLost when it is not certain that the lease is still held."""
        if self._lost or time.monotonic() - self._renewed_at > 0.9 * self._ttl_s:
            raise LeaseLost(f"the lease {self._key} could not be renewed in time; what it was for will be tried again")

    async def renew_forever(self) -> None:
        while not self._lost:
            await asyncio.sleep(self._ttl_s / 3)
            began = time.monotonic()
            try:
                self._revision = await self._bucket.update(self._key, self._token, self._revision)
                self._renewed_at = began
            except Aborted:
                self._lost = True
            except Unavailable:
                continue  # check() tells when it has taken too long

    async def release(self) -> None:
        """Within a moment, since a process that stops waits for it: whatever keeps it from being deleted, it expires."""
        with contextlib.suppress(Aborted, Unavailable), deadline.within(_RELEASE_WITHIN_S):
            await self._bucket.delete(self._key, self._revision)


class NatsLeases:
    """A bucket of leases, which expire `ttl_s` after their holder is gone."""

    def __init__(self, bucket: KeyValue, ttl_s: float) -> None:
        self._bucket = bucket
        self._ttl_s = ttl_s

    @classmethod
    async def open(cls, nats: Nats, bucket: str, *, ttl_s: float) -> "NatsLeases":
        """Makes the bucket on first use."""
        return cls(await KeyValue.open(nats, bucket, ttl_s=ttl_s), ttl_s)

    @contextlib.asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[Lease]:
        """Waits until `key` is free, polling: a key that expires tells nobody."""
        token = uuid.uuid4().hex.encode()
        lease = Lease(self._bucket, key, token, await self._acquire(key, token), self._ttl_s)
        renewal = asyncio.create_task(lease.renew_forever())
        try:
            yield lease
        finally:
            renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewal
            await asyncio.shield(lease.release())

    async def _acquire(self, key: str, token: bytes) -> int:
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return await self._bucket.create(key, token)
            except AlreadyExists:
                await asyncio.sleep(wait_s)
                wait_s = min(_LONGEST_WAIT_S, 1.5 * wait_s)
