"""What ends a command early: printed as it is, without a traceback.

Exit codes: 1 the server or a document said no, 2 the command or the machine must be put right first, 130 Ctrl-C.
"""

from __future__ import annotations

from typing import Any


class CliError(Exception):
    """Base. The message says what happened, to what, and what to do next."""

    exit_code = 1


class UsageError(CliError):
    """What was asked for cannot be done as asked."""

    exit_code = 2


class ServerUnreachable(CliError):
    """Nobody answers at the server's address."""

    exit_code = 2


class ApiError(CliError):
    """The server answered with a problem (RFC 9457)."""

    def __init__(self, status: int, problem: dict[str, Any], retry_after_s: float | None = None) -> None:
        self.status = status
        self.problem = problem
        self.retry_after_s = retry_after_s
        self.reason = str(problem.get("reason", f"HTTP_{status}"))
        super().__init__(f"{problem.get('detail') or f'the server answered with HTTP {status}'} ({self.reason})")
