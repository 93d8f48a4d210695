"""Erases removed texts from the files of an index of this process: the engines leave them there, though no search finds them."""

import asyncio
import time
from dataclasses import dataclass

import structlog

from kit.errors import GroundworkError
from services.retriever import metrics
from services.retriever.indexes.engine_answer import Part
from services.retriever.ports import OwnIndex

_log = structlog.get_logger()


@dataclass(frozen=True)
class Pace:
    """How soon removed texts are erased, and what that may cost."""

    wait_s: float
    """After the first removal: others that come meanwhile are erased with it."""

    rest: float
    """Before the next time, in durations of the last."""

    retry_s: float = 30.0
    """After a failure."""


MEMORIES = Pace(wait_s=2.0, rest=10.0)
"""People ask for it, and the index is small."""
DOCUMENTS = Pace(wait_s=5.0, rest=30.0)
"""Each new revision removes texts, and an index of 100 000 chunks takes minutes: at most a thirtieth of the time goes into it."""


class Eraser:
    """Looks after one index."""

    def __init__(self, part: Part, index: OwnIndex, pace: Pace, holds: str) -> None:
        """`holds`: what the index holds, documents or memories, for the metric."""
        self._part = part
        self._index = index
        self._pace = pace
        self._unerased = metrics.UNERASED.labels(part.name.lower(), holds)

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            self._unerased.set(self._index.removed.is_set())
            await self._index.removed.wait()
            self._unerased.set(1)
            await asyncio.sleep(self._pace.wait_s)
            began, rest_s = time.monotonic(), 0.0
            self._index.removed.clear()
            try:
                await self._index.erase()
                _log.info("removed_texts_erased", engine=self._part.name, took_s=round(time.monotonic() - began, 3))
            except Exception as error:  # whatever it is, searches go on, and a start would meet it again
                self._index.removed.set()
                rest_s = self._pace.retry_s
                is_known = isinstance(error, GroundworkError | OSError)
                _log.warning(
                    "removed_texts_not_erased", engine=self._part.name, error=str(error), exc_info=not is_known
                )
            self._unerased.set(self._index.removed.is_set())
            await asyncio.sleep(max(rest_s, self._pace.rest * (time.monotonic() - began)))
