"""Limits over a real message store: several orchestrators count as one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc

from kit.access.principal import ADMIN, OPERATOR, Principal, use_principal
from kit.errors import InvalidArgument, PermissionDenied, ResourceExhausted
from kit.jetstream import Nats
from kit.limits.errors import LimitReached
from kit.limits.rules import EACH, Limit, Per, Scope, What, Whose
from kit.testing.harness import USER_SCOPES
from services.orchestrator.models import RunRecord
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect, servicer
from tests.service.orchestrator.test_handlers import request, serving
from tests.service.orchestrator.test_runs import GatedModel, until
from tests.unit.kit.llm_fakes import Script, catalog, following_switch
from tests.unit.orchestrator.limits.test_reservations import run

StartOrchestrator = Callable[..., Awaitable[Orchestrator]]
EACH_USER = Whose(Scope.SUBJECT, "acme", EACH)
ADMINISTRATOR = Principal("acme", "olga", frozenset({ADMIN}))


async def test_orchestrators_give_away_together_exactly_what_there_is(start_orchestrator: StartOrchestrator) -> None:
    several = [await start_orchestrator() for _ in range(4)]
    await several[0].rules.set(EACH_USER, [Limit(What.RUNS, 25, Per.MONTH)])
    for each in several:
        await each.rules.settings.wait_for(lambda each=each: len(each.rules.rules.listed()) == 1)  # type: ignore[misc]

    async def reserve(number: int) -> RunRecord | None:
        try:
            return await several[number % 4].reservations.reserve(run(number))
        except LimitReached:
            return None

    answers = await asyncio.gather(*(reserve(number) for number in range(100)))
    assert sum(each is not None for each in answers) == 25


async def test_refused_request_is_refused_again_with_its_idempotency_key(start_orchestrator: StartOrchestrator) -> None:
    orchestrator = await start_orchestrator()
    await orchestrator.rules.set(EACH_USER, [Limit(What.RUNS, 1, Per.MONTH)])
    _, events = await orchestrator.runs.start(ANN, QUESTION)
    await collect(events)
    for _ in range(2):
        with pytest.raises(LimitReached):
            await orchestrator.runs.start(ANN, QUESTION, "the-same-key")
    await orchestrator.rules.set(EACH_USER, [Limit(What.RUNS, 2, Per.MONTH)])
    _, events = await orchestrator.runs.start(ANN, QUESTION, "the-same-key")
    await collect(events)
    (state,) = await orchestrator.reservations.states(ANN)
    assert state.used == 2


async def test_run_gives_back_what_it_did_not_use_also_when_another_orchestrator_ends_it(
    start_orchestrator: StartOrchestrator,
) -> None:
    model = GatedModel()
    first = await start_orchestrator(model)
    await first.rules.set(EACH_USER, [Limit(What.TOKENS, 50_000, Per.MONTH)])
    key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    (state,) = await first.reservations.states(ANN)
    assert state.used == 8_000
    await first.die()
    second = await start_orchestrator()
    await collect(second.runs.attach(key, 0))

    async def is_settled() -> bool:
        (state,) = await second.reservations.states(ANN)
        usage = (await second.runs.get(key)).outcome.usage
        return usage is not None and state.used == usage.prompt_tokens + usage.completion_tokens

    await until(is_settled)


@pytest.fixture
async def stub(start_orchestrator: StartOrchestrator, jetstream: Nats) -> AsyncIterator[rpc.OrchestratorServiceStub]:
    orchestrator = await start_orchestrator()
    async with (
        following_switch(jetstream, Script(), catalog("a/m")) as switch,
        serving(servicer(orchestrator, switch)) as stub,
    ):
        yield stub


async def test_administrator_limits_users_who_see_it_and_are_refused(stub: rpc.OrchestratorServiceStub) -> None:
    limit = pb.Limit(what="runs", amount=1, per="month")
    with use_principal(ADMINISTRATOR):
        await stub.SetLimitRule(pb.SetLimitRuleRequest(whose="subject:*", limits=[limit]), timeout=60)
        (rule,) = (await stub.ListLimitRules(pb.ListLimitRulesRequest(), timeout=60)).rules
        assert (rule.whose, rule.tenant_id, list(rule.limits)) == ("subject:*", "acme", [limit])
    with use_principal(Principal("acme", "bob", USER_SCOPES)):
        _ = [each async for each in stub.StartRun(request(), timeout=60)]
        with pytest.raises(ResourceExhausted) as refused:
            _ = [each async for each in stub.StartRun(request(), timeout=60)]
        assert refused.value.reason == "LIMIT_REACHED"
        (state,) = (await stub.GetLimits(pb.GetLimitsRequest(), timeout=60)).limits
        assert (state.whose, state.used, state.limit) == ("subject", 1, limit)
    with use_principal(Principal("other", "bob", USER_SCOPES)):
        assert not (await stub.GetLimits(pb.GetLimitsRequest(), timeout=60)).limits
    with use_principal(ADMINISTRATOR):
        await stub.SetLimitRule(pb.SetLimitRuleRequest(whose="subject:*"), timeout=60)
        assert not (await stub.ListLimitRules(pb.ListLimitRulesRequest(), timeout=60)).rules


async def test_group_and_api_key_are_limited_and_told_which_limit_is_theirs(stub: rpc.OrchestratorServiceStub) -> None:
    key_id = "0f" * 12
    with use_principal(ADMINISTRATOR):
        for whose, amount in (("group:Sales EMEA/é", 2), (f"key:{key_id}", 1)):
            limit = pb.Limit(what="runs", amount=amount, per="month")
            await stub.SetLimitRule(pb.SetLimitRuleRequest(whose=whose, limits=[limit]), timeout=60)
        listed = (await stub.ListLimitRules(pb.ListLimitRulesRequest(), timeout=60)).rules
        assert [(rule.whose, rule.tenant_id) for rule in listed] == [
            ("group:Sales EMEA/é", "acme"),
            (f"key:{key_id}", "acme"),
        ]
    member = Principal("acme", "bob", USER_SCOPES, groups=frozenset({"Sales EMEA/é", "Others"}), key_id=key_id)
    with use_principal(member):
        _ = [each async for each in stub.StartRun(request(), timeout=60)]
        states = (await stub.GetLimits(pb.GetLimitsRequest(), timeout=60)).limits
        assert [(each.whose, each.used) for each in states] == [("group:Sales EMEA/é", 1), ("key", 1)]
        with pytest.raises(ResourceExhausted) as refused:
            _ = [each async for each in stub.StartRun(request(), timeout=60)]
        assert refused.value.metadata["whose"] == "key"
    with use_principal(Principal("other", "bob", USER_SCOPES, groups=member.groups, key_id=key_id)):
        assert not (await stub.GetLimits(pb.GetLimitsRequest(), timeout=60)).limits


async def test_limits_of_tenants_are_an_operators_and_how_much_all_use_only_they_see(
    stub: rpc.OrchestratorServiceStub,
) -> None:
    limits = [pb.Limit(what="dollars", amount=5, per="day")]
    with use_principal(ADMINISTRATOR):
        for whose in ("all", "tenant:acme", "tenant:*"):
            with pytest.raises(PermissionDenied):
                await stub.SetLimitRule(pb.SetLimitRuleRequest(whose=whose, limits=limits), timeout=60)
    with use_principal(Principal("acme", "root", frozenset({OPERATOR}))):
        for whose in ("all", "tenant:acme", "tenant:*"):
            await stub.SetLimitRule(pb.SetLimitRuleRequest(whose=whose, limits=limits), timeout=60)
        listed = (await stub.ListLimitRules(pb.ListLimitRulesRequest(), timeout=60)).rules
        assert sorted(rule.whose for rule in listed) == ["all", "tenant:*", "tenant:acme"]
        states = (await stub.GetLimits(pb.GetLimitsRequest(), timeout=60)).limits
        assert [(each.whose, each.HasField("used")) for each in states] == [("all", True), ("tenant", True)]
    with use_principal(Principal("acme", "bob", USER_SCOPES)):
        states = (await stub.GetLimits(pb.GetLimitsRequest(), timeout=60)).limits
        assert [(each.whose, each.HasField("used")) for each in states] == [("all", False), ("tenant", True)]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (pb.SetLimitRuleRequest(whose="everybody"), "use all, tenant:NAME"),
        (pb.SetLimitRuleRequest(whose="subject:"), "use all, tenant:NAME"),
        (pb.SetLimitRuleRequest(whose="group: "), "group:NAME"),
        (pb.SetLimitRuleRequest(whose="key:ann"), "key:ID"),
        (
            pb.SetLimitRuleRequest(whose="subject:*", limits=[pb.Limit(what="cups", amount=1, per="day")]),
            "use one of requests, runs",
        ),
        (
            pb.SetLimitRuleRequest(whose="subject:*", limits=[pb.Limit(what="runs", amount=-1, per="day")]),
            "amount is -1",
        ),
        (
            pb.SetLimitRuleRequest(whose="subject:*", limits=[pb.Limit(what="runs", amount=1, per="day")] * 2),
            "the same thing twice",
        ),
    ],
)
async def test_rule_that_says_nothing_is_refused(
    stub: rpc.OrchestratorServiceStub, rule: pb.SetLimitRuleRequest, says: str
) -> None:
    with use_principal(ADMINISTRATOR), pytest.raises(InvalidArgument, match=says):
        await stub.SetLimitRule(rule, timeout=60)
