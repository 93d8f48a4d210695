"""What becomes of a call that fails: an error for the model and the person, and a pause for a tool that keeps failing."""

import math
import traceback
from collections.abc import Callable, Sequence

import structlog

from kit.breaker import CircuitBreaker
from kit.deadline import is_spent
from kit.errors import (
    Cancelled,
    DeadlineExceeded,
    GroundworkError,
    Internal,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from services.tools.calling.progress import Tell
from services.tools.errors import ServiceUnavailable, ToolBroke, ToolError, ToolTimedOut, ToolUnavailable
from services.tools.metrics import show_breaker
from services.tools.models import Call, Caller, Tool, ToolOutput
from services.tools.sources.limits import limit_s
from services.tools.sources.source import ToolSource, Wrapper

_log = structlog.get_logger()
_AWAY = (Unavailable, DeadlineExceeded, Cancelled)  # Cancelled is what a stopping server says
_BROKEN = (Internal, Unimplemented)


class ServiceSilent(ServiceUnavailable):
    """A service did not answer, and the tool did not foresee it: nobody knows what was done by then."""


class Explained(Wrapper):
    """Turns whatever a source raises into a ToolError without internals."""

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        time_s = limit_s(tool)
        try:
            return await super().call(tool, call, tell)
        except ToolError:
            raise
        except TimeoutError as error:
            raise ToolTimedOut(f"{tool.name} took longer than {time_s:.1f} s; ask for less") from error
        except GroundworkError as error:
            raise _of_a_service(tool.name, error) from error
        except Exception as error:
            # What it says may quote the arguments.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            _log.error("tool_broke", tool=tool.name, error=type(error).__name__, at=f"{frame.filename}:{frame.lineno}")
            _log.debug("tool_broke_because", tool=tool.name, exc_info=error)
            raise ToolBroke(f"{tool.name} failed unexpectedly; try other arguments or another way") from error


class LeftAlone(Wrapper):
    """Leaves a tool alone for a while that fails again and again by its own fault, or by that of a service behind it. A tool that
    refuses what was asked works."""

    def __init__(self, inside: ToolSource, breaker: Callable[[], CircuitBreaker]) -> None:
        """`breaker` makes that of a tool."""
        super().__init__(inside)
        self._new_breaker = breaker
        self._breakers: dict[str, CircuitBreaker] = {}

    async def list(self, caller: Caller) -> Sequence[Tool]:
        tools = await super().list(caller)
        for tool in tools:
            self._breaker(tool.name)
        return tools

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        breaker = self._breaker(tool.name)
        if not breaker.allow():
            raise ToolUnavailable(
                f"{tool.name} keeps failing and is left alone for now; it is tried again in {math.ceil(breaker.wait_s) or 1} s"
            )
        settle = breaker.abandoned
        try:
            output = await super().call(tool, call, tell)
            settle = breaker.succeeded
        except ToolError as error:
            if _is_fault(error):
                settle = breaker.failed
            raise
        else:
            return output
        finally:
            settle()

    def _breaker(self, name: str) -> CircuitBreaker:
        if name not in self._breakers:
            made = self._breakers[name] = self._new_breaker()
            show_breaker(name, lambda: made.state)
        return self._breakers[name]


def _is_fault(error: ToolError) -> bool:
    """Whether the tool failed, or a service behind it, rather than refused. A caller that left no time says nothing about them."""
    broke = isinstance(error, ToolTimedOut | ToolBroke | ServiceUnavailable)
    return (broke or isinstance(error.__cause__, (*_AWAY, *_BROKEN))) and not is_spent()


def _of_a_service(tool_name: str, error: GroundworkError) -> ToolError:
    """For tools that do not translate what a service says themselves."""
    if isinstance(error, _AWAY):
        return ServiceSilent(f"a service that {tool_name} needs does not answer now; try again in a minute")
    if isinstance(error, Unauthenticated | PermissionDenied):
        return ToolError(
            f"{tool_name} may not do this in its caller's name: {error.message}; ask again, or ask the operator",
            reason=error.reason,
        )
    if isinstance(error, _BROKEN):
        return ToolBroke(f"a service that {tool_name} needs has failed; try again, or another way")
    return ToolError(error.message, reason=error.reason)
