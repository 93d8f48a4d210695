"""What the supervisor needs from the outside."""

from __future__ import annotations

from typing import Protocol

from services.standalone.supervising.models import ChildEvent, Probe


class HealthProbe(Protocol):
    """Asks a child whether it is ready."""

    async def is_ready(self, probe: Probe) -> bool:
        """One look, bounded in time. Not being reachable is an answer (False), not an error."""
        ...


class Announcer(Protocol):
    """Receives every change in a child's life."""

    def __call__(self, event: ChildEvent) -> None: ...


class DiskWatch(Protocol):
    """Knows whether the data directory's disk can be written."""

    def report(self, problem: str) -> None:
        """A write failed."""
        ...

    async def working(self) -> None:
        """Waits until writing works; at once unless a failure was reported."""
        ...


class LogSink(Protocol):
    """Takes what a child writes."""

    def write(self, stream: str, line: bytes) -> None:
        """Keeps one line (without its newline) of ``stdout`` or ``stderr``."""
        ...

    def last_lines(self) -> list[str]:
        """What a person needs to see after a crash, oldest first."""
        ...

    def mark_start(self) -> None:
        """A new process begins: forget the last one's lines."""
        ...

    def close(self) -> None:
        """Nothing more will be written."""
        ...
