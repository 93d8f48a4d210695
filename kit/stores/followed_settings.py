"""Settings that change while everything runs: every process follows their bucket, and after a restart they still hold."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import structlog

from kit import deadline
from kit.errors import Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.jetstream.opening import patient
from kit.records import UNREADABLE, set_aside

_log = structlog.get_logger()
_RETRY_AFTER_S = 1.0
_APPLIED_WITHIN_S = 5.0

Apply = Callable[[Entry], Awaitable[None]]


class FollowedSettings:
    """The settings in a bucket. `apply` takes each of them into use, the stored ones first; what it cannot read is set aside."""

    def __init__(self, name: str, bucket: KeyValue, apply: Apply) -> None:
        self._name = name
        self._bucket = bucket
        self._apply_entry = apply
        self._applied_revision = 0
        self._applied = asyncio.Condition()

    @classmethod
    @patient
    async def open(cls, nats: Nats, name: str, apply: Apply, *, ttl_s: float | None = None) -> "FollowedSettings":
        """Opens the bucket `name`; what is stored there is in force. With `ttl_s` a setting is none any more that long after it was
        made. Raises Unavailable."""
        settings = cls(name, await KeyValue.open(nats, name, ttl_s=ttl_s), apply)
        async for entry in settings._bucket.entries(">"):
            await settings._apply(entry)
        return settings

    async def put(self, key: str, value: bytes, *, instead_of: int | None = None) -> None:
        """Changes a setting for all processes, and returns when this one applies it. Harmless when repeated. With `instead_of`, a
        revision, only if the setting still has it. Raises Unavailable, and Aborted where it has another one."""
        if instead_of is None:
            revision = await self._bucket.put(key, value)
        else:
            revision = await self._bucket.update(key, value, instead_of)
        try:
            async with asyncio.timeout(deadline.bounded_timeout_s(_APPLIED_WITHIN_S)):
                await self.wait_for(lambda: self._applied_revision >= revision)
        except TimeoutError as error:
            raise Unavailable(
                "the change is stored, but this process has not applied it yet; look again in a few seconds",
                reason="SETTING_NOT_YET_APPLIED",
            ) from error

    async def wait_for(self, holds: Callable[[], bool]) -> None:
        """Returns once `holds` is true; it is asked after each applied setting."""
        async with self._applied:
            await self._applied.wait_for(holds)

    async def follow(self) -> None:
        """Applies what any process changes. Runs until cancelled."""
        while True:
            try:
                async with aclosing(self._bucket.watch()) as updates:
                    async for entry in updates:
                        if entry is not None:
                            await self._apply(entry)
            except Unavailable as error:
                _log.warning("settings_not_followed", bucket=self._name, error=error.message)
                await asyncio.sleep(_RETRY_AFTER_S)

    async def _apply(self, entry: Entry) -> None:
        try:
            await self._apply_entry(entry)
        except UNREADABLE as error:  # a newer version's, perhaps
            set_aside(self._name, entry.key, error)
        async with self._applied:
            self._applied_revision = max(self._applied_revision, entry.revision)
            self._applied.notify_all()
