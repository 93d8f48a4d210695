"""How a tool call fails. A ToolError is no status of the call: it becomes a result for the model and the person."""

from typing import TYPE_CHECKING

from kit.errors import FailedPrecondition, ResourceExhausted

if TYPE_CHECKING:
    from services.tools.models import Need


class ToolError(Exception):
    """Raised by a tool that cannot do what was asked. `reason` is UPPER_SNAKE; the message says what to do."""

    reason = "TOOL_FAILED"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or type(self).reason

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of a tool that runs in another process come back by pickle."""
        return _restored, (type(self), self.args, self.reason)


def _restored(kind: type[ToolError], args: tuple[str], reason: str) -> ToolError:
    error = kind(*args)
    error.reason = reason
    return error


class UnknownTool(ToolError):
    """There is no tool of that name."""

    reason = "TOOL_UNKNOWN"


class ToolNotAllowed(ToolError):
    """The tool is not one that this caller may use."""

    reason = "TOOL_NOT_ALLOWED"


class ScopeMissing(ToolError):
    """The caller may not do what the tool does in its name."""

    reason = "SCOPE_MISSING"


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's schema."""

    reason = "INVALID_ARGUMENTS"


class ToolTimedOut(ToolError):
    """The tool took longer than it may."""

    reason = "TOOL_TIMEOUT"


class ToolUnavailable(ToolError):
    """The tool is not tried now: it is not set up, or has failed so often that it is left alone for a while."""

    reason = "TOOL_UNAVAILABLE"


class ServiceUnavailable(ToolError):
    """Something that the tool needs does not answer."""

    reason = "SERVICE_UNAVAILABLE"


class ToolBroke(ToolError):
    """The tool failed in a way that its author did not foresee."""


class ToolsBusy(ToolError):
    """Too many calls wait already."""

    reason = "TOOLS_BUSY"


class ToolsFull(ResourceExhausted):
    """Too many calls wait already, and this one was not begun: another replica may take it."""

    reason = ToolsBusy.reason
    is_of_one_replica = True


class InputNeeded(ToolError):
    """The tool asks for words of a model or of the user; the run decides about it, and calls the tool again."""

    reason = "TOOL_INPUT_NEEDED"

    def __init__(self, need: "Need", server: str) -> None:
        super().__init__(f"the server {server} asks something first ({need.kind})")
        self.need = need


class OutputTooLarge(ToolError):
    """The tool's output is beyond what a model can use."""

    reason = "OUTPUT_TOO_LARGE"


class CallIdMissing(ToolError):
    """A tool that changes something was called without a call id, so that nobody could tell whether it was done."""

    reason = "CALL_ID_MISSING"


class CallIdReused(ToolError):
    """The call id stands for another call."""

    reason = "CALL_ID_REUSED"


class CallInDoubt(ToolError):
    """The process that made the call died before its end was noted: nobody knows whether it was done."""

    reason = "CALL_IN_DOUBT"


class CallForgotten(ToolError):
    """What the call was a part of has been deleted."""

    reason = "CALL_FORGOTTEN"


class CallNotRecorded(ToolError):
    """What cannot be noted before it is done is not done."""

    reason = "CALL_NOT_RECORDED"


class NoSealingKey(FailedPrecondition):
    """The tools service has no key, so it keeps no secrets; an operator sets its GROUNDWORK_AUTH_SIGNING_KEY_FILE."""

    reason = "NO_SEALING_KEY"


class BrokenTool(FailedPrecondition):
    """A module of the toolbox is not a tool. The service does not start, and says so in a line: the module may be an operator's."""

    reason = "BROKEN_TOOL"
