"""How a tool call fails. None of these is a status of the call: each becomes a result for the model and the person."""


class ToolError(Exception):
    """Raised by a tool that cannot do what was asked. `reason` is UPPER_SNAKE; the message says what to do."""

    reason = "TOOL_FAILED"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or type(self).reason


class UnknownTool(ToolError):
    """There is no tool of that name."""

    reason = "TOOL_UNKNOWN"


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's schema."""

    reason = "INVALID_ARGUMENTS"


class ToolTimedOut(ToolError):
    """The tool took longer than it may."""

    reason = "TOOL_TIMEOUT"


class ToolsBusy(ToolError):
    """Too many calls wait already."""

    reason = "TOOLS_BUSY"


class OutputTooLarge(ToolError):
    """The tool's output is beyond what a model can use."""

    reason = "OUTPUT_TOO_LARGE"


class BrokenTool(Exception):
    """A module of the toolbox is not a tool. The service does not start: this is a mistake in the code."""
