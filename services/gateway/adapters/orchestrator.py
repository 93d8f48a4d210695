"""The run log, over the orchestrator's contract."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.events import run_event, start_request
from services.gateway.models import RunEvent, RunRequest


class OrchestratorRunLog:
    """RunLog over a stub on a kit channel, which raises GroundworkError and bounds each stream's life."""

    def __init__(self, stub: Any, *, timeout_s: float) -> None:
        self._stub = stub
        self._timeout_s = timeout_s

    async def start(self, request: RunRequest) -> AsyncIterator[RunEvent]:
        async with aclosing(self._stub.StartRun(start_request(request), timeout=self._timeout_s)) as responses:
            async for response in responses:
                yield run_event(response.event)

    async def attach(self, run_id: str, after_seq: int) -> AsyncIterator[RunEvent]:
        request = pb.AttachRunRequest(run_id=run_id, after_seq=after_seq)
        async with aclosing(self._stub.AttachRun(request, timeout=self._timeout_s)) as responses:
            async for response in responses:
                yield run_event(response.event)
