"""The watch over the store of a system on one machine, from its start to its stop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kit.errors import GroundworkError
from kit.jetstream import Nats
from kit.jetstream.condition import Finding, StoreCondition
from ops.watch import findings
from ops.watch.compare import Comparison, mendable
from ops.watch.keeper import Keeper
from ops.watch.ledger import Ledger
from services.ingest.state import FILES

SYNC_INTERVAL_S = 10.0
"""What is written in the last seconds before a crash is not known, and not missed if it is lost. Shorter costs the store more."""
NOT_NOW = (GroundworkError, sqlite3.Error, OSError, TimeoutError)
"""The store is being restarted, the disk is full: the next round tries again."""
Rebuild = Callable[[Sequence[str]], Awaitable[None]]
"""Makes the server forget its own index of these streams, and read their files anew."""


@dataclass(frozen=True)
class StoreWatch:
    """One store under watch."""

    nats: Nats
    keeper: Keeper
    now: Callable[[], datetime]
    say: Callable[[str], None]

    async def compare_at_start(self, rebuild: Rebuild) -> list[Finding]:
        """Compares, mends and says what it found, before any service runs. Where something is wrong, the server's index
        of the stream is made anew first: a torn record can otherwise be neither read nor replaced, since the server is
        silent."""
        comparison = await self.keeper.compare()
        torn = [
            stream.watched.stream
            for stream in comparison.streams
            # Reading the files anew may drop what stands behind a torn record: only where the ledger has that, too.
            if stream.deviations and stream.watched.keeps_values and stream.watched is not FILES
        ]
        torn += [each.queue.stream for each in comparison.queues if each.lost and each.is_certain]
        if torn:
            await rebuild(torn)
            comparison = await self.keeper.compare()
        return await self._mend(comparison, quiet=True)

    async def scrub(self) -> list[Finding]:
        """Compares, mends and says what it found while services run."""
        await self.keeper.sync()
        return await self._mend(await self.keeper.compare(), quiet=False)

    async def keep_watching(self, scrub_interval_s: float) -> None:
        """Keeps the ledger up to date, and scrubs, until cancelled."""
        clock = asyncio.get_running_loop().time
        scrub_at, reconnections = clock() + scrub_interval_s, self.nats.reconnections
        while True:
            await asyncio.sleep(SYNC_INTERVAL_S)
            with suppress(*NOT_NOW):
                if clock() < scrub_at and self.nats.reconnections == reconnections:
                    await self.keeper.sync()
                    continue
                reconnections = self.nats.reconnections  # the server may have lost something with its last process
                await self.scrub()
                scrub_at = clock() + scrub_interval_s

    async def _mend(self, comparison: Comparison, *, quiet: bool) -> list[Finding]:
        mended = await self.keeper.mend(comparison, mendable(comparison, quiet=quiet))
        mended |= await self.keeper.queues.put_back(comparison.queues, quiet=quiet)
        comparison = comparison.after(mended)
        losses = findings.losses(comparison, mended, self.now())
        fileless = findings.fileless(comparison, self.now())
        condition = await StoreCondition.open(self.nats)
        await condition.add(findings.LOSSES, losses)
        is_news = await condition.set(findings.FILELESS, fileless)
        for line in findings.lines([*losses, *(fileless if is_news else ())], findings.EXAMPLES_AT_START):
            self.say(line)
        await self.keeper.settle(comparison, mended)
        return [*losses, *fileless]


@asynccontextmanager
async def open_ledger(path: Path, say: Callable[[str], None]) -> AsyncIterator[Ledger]:
    """The ledger for the block. One that is damaged is set aside, and said so."""
    ledger, was_damaged = await asyncio.to_thread(Ledger.open, path)
    if was_damaged:
        say(f"  {path} was damaged and is begun anew: what the store has lost before is not noticed")
    try:
        yield ledger
    finally:
        await asyncio.to_thread(ledger.close)


def forget_indexes(nats_store: Path, streams: Sequence[str]) -> None:
    """Removes the server's own index of streams, while it is stopped: it makes them anew from the messages."""
    for stream in streams:
        for index in nats_store.glob(f"jetstream/*/streams/{stream}/msgs/index.db"):
            index.unlink(missing_ok=True)
