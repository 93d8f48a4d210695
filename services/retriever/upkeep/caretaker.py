"""Notices that the files of an index of this process are damaged, and has it begin anew: it is then filled again."""

import asyncio

import structlog

from kit.errors import GroundworkError
from services.retriever.indexes.engine_answer import Part
from services.retriever.ports import OwnIndex
from services.retriever.revisions.index_gaps import IndexGaps
from services.retriever.revisions.revision_map import RevisionMap

_log = structlog.get_logger()
_FIRST_AFTER_S = 30.0
"""Before the files are read for the first time, so that a start is not slowed by it."""
_INTERVAL_S = 3600.0
_PAUSE_S = 10.0
"""Between two looks: an engine that fails each call, though its files are whole, asks for one each time."""


class Caretaker:
    """Looks after one index: soon after the start, every hour, and when a call of it failed."""

    def __init__(self, part: Part, index: OwnIndex, revisions: RevisionMap, gaps: IndexGaps) -> None:
        self._part = part
        self._index = index
        self._revisions = revisions
        self._gaps = gaps

    async def run(self) -> None:
        """Works until cancelled."""
        await self._revisions.wait_loaded()
        wait_s = _FIRST_AFTER_S
        while True:
            try:
                async with asyncio.timeout(wait_s):
                    await self._index.suspected.wait()
            except TimeoutError:
                pass
            self._index.suspected.clear()
            try:
                await self.look()
            except (GroundworkError, OSError) as error:
                _log.error("index_cannot_be_looked_after", engine=self._part.name, error=str(error))
            await asyncio.sleep(_PAUSE_S)
            wait_s = _INTERVAL_S

    async def look(self) -> bool:
        """Whether the index was damaged; it is begun anew then. Raises IndexUnavailable or OSError when that failed."""
        problem = await self._index.inspect()
        if problem is None:
            return False
        self._gaps.replace(self._part, [key for key, pointer in self._revisions.active() if pointer.chunk_count])
        await self._index.start_anew(problem)
        self._gaps.suspected.set()
        return True
