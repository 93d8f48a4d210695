"""How many documents each caller may upload in a second, a minute, an hour, a day or a month, over all processes (kit.limits)."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from kit.access.principal import Principal
from kit.errors import Unavailable
from kit.limits.counters import Counter, Counters
from kit.limits.errors import limit_reached
from kit.limits.rules import Rules, What


class CountedUpload:
    """An upload that is counted, and stays so once it is stored."""

    is_stored = False


class DocumentLimits:
    """Counts uploads, or says which limit is reached."""

    def __init__(self, rules: Rules, counters: Counters, now: Callable[[], datetime]) -> None:
        """`now` is the time of day, by which windows begin."""
        self._rules, self._counters, self._now = rules, counters, now

    @asynccontextmanager
    async def hold(self, caller: Principal) -> AsyncIterator[CountedUpload]:
        """Counts an upload of the caller before it begins; one that is not stored in the block is given back. Raises LimitReached,
        Unavailable."""
        counted: list[Counter] = []
        upload = CountedUpload()
        try:
            await self._count(caller, counted)
            yield upload
        finally:
            if not upload.is_stored:
                for counter in counted:
                    with suppress(Unavailable):
                        await self._counters.add(counter, -1)

    async def _count(self, caller: Principal, counted: list[Counter]) -> None:
        now = self._now()
        for each in self._rules.of(caller):
            if each.limit.what is What.DOCUMENTS:
                counter = Counter(each.whose, What.DOCUMENTS, each.limit.per.window(now))
                total = await self._counters.add(counter, 1)
                counted.append(counter)
                if total > math.floor(each.limit.amount):
                    raise limit_reached(each, now)
