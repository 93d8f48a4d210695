"""Why a run cannot be started, found or written, and what it says when a service it leans on is away."""

from kit.errors import Aborted, DataLoss, InvalidArgument, NotFound, ResourceExhausted, Unavailable, Unimplemented


class RunNotFound(NotFound):
    reason = "RUN_NOT_FOUND"


class RunForgotten(NotFound):
    """The run's events were erased, since something that they quote was deleted."""

    reason = "RUN_FORGOTTEN"


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


class FencedOff(Aborted):
    """Another orchestrator writes this run now. The loser stops at once and says nothing to the user."""

    reason = "RUN_TAKEN_OVER"


class QuestionTooLong(InvalidArgument):
    """The question fills the model's context."""

    reason = "QUESTION_TOO_LONG"


class SearchSilent(Unavailable):
    """The retriever is down, stopping, or did not answer in time."""

    reason = "SEARCH_UNAVAILABLE"


class MemorySilent(Unavailable):
    """The memory service is down, stopping, or did not answer in time."""

    reason = "MEMORY_UNAVAILABLE"
