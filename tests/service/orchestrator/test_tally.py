"""What runs have cost: each counts once, for who asked it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc

from kit.access.principal import OPERATOR, Principal, use_principal
from kit.errors import InvalidArgument, PermissionDenied, Unavailable
from kit.jetstream import KeyValue, Nats
from kit.llm import Delta, Request
from kit.llm.provider_watch import ProviderWatch
from kit.testing.harness import USER_SCOPES
from services.orchestrator.adapters.jetstream.tally import KeyValueTally
from services.orchestrator.errors import RunNotFound
from services.orchestrator.handlers import OrchestratorServicer
from services.orchestrator.log.events import RunStatus, Usage
from services.orchestrator.models import RunKey
from services.orchestrator.quizzes.answers import QuizAnswers
from services.orchestrator.runs.tally import GroupBy, Period, RunCost, account
from tests.service.orchestrator.conftest import (
    ANN,
    QUESTION,
    NoSwitches,
    Orchestrator,
    collect,
    no_run,
    unreachable_tools,
)
from tests.service.orchestrator.test_handlers import serving
from tests.service.orchestrator.test_runs import GatedModel, _has_status, status_of, until
from tests.unit.kit.llm_fakes import Script, following_switch
from tests.unit.orchestrator.fakes import FakeMemory
from tests.unit.orchestrator.serving import NoModel

StartOrchestrator = Callable[..., Awaitable[Orchestrator]]
DAY = date(2026, 1, 31)
COST = RunCost(RunKey("acme", "r1"), "ann@example.com|1", DAY, "t1", "qwen", 100, 10, 0.5)
OTHERS = (
    replace(COST, key=RunKey("acme", "r2"), thread_id="t2", day=DAY - timedelta(days=1)),
    replace(COST, key=RunKey("acme", "r3"), subject="bob", model="mini"),
    replace(COST, key=RunKey("acme", "r4"), day=DAY - timedelta(days=40)),
    replace(COST, key=RunKey("other", "r5")),
)
JANUARY = Period(date(2026, 1, 1), DAY)


@pytest.fixture
async def tally(jetstream: Nats) -> KeyValueTally:
    tally = await KeyValueTally.open(jetstream, retention_days=1)
    for cost in (COST, COST, *OTHERS):
        await tally.put(cost)
    return tally


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        (GroupBy.DAY, [("2026-01-30", 1), ("2026-01-31", 2)]),
        (GroupBy.SUBJECT, [("ann@example.com|1", 2), ("bob", 1)]),
        (GroupBy.THREAD, [("t1", 2), ("t2", 1)]),
        (GroupBy.MODEL, [("mini", 1), ("qwen", 2)]),
    ],
)
async def test_costs_are_summed_by_day_user_thread_and_model(
    tally: KeyValueTally, by: GroupBy, rows: list[tuple[str, int]]
) -> None:
    found = await account(tally, "acme", "", JANUARY, by)
    assert [(row.key, row.runs) for row in found.rows] == rows
    assert (found.total.runs, found.total.prompt_tokens, found.total.completion_tokens) == (3, 300, 30)
    assert found.total.cost_usd == pytest.approx(1.5)


async def test_one_user_sees_their_own_runs_each_once(tally: KeyValueTally, jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "RUN_COSTS", ttl_s=86_400.0)
    await bucket.put(f"acme.Ym9i.{DAY}.r9", b"damaged")
    assert (await account(tally, "acme", "ann@example.com|1", JANUARY, GroupBy.DAY)).total.runs == 2
    assert (await account(tally, "acme", "bob", JANUARY, GroupBy.DAY)).total.runs == 1


@pytest.mark.parametrize(
    ("since", "until"), [("2026-01-32", ""), ("", "yesterday"), ("2026-01-02", "2026-01-01"), ("2020-01-01", "")]
)
def test_a_period_that_cannot_be_is_refused(since: str, until: str) -> None:
    with pytest.raises(InvalidArgument):
        Period.read(since, until, DAY)


async def test_a_run_that_has_ended_is_counted_once_also_when_it_was_ended_twice(
    start_orchestrator: StartOrchestrator,
) -> None:
    first = await start_orchestrator()
    finish = first.runs._store.finish
    failed = asyncio.Event()

    async def lost(record: object) -> None:
        failed.set()
        raise Unavailable("the store went away between the two")

    first.runs._store.finish = lost  # type: ignore[method-assign,assignment]
    key, _ = await first.runs.start(ANN, QUESTION)
    async with asyncio.timeout(60):
        await failed.wait()
    await first.die()
    first.runs._store.finish = finish  # type: ignore[method-assign]
    second = await start_orchestrator()
    await collect(second.runs.attach(key, 0))
    today = datetime.now(UTC).date()
    period = Period(today - timedelta(days=1), today)
    async with asyncio.timeout(60):
        while (await second.runs.get(key)).finished_at is None:
            await asyncio.sleep(0.01)
    found = await account(second.tally, "acme", "ann", period, GroupBy.DAY)
    assert found.total.runs == 1


class Breaks(GatedModel):
    """A model behind which something breaks that nobody reckoned with."""

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        async for delta in super().complete(request):
            yield delta
            raise ValueError("a bug")


async def test_an_account_sums_what_the_runs_themselves_show_however_they_ended_and_after_one_is_deleted(
    start_orchestrator: StartOrchestrator,
) -> None:
    ends = {
        RunStatus.COMPLETED: GatedModel(),
        RunStatus.CANCELLED: GatedModel(),
        RunStatus.TIMEOUT: GatedModel(),
        RunStatus.FAILED: Breaks(),
    }
    shown: list[Usage] = []
    for status, model in ends.items():
        limits = {"wall_clock_s": 2.0} if status is RunStatus.TIMEOUT else {}
        orchestrator = await start_orchestrator(model, price=lambda spent: spent.usage.prompt_tokens / 10, **limits)
        key, events = await orchestrator.runs.start(ANN, QUESTION)
        if status is RunStatus.CANCELLED:
            await model.speaking.wait()
            await orchestrator.runs.cancel(key)
        elif status is RunStatus.COMPLETED:
            model.gate.set()
        assert status_of(await collect(events)) is status
        await until(partial(_has_status, orchestrator, key, status))
        usage = (await orchestrator.runs.get(key)).outcome.usage
        assert usage is not None
        shown.append(usage)
    today = datetime.now(UTC).date()
    period = Period(today - timedelta(days=1), today)
    found = await account(orchestrator.tally, "acme", "ann", period, GroupBy.MODEL)
    assert found.total.cost_usd == pytest.approx(sum(usage.cost_usd for usage in shown))
    assert found.total.prompt_tokens == sum(usage.prompt_tokens for usage in shown)
    assert [row for row in found.rows if row.prompt_tokens and row.key != "gated"] == []
    assert sum(usage.prompt_tokens for usage in shown) >= 30
    with use_principal(ANN):
        await orchestrator.deletion.delete(key)
    with pytest.raises(RunNotFound):
        await orchestrator.runs.get(key)
    assert (await account(orchestrator.tally, "acme", "ann", period, GroupBy.MODEL)).total == found.total


@pytest.fixture
async def stub(
    start_orchestrator: StartOrchestrator, jetstream: Nats, tally: KeyValueTally
) -> AsyncIterator[rpc.OrchestratorServiceStub]:
    orchestrator = await start_orchestrator()
    async with (
        following_switch(jetstream, Script(), None) as switch,
        serving(
            OrchestratorServicer(
                orchestrator.runs,
                orchestrator.deletion,
                switch,
                ProviderWatch(switch.models),
                tally,
                unreachable_tools(),
                NoSwitches(),
                QuizAnswers(FakeMemory(), NoModel(), no_run),
                orchestrator.rules,
                orchestrator.reservations,
            )
        ) as stub,
    ):
        yield stub


async def test_a_user_asks_for_their_own_costs_and_an_operator_for_all(stub: rpc.OrchestratorServiceStub) -> None:
    asked = pb.GetUsageRequest(since="2026-01-01", until="2026-01-31", group_by="subject")
    with use_principal(Principal("acme", "bob", USER_SCOPES)):
        own = await stub.GetUsage(asked, timeout=60)
        assert [(row.key, row.runs) for row in own.rows] == [("bob", 1)]
        for other in (pb.GetUsageRequest(subject="ann"), pb.GetUsageRequest(all_subjects=True)):
            with pytest.raises(PermissionDenied):
                await stub.GetUsage(other, timeout=60)
        with pytest.raises(InvalidArgument, match="use day, subject, thread, model"):
            await stub.GetUsage(pb.GetUsageRequest(group_by="mood"), timeout=60)
    with use_principal(Principal("acme", "olga", frozenset({OPERATOR}))):
        asked.all_subjects = True
        everybody = await stub.GetUsage(asked, timeout=60)
    assert (everybody.total.runs, everybody.total.cost_usd) == (3, pytest.approx(1.5))
