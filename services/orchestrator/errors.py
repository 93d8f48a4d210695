"""Why a run cannot be started, found or written."""

from kit.errors import Aborted, InvalidArgument, NotFound, ResourceExhausted, Unimplemented


class RunNotFound(NotFound):
    reason = "RUN_NOT_FOUND"


class InvalidRequest(InvalidArgument):
    reason = "INVALID_RUN_REQUEST"


class ModeNotOffered(Unimplemented):
    reason = "MODE_NOT_OFFERED"


class TooManyRuns(ResourceExhausted):
    reason = "TOO_MANY_RUNS"


class FencedOff(Aborted):
    """Another orchestrator writes this run now. The loser stops at once and says nothing to the user."""

    reason = "RUN_TAKEN_OVER"
