"""A bell: a message without a body that tells other processes at once that there is something to do. It may go unheard, so the
process that listens also looks from time to time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import nats.errors
from nats.aio.msg import Msg

from kit.jetstream.connection import Nats
from kit.jetstream.failures import translated_errors


class Bell:
    """Rung on `bells.<name>.<tenant>`."""

    def __init__(self, nats_: Nats, name: str) -> None:
        self._nats = nats_
        self._subject = f"bells.{name}"

    async def ring(self, tenant_id: str) -> None:
        """Without effect while the connection is lost."""
        with suppress(nats.errors.Error):
            await self._nats.nc.publish(f"{self._subject}.{tenant_id}")

    async def heard(self) -> AsyncGenerator[None, None]:
        """Once for any number of rings since the last time, until closed. Raises Unavailable."""
        rung = asyncio.Event()

        async def hear(_: Msg) -> None:
            rung.set()

        with translated_errors(self._subject):
            subscription = await self._nats.nc.subscribe(f"{self._subject}.*", cb=hear)
        try:
            while True:
                await rung.wait()
                rung.clear()
                yield
        finally:
            with suppress(nats.errors.Error):
                await subscription.unsubscribe()
