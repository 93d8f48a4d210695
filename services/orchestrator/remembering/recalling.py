"""Uses what is remembered of a person: hints and a summary for the prompt of a run, as its mode of memory says."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Protocol

from kit.errors import GroundworkError, Unavailable
from kit.stores.forgetting import Source
from kit.vocabulary.memory_modes import ALWAYS, AUTO, OFF
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord
from services.orchestrator.ports import RunSources
from services.orchestrator.prompts.memory import remembered_block
from services.orchestrator.remembering.models import Hint, Hints, LearntTurn, Recalled
from services.orchestrator.remembering.ports import Facts, TurnQueue
from services.orchestrator.steps.run import Run, resolved

HINTS = 3
_SHORT = 10
"""A message of so many characters or fewer gets no hints in mode auto: it is a greeting, or a yes."""
_STEP = "memory"


class Recall(Protocol):
    """What is remembered for one run."""

    async def added_to(self, prompt: str) -> str:
        """What an agent tells its model, with what is remembered behind it. The run's log tells of it at the first call."""
        ...


class NothingRecalled:
    """Nothing is remembered for the run."""

    async def added_to(self, prompt: str) -> str:
        return prompt


NOTHING_RECALLED = NothingRecalled()


class Remembering(Protocol):
    """What is remembered, for the runs of the modes that use it."""

    def recalling(self, run: Run, record: RunRecord) -> AbstractAsyncContextManager[Recall]:
        """Within it the memory service is asked while the mode does what it needs no memory for."""
        ...

    async def queue(self, journal: Journal, record: RunRecord) -> None:
        """Has the turn of the run learnt from."""
        ...


class NothingRemembered:
    """Remembers nothing."""

    @asynccontextmanager
    async def recalling(self, run: Run, record: RunRecord) -> AsyncIterator[Recall]:  # noqa: ARG002 - the port's
        yield NOTHING_RECALLED

    async def queue(self, journal: Journal, record: RunRecord) -> None:
        """Learns nothing."""


class RememberedFacts:
    """Remembering over the facts of the memory service."""

    def __init__(
        self, facts: Facts, queue: TurnQueue, sources: RunSources, *, usual: str = AUTO, timeout_s: float = 1.0
    ) -> None:
        """`usual`: the mode of memory of requests that name none."""
        self._facts = facts
        self._queue = queue
        self._sources = sources
        self._usual = usual
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def recalling(self, run: Run, record: RunRecord) -> AsyncIterator[Recall]:
        """Asks the memory service beside what the mode does. What comes of it is recorded only where the mode asks for it, so that
        the order of steps never depends on which of the two is faster."""
        mode, message = self._mode(record), record.request.question
        if mode not in (AUTO, ALWAYS):
            yield NOTHING_RECALLED
            return
        wanted = HINTS if mode == ALWAYS or len(message.strip()) > _SHORT else 0
        asked = asyncio.create_task(self._asked(message if wanted else ""))
        try:
            yield _RecalledFacts(run, record, self._sources, asked, wanted)
        finally:
            asked.cancel()

    async def queue(self, journal: Journal, record: RunRecord) -> None:
        """Has the turn of the run learnt from. A run without a log leaves no trace."""
        request = record.request
        if self._mode(record) == OFF or not journal.durable:
            return
        by_model = request.model_credentials is None  # who brings a model wants no other to read along
        turn = LearntTurn(
            record.key.run_id,
            request.thread_id,
            request.question,
            record.created_at,
            by_model,
            record.local_models_only,
        )
        try:
            await self._queue.add(turn)
        except GroundworkError as error:
            await journal.write(degraded("memory", "memory", error, "Nothing is learnt from this turn."))

    def _mode(self, record: RunRecord) -> str:
        return record.request.memory or self._usual

    async def _asked(self, message: str) -> Recalled | GroundworkError:
        """What the memory service answers, or why it does not."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._facts.recall(message, HINTS)
        except TimeoutError:
            return Unavailable("the memory service does not answer in time", reason="MEMORY_SILENT")
        except GroundworkError as error:
            return error


class _RecalledFacts:
    """What the memory service recalls for one run."""

    def __init__(
        self,
        run: Run,
        record: RunRecord,
        sources: RunSources,
        asked: asyncio.Task[Recalled | GroundworkError],
        wanted: int,
    ) -> None:
        self._run = run
        self._record = record
        self._sources = sources
        self._asked = asked
        self._wanted = wanted
        self._block: str | None = None

    async def added_to(self, prompt: str) -> str:
        """What an agent tells its model, with what is remembered behind it."""
        if self._block is None:
            self._block = await self._read()
        return f"{prompt}\n\n{self._block}".strip() if self._block else prompt

    async def _read(self) -> str:
        recalled = await self._asked
        if isinstance(recalled, GroundworkError):
            note = degraded("memory", "memory", recalled, "Answering without what is remembered of you.")
            await self._run.say(note)
            return ""
        hints = await self._noted(recalled.hints[: self._wanted])
        return remembered_block(recalled.summary, [hint.shown for hint in hints])

    async def _noted(self, hints: Sequence[Hint]) -> Sequence[Hint]:
        """The hints that the run may show, sent as an event and recorded. The run then holds text of these facts and notes."""
        run, record = self._run, self._record
        if not hints and not run.is_recorded(_STEP):
            return ()
        sources = {_source(record.subject, hint): hint for hint in hints}
        if sources and run.journal.durable:
            try:
                forgotten = await self._sources.depend(record.dependent, list(sources))
            except Unavailable as error:
                await run.journal.go_on_live(error)
                forgotten = frozenset()
            hints = [hint for source, hint in sources.items() if source not in forgotten]
        if not hints and not run.is_recorded(_STEP):
            return ()
        recorded = await run.once(_STEP, partial(resolved, Hints(hints)), Hints, show=Hints.event, is_last_resort=True)
        return recorded.hints


def _source(subject: str, hint: Hint) -> Source:
    return Source.document(hint.document_id) if hint.document_id else Source.fact(subject, hint.fact_id)
