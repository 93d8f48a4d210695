"""How much work lies about, for the operator's metrics."""

import asyncio

import structlog

from kit.errors import GroundworkError
from services.ingest.metrics import Metrics
from services.ingest.ports import JobQueue
from services.ingest.work.dead_letters import DeadLetters

_log = structlog.get_logger()
_INTERVAL_S = 5.0
"""In a cluster the number of workers follows the depth, which is one question to the message store."""
_ROUNDS_BETWEEN_LETTERS = 12
"""Dead letters cost a look at the document of each."""


class Backlog:
    """Keeps the gauges of queue and dead letters, and drops letters that nobody needs any more."""

    def __init__(self, jobs: JobQueue, letters: DeadLetters, metrics: Metrics) -> None:
        self._jobs = jobs
        self._letters = letters
        self._metrics = metrics

    async def run(self) -> None:
        """Measures until cancelled; then the gauges are another worker's to tell."""
        rounds = 0
        try:
            while True:
                try:
                    await self.measure(letters=rounds % _ROUNDS_BETWEEN_LETTERS == 0)
                except GroundworkError as error:
                    _log.warning("backlog_unknown", error=error.message)
                rounds += 1
                await asyncio.sleep(_INTERVAL_S)
        finally:
            self._metrics.queue.leave()
            self._metrics.dead_letters.set(0)

    async def measure(self, *, letters: bool) -> None:
        """Sets the gauges once."""
        self._metrics.queue.set(await self._jobs.backlog())
        if letters:
            self._metrics.dead_letters.set(await self._letters.sweep())
