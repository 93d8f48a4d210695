"""The orchestrator's contract over a real gRPC server and a real NATS server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from google.protobuf.duration_pb2 import Duration
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc

from kit.access.principal import Principal, use_principal
from kit.errors import AlreadyExists, InvalidArgument, NotFound, Unimplemented
from kit.jetstream import Nats
from kit.testing.harness import TEST_PRINCIPAL, USER_SCOPES, open_test_channel, running_servicer
from services.orchestrator.handlers import OrchestratorServicer
from tests.service.orchestrator.conftest import Orchestrator, servicer
from tests.unit.kit.llm_fakes import Script, catalog, following_switch


@pytest.fixture
async def stub(
    start_orchestrator: Callable[..., Awaitable[Orchestrator]], jetstream: Nats
) -> AsyncIterator[rpc.OrchestratorServiceStub]:
    orchestrator = await start_orchestrator()
    async with (
        following_switch(jetstream, Script(), catalog("a/m")) as switch,
        serving(servicer(orchestrator, switch)) as stub,
    ):
        yield stub


@asynccontextmanager
async def serving(servicer: OrchestratorServicer) -> AsyncIterator[rpc.OrchestratorServiceStub]:
    async with (
        running_servicer(rpc.add_OrchestratorServiceServicer_to_server, servicer) as address,
        open_test_channel(address) as channel,
    ):
        yield rpc.OrchestratorServiceStub(channel)


def request(**changes: object) -> pb.StartRunRequest:
    fields = {"mode": pb.RUN_MODE_QA, "question": "When was the tower built?", "collection_ids": ["default"], **changes}
    return pb.StartRunRequest(**fields)  # type: ignore[arg-type]


async def test_run_over_the_wire_tells_everything(stub: rpc.OrchestratorServiceStub) -> None:
    events = [
        r.event async for r in stub.StartRun(request(budgets=pb.Budgets(wall_clock=Duration(seconds=9))), timeout=60)
    ]
    kinds = [event.WhichOneof("payload") for event in events]
    assert kinds == ["run", "plan", "retrieval", "token", "verification", "answer", "usage", "done"]
    assert events[0].run.budgets.wall_clock.seconds == 9
    assert events[2].retrieval.evidence[0].document_name == "tower.txt"
    assert events[2].retrieval.evidence[0].dense_score == pytest.approx(0.8)
    assert events[5].answer.citations[0].number == 1
    assert events[5].answer.support_status == pb.SUPPORT_STATUS_SUPPORTED
    run_id = events[0].run_id
    again = [r.event async for r in stub.AttachRun(pb.AttachRunRequest(run_id=run_id, after_seq=5), timeout=60)]
    assert again == events[5:]
    run = (await stub.GetRun(pb.GetRunRequest(run_id=run_id), timeout=60)).run
    assert (run.question, run.mode) == ("When was the tower built?", pb.RUN_MODE_QA)
    assert [r.run_id for r in (await stub.ListRuns(pb.ListRunsRequest(), timeout=60)).runs] == [run_id]
    await stub.CancelRun(pb.CancelRunRequest(run_id=run_id), timeout=60)


async def test_deleted_run_is_gone_at_once_and_may_be_deleted_again(stub: rpc.OrchestratorServiceStub) -> None:
    events = [r.event async for r in stub.StartRun(request(), timeout=60)]
    run_id = events[0].run_id
    with use_principal(Principal("other", "eve", USER_SCOPES)):
        await stub.DeleteRun(pb.DeleteRunRequest(run_id=run_id), timeout=60)
    async with asyncio.timeout(60):
        while not (await stub.GetRun(pb.GetRunRequest(run_id=run_id), timeout=60)).run.HasField("finished_at"):
            await asyncio.sleep(0.02)
    for _ in range(2):
        await stub.DeleteRun(pb.DeleteRunRequest(run_id=run_id), timeout=60)
    with pytest.raises(NotFound):
        await stub.GetRun(pb.GetRunRequest(run_id=run_id), timeout=60)
    assert not (await stub.ListRuns(pb.ListRunsRequest(), timeout=60)).runs


async def test_run_has_its_answer_once_it_has_ended_and_a_listing_has_not(stub: rpc.OrchestratorServiceStub) -> None:
    events = [r.event async for r in stub.StartRun(request(), timeout=60)]
    run_id = events[0].run_id
    async with asyncio.timeout(60):
        while not (run := (await stub.GetRun(pb.GetRunRequest(run_id=run_id), timeout=60)).run).HasField("finished_at"):
            await asyncio.sleep(0.02)
    assert run.answer == events[5].answer
    assert run.usage == events[6].usage
    assert run.subject == "tester"
    assert not run.HasField("error")
    (listed,) = (await stub.ListRuns(pb.ListRunsRequest(), timeout=60)).runs
    assert not listed.HasField("answer")
    assert not listed.HasField("usage")


async def test_run_of_another_subject_does_not_exist(stub: rpc.OrchestratorServiceStub) -> None:
    events = [r.event async for r in stub.StartRun(request(), timeout=60)]
    run_id = events[0].run_id
    calls = (
        lambda: stub.GetRun(pb.GetRunRequest(run_id=run_id), timeout=60),
        lambda: stub.CancelRun(pb.CancelRunRequest(run_id=run_id), timeout=60),
        lambda: _attached(stub, run_id),
    )
    with use_principal(Principal(TEST_PRINCIPAL.tenant_id, "eve", USER_SCOPES)):
        for call in calls:
            with pytest.raises(NotFound, match="does not exist"):
                await call()
        assert not (await stub.ListRuns(pb.ListRunsRequest(), timeout=60)).runs
        # As of a run that is gone, which may be deleted again.
        await stub.DeleteRun(pb.DeleteRunRequest(run_id=run_id), timeout=60)
    with use_principal(Principal(TEST_PRINCIPAL.tenant_id, "root", frozenset({"operator"}))):
        assert len(await _attached(stub, run_id)) == len(events)
        assert [run.subject for run in (await stub.ListRuns(pb.ListRunsRequest(), timeout=60)).runs] == ["tester"]
    assert (await stub.GetRun(pb.GetRunRequest(run_id=run_id), timeout=60)).run.run_id == run_id


async def _attached(stub: rpc.OrchestratorServiceStub, run_id: str) -> list[pb.RunEvent]:
    return [r.event async for r in stub.AttachRun(pb.AttachRunRequest(run_id=run_id), timeout=60)]


async def test_start_that_is_asked_for_again_over_the_wire_is_the_same_run(stub: rpc.OrchestratorServiceStub) -> None:
    asked = request(idempotency_key="3f2b")
    events = [r.event async for r in stub.StartRun(asked, timeout=60)]
    assert [r.event async for r in stub.StartRun(asked, timeout=60)] == events
    with pytest.raises(AlreadyExists, match="another question") as told:
        [r async for r in stub.StartRun(request(idempotency_key="3f2b", question="Else?"), timeout=60)]
    assert told.value.reason == "IDEMPOTENCY_KEY_REUSED"
    assert told.value.metadata["run_id"] == events[0].run_id


async def test_other_tenant_cannot_see_the_run(stub: rpc.OrchestratorServiceStub) -> None:
    events = [r.event async for r in stub.StartRun(request(), timeout=60)]
    with use_principal(Principal("other", "eve", USER_SCOPES)):
        with pytest.raises(NotFound, match="does not exist"):
            await stub.GetRun(pb.GetRunRequest(run_id=events[0].run_id), timeout=60)
        assert not (await stub.ListRuns(pb.ListRunsRequest(), timeout=60)).runs


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"mode": pb.RUN_MODE_UNSPECIFIED}, InvalidArgument),
        ({"mode": pb.RUN_MODE_UNKNOWN}, Unimplemented),
        ({"question": ""}, InvalidArgument),
        ({"document_ids": ["a" * 300] * 1000}, InvalidArgument),
        ({"document_ids": ["d1\n"]}, InvalidArgument),
        ({"document_ids": ["d1"] * 1001}, InvalidArgument),
        ({"collection_ids": ["default\n"]}, InvalidArgument),
        ({"collection_ids": ["default"] * 65}, InvalidArgument),
    ],
)
async def test_bad_start_is_refused(
    stub: rpc.OrchestratorServiceStub, changes: dict[str, object], expected: type[Exception]
) -> None:
    with pytest.raises(expected):
        [r async for r in stub.StartRun(request(**changes), timeout=60)]


async def test_run_may_name_as_many_documents_as_the_contract_says(stub: rpc.OrchestratorServiceStub) -> None:
    named = request(document_ids=["a" * 124 + f"{n:04}" for n in range(1000)])
    events = [r.event async for r in stub.StartRun(named, timeout=60)]
    assert events[-1].done.status == pb.RUN_STATUS_COMPLETED


@pytest.mark.parametrize("run_id", ["", "*", ">", "../x", "local.abc", "0a\n"])
async def test_run_id_that_could_reach_other_subjects_is_refused(
    stub: rpc.OrchestratorServiceStub, run_id: str
) -> None:
    with pytest.raises(NotFound, match="not a run id"):
        await stub.GetRun(pb.GetRunRequest(run_id=run_id), timeout=60)
