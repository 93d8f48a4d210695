"""GetModels and SetModel over a real gRPC server and a real NATS server."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc

from kit.access.principal import OPERATOR, Principal, use_principal
from kit.errors import FailedPrecondition, InvalidArgument, PermissionDenied
from kit.jetstream import Nats
from kit.llm import ChatMessage, ModelUnavailable, Request
from tests.service.orchestrator.conftest import Orchestrator, servicer
from tests.service.orchestrator.test_handlers import serving
from tests.unit.kit.llm_fakes import SET_AT, Script, catalog, following_switch, provider, says

OLGA = Principal("acme", "olga", frozenset({OPERATOR}))


@pytest.fixture
async def stub(
    start_orchestrator: Callable[..., Awaitable[Orchestrator]], jetstream: Nats
) -> AsyncIterator[rpc.OrchestratorServiceStub]:
    orchestrator = await start_orchestrator()
    script = Script({"a/m": [says("a")], "a/away": [[ModelUnavailable("away", retry_after_s=99.0)]]})
    offered = catalog("a/m", providers={"a": provider(models={"m": {}, "away": {}}, any_model=False)})
    async with (
        following_switch(jetstream, script, offered) as switch,
        serving(servicer(orchestrator, switch)) as stub,
    ):
        yield stub


def wanted(model: str, **fields: object) -> pb.SetModelRequest:
    name = pb.ModelName(provider="a", model=model)
    return pb.SetModelRequest(**{"operation": "answer", "model": name, **fields})  # type: ignore[arg-type]


async def test_everybody_sees_what_each_operation_asks_and_what_there_is(stub: rpc.OrchestratorServiceStub) -> None:
    found = await stub.GetModels(pb.GetModelsRequest(), timeout=60)
    assert {each.operation: each.chain[0].model for each in found.operations} == dict.fromkeys(
        ("plan", "answer", "verify", "summarise", "facts"), "m"
    )
    (offered,) = found.providers
    assert (offered.name, list(offered.models), offered.any_model) == ("a", ["m", "away"], False)
    assert (offered.state, offered.problem) == (pb.PROVIDER_STATE_CLOSED, "")


async def test_failure_of_a_request_is_told_in_full_to_operators_alone(
    start_orchestrator: Callable[..., Awaitable[Orchestrator]], jetstream: Nats
) -> None:
    script = Script({"a/m": [[ModelUnavailable("nobody listens", retry_after_s=99.0)]]})
    offered = catalog("a/m", providers={"a": provider(models={"m": {}})})
    orchestrator = await start_orchestrator()
    async with following_switch(jetstream, script, offered) as switch, serving(servicer(orchestrator, switch)) as stub:
        with contextlib.suppress(ModelUnavailable):
            [each async for each in switch.models.complete(Request([ChatMessage("user", "hi")], 8))]
        (told,) = (await stub.GetModels(pb.GetModelsRequest(), timeout=60)).providers
        with use_principal(OLGA):
            (found,) = (await stub.GetModels(pb.GetModelsRequest(), timeout=60)).providers
    assert found.problem == "its last request failed: nobody listens"
    assert told.problem == "does not answer now; ask the operator"


async def test_an_operator_sets_and_resets_a_model(stub: rpc.OrchestratorServiceStub) -> None:
    with use_principal(OLGA):
        done = (await stub.SetModel(wanted("away", force=True), timeout=60)).operation
        assert [each.model for each in done.chain] == ["away", "m"]
        assert (done.set, done.set_by, done.set_at.ToDatetime(tzinfo=SET_AT.tzinfo)) == (True, "olga", SET_AT)
        reset = (await stub.SetModel(pb.SetModelRequest(operation="answer"), timeout=60)).operation
    assert ([each.model for each in reset.chain], reset.set) == (["m"], False)


async def test_nobody_else_may(stub: rpc.OrchestratorServiceStub) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await stub.SetModel(wanted("m"), timeout=60)
    assert caught.value.reason == "SCOPE_MISSING"


async def test_what_cannot_be_set_is_told_with_what_there_is(stub: rpc.OrchestratorServiceStub) -> None:
    with use_principal(OLGA):
        with pytest.raises(InvalidArgument, match="a has no model 'x'; it has m, away"):
            await stub.SetModel(wanted("x", force=True), timeout=60)
        with pytest.raises(InvalidArgument, match="there is no operation 'dream'; there are plan, answer"):
            await stub.SetModel(wanted("m", operation="dream"), timeout=60)
        with pytest.raises(FailedPrecondition, match=r"away.*force"):
            await stub.SetModel(wanted("away"), timeout=60)
