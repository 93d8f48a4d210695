"""What the gateway's own logic needs from outside. Plain calls have no port: their routes are the edge itself, they decode,
call the contract and encode."""

from collections.abc import AsyncIterator
from typing import Protocol

from groundwork.orchestrator.v1.orchestrator_pb2 import StartRunRequest

from services.gateway.models import Health, RunEvent


class RunLog(Protocol):
    """Runs as streams of events. Both raise GroundworkError; `aclose()` of a stream does not stop its run."""

    def start(self, request: StartRunRequest) -> AsyncIterator[RunEvent]:
        """Starts a run and follows it."""

    def attach(self, run_id: str, after_seq: int) -> AsyncIterator[RunEvent]:
        """Follows a run from after `after_seq`; ends after its last event."""


class HealthProbe(Protocol):
    """Asks one service how it is."""

    async def check(self) -> Health:
        """Answers in bounded time and never raises."""
