"""The run log, over the orchestrator's contract."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc

from kit.rpc.calls import responses
from services.gateway.errors import RunNotStarted
from services.gateway.models import RunEvent
from services.gateway.streams.events import run_event


class OrchestratorRunLog:
    """RunLog over a stub on a kit channel, which raises GroundworkError and bounds each stream's life.

    A run says at once that it has started. One that has not within `start_timeout_s` is given up: an orchestrator that
    hangs would keep the client waiting for as long as the connection lives."""

    def __init__(self, stub: rpc.OrchestratorServiceStub, *, timeout_s: float, start_timeout_s: float) -> None:
        self._stub = stub
        self._timeout_s = timeout_s
        self._start_timeout_s = start_timeout_s

    async def start(self, request: pb.StartRunRequest) -> AsyncIterator[RunEvent]:
        async with aclosing(responses(self._stub.StartRun(request, timeout=self._timeout_s))) as answers:
            try:
                async with asyncio.timeout(self._start_timeout_s):
                    started = await anext(answers, None)
            except TimeoutError:
                raise RunNotStarted(
                    f"the question was not taken up within {self._start_timeout_s:g} s; wait a moment and ask again, /readyz "
                    "says what is wrong"
                ) from None
            if started is None:
                return
            yield run_event(started.event)
            async for response in answers:
                yield run_event(response.event)

    async def attach(self, run_id: str, after_seq: int) -> AsyncIterator[RunEvent]:
        request = pb.AttachRunRequest(run_id=run_id, after_seq=after_seq)
        async with aclosing(responses(self._stub.AttachRun(request, timeout=self._timeout_s))) as answers:
            async for response in answers:
                yield run_event(response.event)
