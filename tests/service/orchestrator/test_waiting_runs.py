"""Runs that wait for a person, on a real NATS server: listed for those whom they concern, woken when their question expires,
removed like any other."""

import asyncio
from datetime import timedelta

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import record_pb2

from kit.access.principal import Principal, use_principal
from kit.errors import FailedPrecondition, InvalidArgument, NotFound
from kit.jetstream import KeyValue, Nats
from kit.stores.forgetting import ForgetRequest, Source
from services.orchestrator.errors import ApprovalClosed, ApprovalNotFound, InvalidRequest
from services.orchestrator.log.events import Approval, ApprovalDecision, RunStatus
from services.orchestrator.models import RunKey
from services.orchestrator.runs.forgetting import CUT_OFF_AFTER, RECHECK_S
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect, now, servicer
from tests.service.orchestrator.paying import (
    BOB,
    LONG_S,
    OPERATOR,
    Pays,
    Start,
    decide,
    is_listed,
    listed,
    parked,
)
from tests.service.orchestrator.test_handlers import serving
from tests.service.orchestrator.test_runs import _has_status, status_of, until
from tests.unit.kit.llm_fakes import Script, catalog, following_switch
from tests.unit.orchestrator.steps.test_cuts import Bank


async def test_question_that_nobody_decides_expires_by_itself_after_all_were_down(start_orchestrator: Start) -> None:
    bank = Bank()
    first = await start_orchestrator(worker=Pays(bank, life_s=2.0))
    key, _ = await first.runs.start(ANN, QUESTION)
    await until(lambda: _is_left(first, key), seconds=LONG_S)
    await first.stop()
    second = await start_orchestrator(worker=Pays(bank))
    events = await collect(second.runs.attach(key, 0))
    assert status_of(events) is RunStatus.REFUSED
    asked = [event.payload for event in events if isinstance(event.payload, Approval)]
    assert [each.decision for each in asked] == [ApprovalDecision.PENDING, ApprovalDecision.EXPIRED]
    assert bank.made == {}
    with pytest.raises(ApprovalClosed, match="expired"):
        await decide(second, asked[0], allowed=True)


async def _is_left(orchestrator: Orchestrator, key: RunKey) -> bool:
    return (await orchestrator.runs.get(key)).status is not RunStatus.RUNNING


async def test_question_that_has_expired_is_neither_listed_nor_decided_before_its_run_is_woken(
    start_orchestrator: Start,
) -> None:
    orchestrator = await start_orchestrator(worker=Pays(Bank()))
    key, asked = await parked(orchestrator)
    orchestrator.runs.approvals._now = lambda: now() + timedelta(hours=1)
    assert await listed(orchestrator) == []
    with pytest.raises(ApprovalClosed, match="expired"):
        await decide(orchestrator, asked, allowed=True)
    assert await _has_status(orchestrator, key, RunStatus.WAITING)


async def test_everybody_sees_what_concerns_them(start_orchestrator: Start) -> None:
    anns = await start_orchestrator(worker=Pays(Bank(), may_decide=("bob",)))
    key, asked = await parked(anns)
    other = await start_orchestrator(worker=Pays(Bank()))
    own, _ = await parked(other, Principal("acme", "carol"))
    await until(lambda: is_listed(other, key), seconds=LONG_S)
    seen = {who.subject: [(q.run_id, q.yours) for q in await listed(other, who)] for who in (ANN, BOB, OPERATOR)}
    assert seen == {
        "ann": [(key.run_id, False)],
        "bob": [(key.run_id, True)],
        "olga": [(key.run_id, False), (own.run_id, False)],
    }
    assert await listed(other, Principal("other", "ann", frozenset({"operator"}))) == []
    assert (await decide(other, asked, allowed=True, by=BOB)).approval.decided_by == "bob"


async def test_listing_is_paged_oldest_first_and_reads_no_more_runs_than_it_shows(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(worker=Pays(Bank(), amounts=(1, 2)))
    keys = [(await parked(orchestrator))[0] for _ in range(4)]
    read: list[RunKey] = []
    get = orchestrator.runs._store.get

    async def counted(key: RunKey) -> object:
        read.append(key)
        return await get(key)

    orchestrator.runs._store.get = counted  # type: ignore[method-assign,assignment]
    pages, token = [], ""
    while not pages or token:
        read.clear()
        page = await orchestrator.runs.approvals.list(ANN, 1, token)
        pages.append([each.approval.approval_id for each in page.questions])
        assert len(read) <= 2
        token = page.next_page_token
    assert [len(page) for page in pages] == [1] * 8
    ids = [each for page in pages for each in page]
    assert [each[:32] for each in ids] == [key.run_id for key in keys for _ in range(2)]
    assert len(set(ids)) == 8
    with pytest.raises(InvalidRequest):
        await orchestrator.runs.approvals.list(ANN, 1, "nonsense")


async def test_questions_that_are_too_long_for_the_record_are_read_from_the_log(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(worker=Pays(Bank(), amounts=(1, 2), may_decide=["x" * 480_000]))
    key, _ = await parked(orchestrator)
    assert (await orchestrator.runs.get(key)).pending == ()
    assert len(await listed(orchestrator)) == 2


async def test_deleted_run_can_no_longer_be_decided_and_is_gone_with_its_question(start_orchestrator: Start) -> None:
    bank = Bank()
    orchestrator = await start_orchestrator(worker=Pays(bank))
    key, asked = await parked(orchestrator)
    with use_principal(ANN):
        await orchestrator.deletion.delete(key)
    assert await listed(orchestrator) == []
    with pytest.raises(ApprovalClosed):
        await decide(orchestrator, asked, allowed=True)
    await until(lambda: _has_status(orchestrator, key, RunStatus.CANCELLED), seconds=LONG_S)
    orchestrator.consume()
    await until(lambda: _is_gone(orchestrator), seconds=LONG_S)
    assert await orchestrator.runs.ownership._markers.read(key) is None
    with pytest.raises(ApprovalNotFound):
        await decide(orchestrator, asked, allowed=True)
    assert bank.made == {}


async def _is_gone(orchestrator: Orchestrator) -> bool:
    return not (await orchestrator.runs.list("acme", 10, "")).runs


async def test_run_that_waits_when_nobody_can_take_it_is_cut_off(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(worker=Pays(Bank()))
    key, asked = await parked(orchestrator)
    request = ForgetRequest(Source.run(key.run_id), now() - CUT_OFF_AFTER)
    assert await orchestrator.forgetting.forget("acme", request) is None
    assert await _is_gone(orchestrator)
    assert await listed(orchestrator) == []
    with pytest.raises(ApprovalNotFound):
        await decide(orchestrator, asked, allowed=True)


async def test_wish_to_cancel_that_outlives_its_orchestrator_ends_the_waiting_run(start_orchestrator: Start) -> None:
    first = await start_orchestrator(worker=Pays(Bank()))
    key, _ = await parked(first)
    await first.stop()
    await first.runs._store.request_cancel(key)  # by one that died before it could wake the run
    second = await start_orchestrator(worker=Pays(Bank()))
    assert status_of(await collect(second.runs.attach(key, 0))) is RunStatus.CANCELLED


async def test_waiting_run_that_quotes_a_deleted_document_is_cancelled_and_forgotten(start_orchestrator: Start) -> None:
    bank = Bank()
    orchestrator = await start_orchestrator(worker=Pays(bank))
    key, asked = await parked(orchestrator)
    document = Source.document("d1")
    await orchestrator.forgetting._sources.depend((await orchestrator.runs.get(key)).dependent, [document])
    request = ForgetRequest(document, now())
    assert await orchestrator.forgetting.forget("acme", request) == RECHECK_S
    assert await listed(orchestrator) == []
    await until(lambda: _has_status(orchestrator, key, RunStatus.CANCELLED), seconds=LONG_S)
    assert await orchestrator.forgetting.forget("acme", request) is None
    record = await orchestrator.runs.get(key)
    assert (record.forgotten_at is not None, record.pending) == (True, ())
    with pytest.raises(ApprovalNotFound):
        await decide(orchestrator, asked, allowed=True)
    assert bank.made == {}


async def test_approvals_over_the_wire(start_orchestrator: Start, jetstream: Nats) -> None:
    bank = Bank()
    orchestrator = await start_orchestrator(worker=Pays(bank))
    async with (
        following_switch(jetstream, Script(), catalog("a/m")) as switch,
        serving(servicer(orchestrator, switch)) as stub,
    ):
        key, asked = await parked(orchestrator, Principal("local", "tester"))
        (found,) = (await stub.ListApprovals(pb.ListApprovalsRequest(), timeout=60)).approvals
        assert (found.run_id, found.subject, found.yours_to_decide) == (key.run_id, "tester", True)
        assert found.approval.approval_id == asked.approval_id
        assert found.approval.arguments["amount"] == 3
        request = pb.ResolveApprovalRequest(approval_id=asked.approval_id, arguments_hash=asked.arguments_hash)
        with pytest.raises(InvalidArgument, match="allowed or denied"):
            await stub.ResolveApproval(request, timeout=60)
        request.decision = pb.APPROVAL_DECISION_ALLOWED
        for _ in range(2):
            decided = (await stub.ResolveApproval(request, timeout=60)).approval
            assert decided.approval.decision == pb.APPROVAL_DECISION_ALLOWED
        request.decision = pb.APPROVAL_DECISION_DENIED
        with pytest.raises(FailedPrecondition) as closed:
            await stub.ResolveApproval(request, timeout=60)
        assert (closed.value.reason, closed.value.metadata["decision"]) == ("APPROVAL_CLOSED", "allowed")
        request.approval_id = "nothing"
        with pytest.raises(NotFound) as missing:
            await stub.ResolveApproval(request, timeout=60)
        assert missing.value.reason == "APPROVAL_NOT_FOUND"


async def test_run_whose_marker_was_made_from_its_record_waits_as_before(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    first = await start_orchestrator(worker=Pays(Bank()))
    key, asked = await parked(first)
    await first.stop()
    active = await KeyValue.open(jetstream, "RUN_ACTIVE")
    await active.put(key.name, record_pb2.RunMarker(begun=True, parked=True).SerializeToString())  # as a restore does
    second = await start_orchestrator(worker=Pays(Bank()))
    await until(lambda: is_listed(second, key), seconds=LONG_S)
    assert [each.approval for each in await listed(second)] == [asked]
    await decide(second, asked, allowed=True)
    assert status_of(await collect(second.runs.attach(key, 0))) is RunStatus.COMPLETED


async def test_who_started_the_run_sees_it_go_on_elsewhere(start_orchestrator: Start) -> None:
    first, second = await start_orchestrator(worker=Pays(Bank())), await start_orchestrator(worker=Pays(Bank()))
    key, events = await first.runs.start(ANN, QUESTION)
    seen = asyncio.create_task(collect(events))
    await until(lambda: is_listed(second, key), seconds=LONG_S)
    first.runs.drain()
    (question,) = await listed(second)
    await decide(second, question.approval, allowed=True)
    told = await seen
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    assert status_of(told) is RunStatus.COMPLETED
