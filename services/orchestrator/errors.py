"""Why a run cannot be started, found or written, what it says when a service it leans on is away, and the two signals that end a
worker's part in a run.

    BaseException
    └── RunSignal        no failure: no fallback, no `except Exception` sees it
        ├── FencedOff    another orchestrator writes the run now
        └── Parked       the run waits for a person
"""

from datetime import datetime

from kit.errors import (
    DataLoss,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
)
from kit.stores.idempotency import IdempotencyInFlight

_IN_FLIGHT_RETRY_AFTER_S = 2.0
"""An answer takes seconds."""


class RunNotFound(NotFound):
    reason = "RUN_NOT_FOUND"


class RunExpired(NotFound):
    """The run has ended, and its events were kept for as long as they are kept."""

    reason = "RUN_EXPIRED"


class RunOfNewerVersion(FailedPrecondition):
    """The run is in a state that this version does not know: only a newer one can go on with it."""

    reason = "RUN_OF_NEWER_VERSION"


class RunForgotten(NotFound):
    """The run's events were erased, since something that they quote was deleted."""

    reason = "RUN_FORGOTTEN"


def not_found(run_id: str) -> RunNotFound:
    return RunNotFound(f"run {run_id} does not exist, or its events have expired", run_id=run_id)


def forgotten(run_id: str) -> RunForgotten:
    return RunForgotten(
        f"the events of run {run_id} were erased, because a document that they quote was deleted; ask the question again",
        run_id=run_id,
    )


def in_flight(run_id: str) -> IdempotencyInFlight:
    return IdempotencyInFlight(
        f"run {run_id}, which was started with this idempotency key, has not ended; follow it, or ask again when it has",
        retry_after_s=_IN_FLIGHT_RETRY_AFTER_S,
        run_id=run_id,
    )


class ThreadForgotten(NotFound):
    """The thread that a run was to continue is being deleted."""

    reason = "THREAD_NOT_FOUND"


class BrokenAgent(FailedPrecondition):
    """A file is not an agent. The service does not start, and says so in a line: the file may be an operator's."""

    reason = "BROKEN_AGENT"


class RunDamaged(DataLoss):
    """The run's record cannot be decoded."""

    reason = "RUN_DAMAGED"


class InvalidRequest(InvalidArgument):
    reason = "INVALID_RUN_REQUEST"


class QuestionBlocked(InvalidArgument):
    """The question gives orders to the model, asks for its secrets or asks for harm, and such questions are refused here."""

    reason = "QUESTION_BLOCKED"


class ModeNotOffered(Unimplemented):
    """This version has no such mode."""

    reason = "MODE_NOT_OFFERED"


class MemoryModeNotOffered(Unimplemented):
    """This version does not use what is remembered in that way."""

    reason = "MEMORY_MODE_NOT_OFFERED"


class TooManyRuns(ResourceExhausted):
    reason = "TOO_MANY_RUNS"
    is_of_one_replica = True


class RunSignal(BaseException):
    """Ends this worker's part in a run. It is no failure of a step, so it is no Exception: what stands in for a failed step catches
    Exception or less, and must neither answer instead nor write a word more."""


class FencedOff(RunSignal):
    """Another orchestrator writes this run now. The loser stops at once and says nothing to the user."""


class Parked(RunSignal):
    """The run waits for a person's decision until `until`: nobody works on it, and its clock stands still."""

    def __init__(self, step: str, until: datetime) -> None:
        super().__init__(f"step {step} waits for a decision until {until.isoformat()}")
        self.until = until


def _urgency(signal: RunSignal) -> float:
    return signal.until.timestamp() if isinstance(signal, Parked) else float("-inf")


def signal_in(error: BaseException) -> RunSignal | None:
    """The signal that `error` is, or that a group of errors holds. Being fenced off outweighs waiting; of several waits the
    first to end counts."""
    if isinstance(error, RunSignal):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = [signal for each in error.exceptions if (signal := signal_in(each)) is not None]
        return min(found, key=_urgency, default=None)
    return None


class BudgetSpent(FailedPrecondition):
    """One of the run's budgets is used up; metadata `budget` names it. No overload: what stands in for a service that is overloaded
    must not take it for one."""

    reason = "BUDGET_SPENT"


class ReadOnlyRun(FailedPrecondition):
    """The run's log cannot be written: it may answer, but neither act nor ask."""

    reason = "RUN_READ_ONLY"


class StepDiverged(Internal):
    """A run that was continued came to other arguments than those that its log has for the step."""

    reason = "STEP_DIVERGED"


class ApprovalNotFound(NotFound):
    reason = "APPROVAL_NOT_FOUND"


class ApprovalClosed(FailedPrecondition):
    """It was decided otherwise, or has expired, or its run has ended."""

    reason = "APPROVAL_CLOSED"


class InputClosed(FailedPrecondition):
    """The run asks its user nothing, was answered already, went on without an answer, or has ended."""

    reason = "INPUT_CLOSED"


class NotYoursToDecide(PermissionDenied):
    reason = "NOT_YOURS_TO_DECIDE"


class QuestionTooLong(InvalidArgument):
    """The question fills the model's context."""

    reason = "QUESTION_TOO_LONG"


class SearchSilent(Unavailable):
    """The retriever is down, stopping, or did not answer in time."""

    reason = "SEARCH_UNAVAILABLE"


class ToolsSilent(Unavailable):
    """The tools service is down, stopping, or did not answer in time."""

    reason = "TOOLS_UNAVAILABLE"


class MemorySilent(Unavailable):
    """The memory service is down, stopping, or did not answer in time."""

    reason = "MEMORY_UNAVAILABLE"


class AgentFailed(Internal):
    """The agent's own code failed: its message is answered from the documents as without it."""

    reason = "AGENT_FAILED"


class LibrarySilent(Unavailable):
    """The store of documents or the retriever is down, stopping, or did not answer in time: whole documents cannot be read."""

    reason = "DOCUMENTS_UNAVAILABLE"
