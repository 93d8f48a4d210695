"""How many requests a provider is given at once. Those above wait in line, for as long as they can afford."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kit.llm.errors import ModelUnavailable


class ProviderBusy(ModelUnavailable):
    """As many requests as a provider is given are in hand: nothing is wrong with it."""

    reason = "LLM_BUSY"


class Limiter:
    """At most `at_once` holders of a slot; first come, first served."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._slots = asyncio.Semaphore(at_once)

    @asynccontextmanager
    async def slot(self, provider: str, within_s: float) -> AsyncIterator[None]:
        """Holds a slot within the block. Raises ProviderBusy when none becomes free within `within_s`."""
        if self._slots.locked() and within_s <= 0:
            raise self._busy(provider, 0.0)
        try:
            async with asyncio.timeout(within_s if self._slots.locked() else None):
                await self._slots.acquire()
        except TimeoutError as error:
            raise self._busy(provider, within_s) from error
        try:
            yield
        finally:
            self._slots.release()

    def _busy(self, provider: str, waited_s: float) -> ProviderBusy:
        return ProviderBusy(
            f"{provider} has {self.at_once} requests in hand, and none ended within {waited_s:.1f} s; ask again, or raise "
            f"max_concurrent of {provider}"
        )
