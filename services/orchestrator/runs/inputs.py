"""What a run asks its user in words, and the answer. Like a decision about a call, the answer is an entry of the run's log; any
worker continues the run after it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from kit.access.principal import Principal
from kit.errors import Unavailable
from services.orchestrator.errors import FencedOff, InputClosed, InvalidRequest, NotYoursToDecide
from services.orchestrator.log.events import InputRequest, InputState
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, Wait
from services.orchestrator.ports import EventLog, RunStore
from services.orchestrator.runs.approvals import ACTED_ON_WITHIN, TRIES, WaitingRuns, append_decision, go_on

LONGEST_CHARS = 2_000


class Inputs:
    """Questions of all runs to their users."""

    def __init__(self, store: RunStore, log: EventLog, runs: WaitingRuns, now: Callable[[], datetime]) -> None:
        self._store = store
        self._log = log
        self._runs = runs
        self._now = now

    async def answer(self, principal: Principal, run: RunRecord, text: str) -> InputRequest:
        """Appends the answer and lets the run go on. Harmless when repeated with the same text.

        Raises InvalidRequest, NotYoursToDecide, InputClosed, what opening the run's log raises, or Unavailable.
        """
        said = _checked(text)
        if principal.subject != run.subject:
            raise NotYoursToDecide(
                f"run {run.key.run_id} asks {run.subject}; only they may answer", run_id=run.key.run_id
            )
        for _ in range(TRIES):
            journal = await Journal.open(run.key, self._log, self._now)
            step, asked = _question(journal, run)
            if asked.state is not InputState.PENDING:
                if asked.state is not InputState.ANSWERED or asked.text != said:
                    raise _closed(run, _SETTLED[asked.state])
                if journal.progress.has_unread_decision:
                    await go_on(self._runs, run.key)
                return asked
            await self._check_open(journal, run, step, asked)
            answered = replace(asked, state=InputState.ANSWERED, text=said)
            # Before the answer: should this process die after it, the run goes on by itself.
            await self._runs.wake_by(run.key, self._now() + ACTED_ON_WITHIN)
            try:
                await append_decision(journal, step, answered)
            except FencedOff:
                continue
            await go_on(self._runs, run.key)
            return answered
        raise Unavailable(f"run {run.key.run_id} is being written by others; try again", retry_after_s=1.0)

    async def _check_open(self, journal: Journal, run: RunRecord, step: str, asked: InputRequest) -> None:
        if journal.progress.done is not None or run.finished_at is not None:
            raise _closed(run, "has ended")
        if Wait(journal.progress.asked_at[step], asked.expires_at).is_over(self._now()):
            raise _closed(run, "has waited long enough and goes on without an answer")
        if await self._store.is_cancelled(run.key):
            raise _closed(run, "is being cancelled")


_SETTLED = {
    InputState.ANSWERED: "has its answer already; ask another question for another one",
    InputState.EXPIRED: "has waited long enough and goes on without an answer",
    InputState.UNKNOWN: "has its answer already",
}


def _checked(text: str) -> str:
    said = text.strip()
    if not 0 < len(said) <= LONGEST_CHARS:
        raise InvalidRequest(f"the answer has {len(said)} characters; send 1 to {LONGEST_CHARS}", field="text")
    return said


def _question(journal: Journal, run: RunRecord) -> tuple[str, InputRequest]:
    """The step that asked last, and what."""
    if not journal.progress.inputs:
        raise _closed(run, "asks nothing; see its events")
    return next(reversed(journal.progress.inputs.items()))


def _closed(run: RunRecord, why: str) -> InputClosed:
    return InputClosed(f"run {run.key.run_id} {why}", run_id=run.key.run_id)
