"""Orchestrators are restarted in turn while questions stream through a gateway's eyes: each event comes once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc

from kit.jetstream import Nats
from kit.llm import Delta, Finish, FinishReason, Request, TextDelta, TokenUsage
from kit.rpc.server import Server, make_server
from kit.testing.harness import make_verifier, open_test_channel
from services.gateway.adapters.orchestrator import OrchestratorRunLog
from services.gateway.models import RunEvent
from services.gateway.streams.following import ReattachPolicy, follow
from services.orchestrator.handlers import OrchestratorServicer
from tests.service.orchestrator.conftest import Orchestrator, servicer
from tests.service.orchestrator.test_runs import GatedModel
from tests.unit.kit.llm_fakes import Script, catalog, following_switch

NEVER_S = 600.0
CONTRACT = list(orchestrator_pb2.DESCRIPTOR.services_by_name.values())
RESTARTS = 4
_QUESTION = orchestrator_pb2.StartRunRequest(
    mode=orchestrator_pb2.RUN_MODE_QA, question="When was the tower built?", collection_ids=["default"]
)


class SlowModel(GatedModel):
    """Says its answer piece by piece, so that a restart meets it in the middle."""

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        for piece in ("The ", "tower ", "was ", "built ", "in ", "1889. ", "[1]"):
            yield TextDelta(piece)
            self.speaking.set()
            await asyncio.sleep(0.05)
        yield Finish(FinishReason.STOP, TokenUsage(10, 2), "slow", "slow")


async def _serve(servicer: OrchestratorServicer, port: int) -> tuple[Server, int]:
    server = make_server(make_verifier())
    orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server(servicer, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    return server, bound


class Askers:
    """Each asks one question after the other and follows it to its end, as the gateway does for its client."""

    def __init__(self, log: OrchestratorRunLog) -> None:
        self._log = log
        self._stopping = False
        self._told = asyncio.Condition()
        self.attached = 0
        self.runs: list[list[RunEvent]] = []

    async def ask(self) -> None:
        while not self._stopping:
            started = self._log.start(_QUESTION)
            policy = ReattachPolicy(give_up_after_s=NEVER_S)
            events: list[RunEvent] = []
            self.runs.append(events)
            async for event in follow(started, self._attach, run_id="", after_seq=0, policy=policy):
                events.append(event)
                async with self._told:
                    self._told.notify_all()

    def _attach(self, run_id: str, after_seq: int) -> AsyncIterator[RunEvent]:
        self.attached += 1
        return self._log.attach(run_id, after_seq)

    async def are_in_the_middle_of_answers(self) -> None:
        async with asyncio.timeout(NEVER_S), self._told:
            await self._told.wait_for(
                lambda: sum(bool(run) and run[-1].kind == "token" for run in self.runs) >= 2  # both ask elsewhere
            )

    def stop(self) -> None:
        self._stopping = True


async def test_each_event_comes_once_while_orchestrators_are_restarted(
    start_orchestrator: Callable[..., Awaitable[Orchestrator]], jetstream: Nats
) -> None:
    async with AsyncExitStack() as stack:
        switch = await stack.enter_async_context(following_switch(jetstream, Script(), catalog("a/m")))

        async def begin(port: int = 0) -> tuple[Orchestrator, Server, int]:
            orchestrator = await start_orchestrator(SlowModel())
            server, bound = await _serve(servicer(orchestrator, switch), port)
            return orchestrator, server, bound

        replicas = [await begin(), await begin()]
        address = ",".join(f"127.0.0.1:{port}" for _, _, port in replicas)
        channel = await stack.enter_async_context(open_test_channel(address, services=CONTRACT, patience_s=NEVER_S))
        log = OrchestratorRunLog(
            orchestrator_pb2_grpc.OrchestratorServiceStub(channel), timeout_s=NEVER_S, start_timeout_s=NEVER_S
        )
        askers = Askers(log)
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(askers.ask())
            for turn in range(RESTARTS):
                await askers.are_in_the_middle_of_answers()
                orchestrator, server, port = replicas[turn % 2]
                orchestrator.runs.drain()
                await server.stop(0.05)  # shorter than an answer: streams are cut off
                await orchestrator.stop()
                replicas[turn % 2] = await begin(port)
            askers.stop()
        for _, server, _ in replicas:
            await server.stop(None)
    assert askers.attached > 0
    for events in askers.runs:
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert events[-1].is_last
        assert events[-1].data["status"] == "completed"
