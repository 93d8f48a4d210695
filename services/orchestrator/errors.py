"""Why a run cannot be started, found or written, and what it says when a service it leans on is away."""

from kit.errors import (
    Aborted,
    AlreadyExists,
    DataLoss,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
)


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


class ThreadForgotten(NotFound):
    """The thread that a run was to continue is being deleted."""

    reason = "THREAD_NOT_FOUND"


class RunDamaged(DataLoss):
    """The run's record cannot be decoded."""

    reason = "RUN_DAMAGED"


class InvalidRequest(InvalidArgument):
    reason = "INVALID_RUN_REQUEST"


class ModeNotOffered(Unimplemented):
    reason = "MODE_NOT_OFFERED"


class TooManyRuns(ResourceExhausted):
    reason = "TOO_MANY_RUNS"


class IdempotencyConflict(AlreadyExists):
    """The idempotency key was used for another request."""

    reason = "IDEMPOTENCY_KEY_REUSED"


class IdempotencyInFlight(Aborted):
    """The first request with this idempotency key is just beginning its run."""

    reason = "IDEMPOTENCY_KEY_IN_FLIGHT"


class Parked(Exception):
    """The run waits for somebody's decision. No failure of a step: whoever catches it in a step breaks the run."""


class FencedOff(Aborted):
    """Another orchestrator writes this run now. The loser stops at once and says nothing to the user."""

    reason = "RUN_TAKEN_OVER"


class SearchSilent(Unavailable):
    """The retriever is down, stopping, or did not answer in time."""

    reason = "SEARCH_UNAVAILABLE"


class MemorySilent(Unavailable):
    """The memory service is down, stopping, or did not answer in time."""

    reason = "MEMORY_UNAVAILABLE"
