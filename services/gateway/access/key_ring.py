"""The API keys as this gateway knows them: all records, followed by a watch, so that checking a key asks nobody. It is the one
piece of state that a gateway has (ADR 12).

A watch that is silent may be idle or dead. So the bucket's leader is asked every few seconds for the number of its newest change:
who has seen that one has seen every revocation before it. When this could not be shown for `stale_after_s`, nobody is let in.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime

import structlog

from kit.access.api_keys import ApiKey, ShownKey, require_good
from kit.errors import GroundworkError, Unauthenticated, Unavailable
from kit.observability.ops import Trouble
from kit.process.waiting import FailureLogLimit
from kit.stores.api_key_store import ApiKeyStore, KeyChange

_log = structlog.get_logger()
_RETRY_S = 1.0
_PROVE_EVERY_S = 5.0
_RESYNC_S = 600.0
"""All keys are read anew so often, so that a removal that the watch missed is seen."""
_RECHECK_S = 5.0
"""How often the clock is read again while a key's end is awaited: it may have been set."""


class ApiKeysUnknown(Unavailable):
    """It cannot be said at the moment which keys are good."""

    reason = "API_KEYS_UNKNOWN"


class KeyRing:
    """All keys of the installation. `now` is the time of day, `clock` counts seconds."""

    def __init__(self, *, stale_after_s: float, now: Callable[[], datetime], clock: Callable[[], float]) -> None:
        self._stale_after_s = stale_after_s
        self._now = now
        self._clock = clock
        self._keys: dict[str, ApiKey] = {}
        self._position = 0
        self._loaded = False
        self._proved_at: float | None = None
        self._changed = asyncio.Condition()

    @property
    def trouble(self) -> str:
        """Why nobody can be let in; empty when all is well."""
        if self._proved_at is None:
            return "the API keys have not been read yet: the message store does not answer"
        age_s = self._clock() - self._proved_at
        if age_s > self._stale_after_s:
            return f"the message store has not answered for {age_s:.0f} s: a key may have been revoked meanwhile"
        return ""

    def troubles(self) -> Sequence[Trouble]:
        """For readiness: a gateway that can let nobody in leaves it to others."""
        return [Trouble("API keys", trouble, stops_service=True)] if (trouble := self.trouble) else []

    def require_fresh(self) -> None:
        """Raises ApiKeysUnknown unless what is known is recent enough to let somebody in by it."""
        if trouble := self.trouble:
            raise ApiKeysUnknown(f"API keys cannot be checked now: {trouble}; try again in a few seconds")

    async def wait_fresh(self) -> None:
        """Returns once the keys are known."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self.trouble)

    async def read_first(self, within_s: float) -> None:
        """Waits for the keys to be read for the first time, at most so long. Returns at once ever after."""
        if self._proved_at is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self.wait_fresh()

    def find(self, key_id: str) -> ApiKey | None:
        return self._keys.get(key_id)

    def all(self) -> Sequence[ApiKey]:
        return list(self._keys.values())

    def of_tenant(self, tenant_id: str) -> Sequence[ApiKey]:
        return [key for key in self._keys.values() if key.tenant_id == tenant_id]

    def require_good(self, shown: ShownKey) -> ApiKey:
        """The key that is shown. Raises ApiKeysUnknown, ApiKeyInvalid, ApiKeyRevoked, ApiKeyExpired."""
        self.require_fresh()
        return require_good(self._keys.get(shown.key_id), shown, self._now())

    async def reached(self, revision: int, within_s: float) -> bool:
        """Waits until the change of that number has been seen; False when it was not in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._changed:
                await self._changed.wait_for(lambda: self._loaded and self._position >= revision)
                return True
        return False

    async def ended(self, shown: ShownKey) -> Unauthenticated:
        """Returns why the key is not good any more, as soon as it is not. While that cannot be known, it is taken to be good: who
        was let in by it stays."""
        async with self._changed:
            while True:
                try:
                    require_good(self._keys.get(shown.key_id), shown, self._now())
                except Unauthenticated as error:
                    return error
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RECHECK_S):
                        await self._changed.wait()

    async def follow(self, store: ApiKeyStore) -> None:
        """Keeps up with the bucket until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(store))
            group.create_task(self._prove(store))

    async def _follow(self, store: ApiKeyStore) -> None:
        complaints = FailureLogLimit()
        while True:
            try:
                async with asyncio.timeout(_RESYNC_S):
                    await self._follow_once(store)
            except TimeoutError:
                continue
            except GroundworkError as error:
                if complaints.is_due():
                    _log.warning("api_keys_not_followed", error=error.message)
            await asyncio.sleep(_RETRY_S)

    async def _follow_once(self, store: ApiKeyStore) -> None:
        listed: dict[str, ApiKey] | None = {}
        self._position = 0  # the bucket may have been made anew, and its numbers begin again
        async with aclosing(store.watch()) as changes:
            async for change in changes:
                if change is None:
                    await self._apply(None, listed)
                    listed = None
                    continue
                if listed is not None:
                    _put(listed, change)
                await self._apply(change)

    async def _apply(self, change: KeyChange | None, listed: Mapping[str, ApiKey] | None = None) -> None:
        """One change; or the end of a listing, after which what was not `listed` is gone."""
        async with self._changed:
            if change is None:
                self._keys = dict(listed or {})
                self._loaded = True
            else:
                _put(self._keys, change)
                self._position = change.revision
            self._changed.notify_all()

    async def _prove(self, store: ApiKeyStore) -> None:
        while True:
            asked_at = self._clock()
            try:
                revision = await store.last_revision()
            except GroundworkError as error:
                _log.debug("api_keys_not_proved", error=error.message)
                await asyncio.sleep(_RETRY_S)
                continue
            if await self.reached(revision, _PROVE_EVERY_S):
                await self._proved(asked_at)
                await asyncio.sleep(_PROVE_EVERY_S)

    async def _proved(self, asked_at: float) -> None:
        async with self._changed:
            self._proved_at = asked_at
            self._changed.notify_all()


def _put(keys: dict[str, ApiKey], change: KeyChange) -> None:
    if change.key is None:
        keys.pop(change.key_id, None)
    else:
        keys[change.key_id] = change.key
