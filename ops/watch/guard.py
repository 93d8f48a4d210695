"""The watch over the store as the supervisor holds it: begun when nats-server is ready, ended before it stops. Whatever goes wrong
with watching is said, and stops nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from kit.jetstream import connect
from ops.watch.keeper import Keeper
from ops.watch.rounds import NOT_NOW, Rebuild, StoreWatch, open_ledger

START_TIMEOUT_S = 300.0
"""For a comparison at the start; a million records take under a minute."""
END_TIMEOUT_S = 3.0


class StoreGuard:
    """One system's."""

    def __init__(self, ledger_file: Path, nats_url: str, scrub_interval_s: float, say: Callable[[str], None]) -> None:
        self._ledger_file = ledger_file
        self._nats_url = nats_url
        self._scrub_interval_s = scrub_interval_s
        self._say = say
        self._stack = AsyncExitStack()
        self._watch: StoreWatch | None = None
        self._watching: asyncio.Task[None] | None = None

    async def begin(self, rebuild: Rebuild) -> None:
        """Compares and mends; goes on watching until :meth:`end`."""
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                ledger = await self._stack.enter_async_context(open_ledger(self._ledger_file, self._say))
                nats = await self._stack.enter_async_context(connect(self._nats_url, name="supervisor"))
                self._watch = StoreWatch(nats, Keeper(nats, ledger), now=lambda: datetime.now(UTC), say=self._say)
                await self._watch.compare_at_start(rebuild)
        except NOT_NOW as error:
            self._say(
                f"  What is stored could not be compared with what should be: {str(error) or type(error).__name__}"
            )
        if self._watch:
            self._watching = asyncio.create_task(self._watch.keep_watching(self._scrub_interval_s))

    async def end(self) -> None:
        """Notes the last state, unless the store was killed and cannot be read. Harmless when repeated."""
        watch, self._watch = self._watch, None
        if self._watching:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if watch and watch.nats.nc.is_connected:
            with suppress(*NOT_NOW):
                async with asyncio.timeout(END_TIMEOUT_S):
                    await watch.keeper.sync(final=True)
        await self._stack.aclose()
