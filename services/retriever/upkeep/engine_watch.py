"""Whether each engine answers, for operators: searches go on without one that does not, and a quiet hour must not hide it."""

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from kit.errors import GroundworkError
from kit.observability.ops import Trouble
from services.retriever import metrics
from services.retriever.concurrency import engine_deadline
from services.retriever.indexes.engine_answer import DENSE, LEXICAL, Part
from services.retriever.models import RevisionKey
from services.retriever.ports import ChunkIndex, LexicalIndex
from services.retriever.revisions.index_gaps import IndexGaps

_log = structlog.get_logger()
_INTERVAL_S = 5.0
_TIMEOUT_S = 5.0
_NOBODY = RevisionKey("probe", "probe", "probe")
"""Counting the chunks of a revision that does not exist is the least that an engine can be asked."""


class EngineWatch:
    """Asks both engines every few seconds."""

    def __init__(
        self, dense: ChunkIndex, lexical: LexicalIndex, gaps: IndexGaps, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engines: tuple[tuple[Part, ChunkIndex], ...] = ((DENSE, dense), (LEXICAL, lexical))
        self._gaps = gaps
        self._clock = clock
        self._away: dict[str, tuple[float, str]] = {}
        """Since when, and why."""

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_INTERVAL_S)

    async def look(self) -> None:
        """Asks both once, and forgets gaps that are none any more."""
        for part, _ in self._engines:
            await self._gaps.drop_outdated(part)
        async with asyncio.TaskGroup() as group:
            for part, index in self._engines:
                group.create_task(self._ask(part, index))

    def troubles(self) -> Sequence[Trouble]:
        """Which engine is away, and which index is being filled again. Neither stops the service."""
        return [*map(self._absence, self._away.items()), *self._incomplete()]

    def _absence(self, away: tuple[str, tuple[float, str]]) -> Trouble:
        name, (since_s, reason) = away
        message = (
            f"does not answer since {self._clock() - since_s:.0f} s ({reason}); searches go on without it and say so"
        )
        return Trouble(name, message)

    def _incomplete(self) -> Sequence[Trouble]:
        counts = [(part, self._gaps.count(part)) for part, _ in self._engines]
        return [
            Trouble(
                part.name, f"lacks {count} documents and is being filled again; searches of their collections say so"
            )
            for part, count in counts
            if count
        ]

    async def _ask(self, part: Part, index: ChunkIndex) -> None:
        try:
            async with engine_deadline(_TIMEOUT_S):
                await index.count(_NOBODY)
        except GroundworkError as error:
            if part.name not in self._away:
                _log.error("engine_away", engine=part.name, reason=error.reason, error=error.message)
                self._away[part.name] = self._clock(), error.reason
        else:
            if self._away.pop(part.name, None) is not None:
                _log.info("engine_back", engine=part.name)
        metrics.ENGINE_UP.labels(part.name).set(part.name not in self._away)
