"""A service's connection to the message store, which may be away at the start and at any time later: the service waits, says so in
its readiness, and goes on."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import nats.errors
import structlog

from kit.errors import Unavailable
from kit.jetstream import Nats, connect
from kit.observability.ops import Trouble
from kit.process.service import Service
from kit.process.settings import MessageStoreSettings
from kit.process.waiting import FailureLogLimit, Waiting

_log = structlog.get_logger()
_INTERVAL_S = 2.0
_TIMEOUT_S = 3.0
STOPS_AFTER_S = 30.0
"""Shorter absences (a restart, the election of a leader) are over before a cluster has sent callers elsewhere. After this long
another replica, which may not be cut off, should be asked."""
_AGAIN_AFTER_S = 1.0


async def open_message_store(
    service: Service, settings: MessageStoreSettings, *, stops_after_s: float = STOPS_AFTER_S
) -> Nats:
    """Connects for the life of the service. Waits for a server; what is then opened over the connection waits likewise.

    A service that answers without the store, or knows itself when it cannot, says `stops_after_s=math.inf`.
    """
    connection = connect(
        settings.nats_url,
        name=service.name,
        replicas=settings.nats_replicas,
        waiting=service.waiting,
        tls=settings.nats_tls(settings.nats_url),
    )
    nats_ = await service.stack.enter_async_context(connection)
    watch = StoreWatch(nats_.check, stops_after_s=stops_after_s, problem=lambda: nats_.servers.problem)
    service.report(watch.troubles)
    service.spawn(watch.run(service.waiting))
    service.require("message store", nats_.check)
    return nats_


class StoreWatch:
    """Asks the message store every few seconds whether it is there; `check` raises Unavailable when it is not."""

    def __init__(
        self,
        check: Callable[[], Coroutine[Any, Any, None]],
        *,
        stops_after_s: float = STOPS_AFTER_S,
        problem: Callable[[], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._check = check
        self._stops_after_s = stops_after_s
        self._problem = problem
        self._clock = clock
        self._away_since_s: float | None = None

    def troubles(self) -> Sequence[Trouble]:
        """One while it is away. It stops the service when that takes long."""
        if self._away_since_s is None:
            return ()
        away_s = self._clock() - self._away_since_s
        why = f" ({problem})" if (problem := self._problem()) else ""
        message = f"does not answer since {away_s:.0f} s{why}; what needs it fails until it is back, and then goes on by itself"
        return (Trouble("message store", message, stops_service=away_s >= self._stops_after_s),)

    async def run(self, waiting: Waiting) -> None:
        """Asks until cancelled, but not while the process waits for the store and says so anyway."""
        while True:
            if not waiting.is_waiting:
                await self.look()
            await asyncio.sleep(_INTERVAL_S)

    async def look(self) -> None:
        """Asks once."""
        asked_at_s = self._clock()
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._check()
        except (Unavailable, TimeoutError, nats.errors.Error):
            if self._away_since_s is None:
                self._away_since_s = asked_at_s
                _log.error("message_store_away")
        else:
            if self._away_since_s is not None:
                _log.info("message_store_back", away_s=round(self._clock() - self._away_since_s))
            self._away_since_s = None


async def lasting(name: str, loop: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a background loop until cancelled, and begins it anew when it ends because the message store is away: a service does not
    end for that. Any other error is raised. Logged every half minute at most."""
    complaints = FailureLogLimit()
    while True:
        try:
            return await loop()
        except* (Unavailable, nats.errors.Error) as errors:
            if complaints.is_due():
                _log.warning("loop_begun_anew", loop=name, errors=[repr(error) for error in errors.exceptions])
        await asyncio.sleep(_AGAIN_AFTER_S)
