"""What the modes have in common: the thread that a run continues, and the documents whose text it holds."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from kit.errors import GroundworkError, Unavailable
from kit.stores.forgetting import Source
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.errors import MemorySilent
from services.orchestrator.log.events import Answer, Degradation, Evidence, RunStatus, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import HistoryMessage, RunKey, RunRecord, Turn
from services.orchestrator.ports import Memory, RunSources
from services.orchestrator.runs.forgetting import documents_of
from services.orchestrator.steps.run import Run

_KEEPING_S = 2.0
"""Longest that a run which was stopped waits for its thread: its client waits for the end."""
_NOT_KEPT = "This turn could not be kept in its thread."

_LEFT_OUT = Degradation(
    "memory",
    "LOCAL_MODELS_ONLY",
    "Going on without the turns over collections that allow local models only. To speak of them, search such a collection.",
)


ReadRun = Callable[[RunKey], Awaitable[RunRecord | None]]


async def _no_run(_: RunKey) -> RunRecord | None:
    return None


class Threads:
    """Reads and continues the threads of runs."""

    def __init__(self, memory: Memory, sources: RunSources, *, turns: int, runs: ReadRun = _no_run) -> None:
        """`turns`: messages of a thread that are read. `runs` reads the record of a run that another goes on from."""
        self._memory = memory
        self._runs = runs
        self._sources = sources
        self._turns = turns

    async def history(
        self, run: Run, record: RunRecord, *, for_model: bool, says_failure: bool = True, with_calls: bool = False
    ) -> Sequence[Turn]:
        """Turns before this one; none for runs without a thread, and none, said so, when memory does not answer. `with_calls` also
        those with calls of the caller's functions and what they returned."""
        if record.request.history or record.request.previous_run_id:
            before = await self._said_in_runs(run, record, says_failure=says_failure)
            return _latest([*before, *turns_of(record.request.history)], self._turns, with_calls=with_calls)
        thread_id = record.request.thread_id
        if not thread_id:
            return ()
        try:
            history = await self._memory.history(thread_id, self._turns)
            if not for_model:
                return history
            return await self._without_bound_turns(run, record, await self._without_forgotten_turns(record, history))
        except GroundworkError as error:
            if says_failure:
                await run.say(degraded("memory", "memory", error, "Going on without what was said before."))
            return ()

    async def answer_of(self, record: RunRecord, run_id: str) -> Answer | None:
        """The answer of an earlier run of the same user, noted as text that this run holds; None where it is gone."""
        source = Source.run(run_id)
        try:
            found = await self._runs(RunKey(record.key.tenant_id, run_id))
            if found is None or found.subject != record.subject:
                return None
            forgotten = await self._sources.depend(record.dependent, [source])
        except GroundworkError:
            return None
        return None if source in forgotten else found.outcome.answer

    async def _said_in_runs(self, run: Run, record: RunRecord, *, says_failure: bool) -> Sequence[Turn]:
        """What was said in the runs that this one goes on from, as far as they are still there."""
        earlier: list[RunRecord] = []
        run_id = record.request.previous_run_id
        try:
            while run_id and len(earlier) < self._turns:
                found = await self._runs(RunKey(record.key.tenant_id, run_id))
                if found is None or found.subject != record.subject:
                    break
                earlier.append(found)
                run_id = found.request.previous_run_id
            # This run then holds text of theirs.
            sources = [Source.run(each.key.run_id) for each in earlier]
            forgotten = await self._sources.depend(record.dependent, sources) if sources else ()
        except GroundworkError as error:
            if says_failure:
                await run.say(degraded("memory", "memory", error, "Going on without what was said before."))
            return ()
        kept = [each for each in reversed(earlier) if Source.run(each.key.run_id) not in forgotten]
        return [turn for each in kept for turn in _said_in(each)]

    async def _without_forgotten_turns(self, record: RunRecord, history: Sequence[Turn]) -> Sequence[Turn]:
        """What may be shown to a model, which may repeat it: this run then holds text of the runs that gave the answers."""
        answers = {turn.run_id for turn in history if turn.run_id and turn.role == "assistant"}
        forgotten = await self._sources.depend(record.dependent, [Source.run(run_id) for run_id in answers])
        return [turn for turn in history if turn.role != "assistant" or Source.run(turn.run_id) not in forgotten]

    async def _without_bound_turns(self, run: Run, record: RunRecord, history: Sequence[Turn]) -> Sequence[Turn]:
        """What a model outside may be shown: without what was asked and answered where only local models were allowed."""
        if record.local_models_only:
            return history
        run_ids = {turn.run_id for turn in history if turn.run_id}
        found = await asyncio.gather(*(self._runs(RunKey(record.key.tenant_id, run_id)) for run_id in run_ids))
        bound = {each.key.run_id for each in found if each is not None and each.local_models_only}
        if bound:
            await run.say(Thinking("memory", _LEFT_OUT.message, _LEFT_OUT))
        return [turn for turn in history if turn.run_id not in bound]

    async def remember(self, journal: Journal, record: RunRecord, answer: Answer, status: RunStatus) -> None:
        """Adds the question and what was answered to the run's thread. What is there already stays as it is."""
        # A run without a log does not act: the turn would be one that nobody can look up.
        if not record.request.thread_id or not journal.durable or answer.function_calls:
            return
        try:
            await self._memory.remember(record, answer, status)
        except GroundworkError as error:
            await journal.write(degraded("memory", "memory", error, _NOT_KEPT))

    async def remember_unfinished(self, journal: Journal, record: RunRecord, status: RunStatus) -> None:
        """Keeps the turn of a run that ends without an answer: the question, what was written of the answer, how it ended."""
        written = Answer(journal.progress.shown.strip(), (), None, "")
        try:
            async with asyncio.timeout(_KEEPING_S):
                await self.remember(journal, record, journal.progress.answer or written, status)
        except TimeoutError:
            silent = MemorySilent("the memory service does not answer now")
            await journal.write(degraded("memory", "memory", silent, _NOT_KEPT))


def turns_of(messages: Sequence[HistoryMessage]) -> list[Turn]:
    """Messages of a request as turns."""
    return [Turn(each.role, each.text, calls=each.calls, call_id=each.call_id) for each in messages]


def _said_in(record: RunRecord) -> list[Turn]:
    """A run's own part of a conversation. Calls that nobody has made are left out."""
    asked = record.request
    said = turns_of([*asked.history, HistoryMessage("user", asked.question), *asked.called])
    answer = record.outcome.answer
    return [*said, Turn("assistant", answer.text, record.key.run_id)] if answer and answer.text else said


def _latest(turns: Sequence[Turn], most: int, *, with_calls: bool) -> Sequence[Turn]:
    """The last turns. Calls and what they returned do not count."""
    kept: list[Turn] = []
    for turn in reversed(turns):
        is_call = turn.role == "tool" or bool(turn.calls)
        if not is_call and sum(each.role != "tool" and not each.calls for each in kept) == most:
            break
        if with_calls or not is_call:
            kept.append(turn)
    return kept[::-1]


async def forgotten_documents(
    run: Run, record: RunRecord, sources: RunSources, evidence: Sequence[Evidence]
) -> Collection[str]:
    """Notes that the run is about to write the text of these passages. Returns the documents that are forgotten, by id: their text
    must not be written. What cannot be noted is not logged."""
    return {source.item_id for source in await forgotten_sources(run, record, sources, documents_of(evidence))}


async def forgotten_sources(
    run: Run, record: RunRecord, sources: RunSources, quoted: Sequence[Source]
) -> Collection[Source]:
    """As `forgotten_documents`, of text from any sources."""
    if not quoted or not run.journal.durable:
        return ()
    try:
        return await sources.depend(record.dependent, quoted)
    except Unavailable as error:
        await run.journal.go_on_live(error)
        return ()
