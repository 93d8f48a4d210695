"""Records of runs: what they hold, across versions, and how little a listing reads."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from groundwork.orchestrator.v1 import record_pb2 as pb

from kit.access.principal import Principal
from kit.jetstream import KeyValue, Nats
from kit.stores.forgetting import ForgetRequest, Source
from services.orchestrator.adapters.jetstream import records
from services.orchestrator.adapters.jetstream.run_store import KeyValueRunStore
from services.orchestrator.log.events import (
    Answer,
    Budgets,
    Citation,
    RunError,
    RunMode,
    RunStatus,
    SupportStatus,
    Usage,
)
from services.orchestrator.models import HistoryMessage, Outcome, RunKey, RunRecord, RunRequest
from services.orchestrator.runs.forgetting import CUT_OFF_AFTER, SETTLE
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect, now, without_ids
from tests.service.orchestrator.test_runs import GatedModel, until

Start = Callable[..., Awaitable[Orchestrator]]
KEY = RunKey("acme", "a" * 32)
REQUEST = RunRequest(
    RunMode.GROUNDED,
    "When?",
    ("c1", "c2"),
    "t1",
    "auto",
    ("d1",),
    Budgets(2.5, 100),
    7,
    history=(HistoryMessage("user", "Hi"),),
)
ANSWER = Answer(
    "It was built in 1889. [1]",
    (Citation(1, "d1", "tower.txt", "c1", 3, "The tower was built in 1889.", 4, 9, heading_path=("History",)),),
    SupportStatus.SUPPORTED,
    "model",
    {"kind": "table"},
)
OUTCOME = Outcome(ANSWER, Usage(10, 20, 1.5, 0.25, {"answer": 1.0}, "m"), RunError("INTERNAL", "X", "broke", False))
FULL = RunRecord(
    KEY,
    "ann",
    REQUEST,
    RunStatus.COMPLETED,
    now(),
    now() + timedelta(seconds=2),
    traceparent="00-1-2-01",
    scopes=frozenset({"operator", "tools:call"}),
    outcome=OUTCOME,
)
_NEWER_FIELD = b"\xfa\x3f\x02hi"


@pytest.fixture
async def store(jetstream: Nats) -> KeyValueRunStore:
    return await KeyValueRunStore.open(jetstream, retention_days=1)


@pytest.fixture
async def bucket(store: KeyValueRunStore, jetstream: Nats) -> KeyValue:
    return await KeyValue.open(jetstream, "RUN_RECORDS", ttl_s=86_400.0)


async def ended(orchestrator: Orchestrator) -> RunKey:
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await collect(events)

    async def is_finished() -> bool:
        return (await orchestrator.runs.get(key)).finished_at is not None

    await until(is_finished)
    orchestrator.forgetting._now = lambda: now() + SETTLE
    return key


def test_record_comes_back_as_it_was() -> None:
    assert records.decode(KEY, records.encode(FULL)) == FULL


def test_record_is_told_from_one_of_an_older_release_by_its_first_byte() -> None:
    assert not records.encode(FULL).startswith(b"{")


async def test_record_of_a_finished_run_has_its_answer_and_what_it_cost(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    outcome = (await orchestrator.runs.get(await ended(orchestrator))).outcome
    assert outcome.answer is not None
    assert "1889" in outcome.answer.text
    assert outcome.answer.citations[0].document_id == "d1"
    assert outcome.answer.support_status is SupportStatus.SUPPORTED
    assert outcome.usage is not None
    assert outcome.error is None


async def test_what_a_newer_version_added_survives_every_change(store: KeyValueRunStore, bucket: KeyValue) -> None:
    running = replace(FULL, status=RunStatus.RUNNING, finished_at=None, outcome=Outcome())
    await bucket.put(KEY.name, records.encode(running) + _NEWER_FIELD)
    await store.set_status(replace(running, status=RunStatus.WAITING))
    await store.finish(FULL)
    await store.drop_outcome(KEY)
    await store.forget(KEY, now())
    entry = await bucket.get(KEY.name)
    assert entry is not None
    assert (entry.value or b"").endswith(_NEWER_FIELD)
    found = await store.get(KEY)
    assert found is not None
    asked = replace(FULL.request, history=())  # which may have repeated what is forgotten
    assert (found.status, found.request, found.scopes) == (FULL.status, asked, FULL.scopes)


async def test_listing_has_no_answers(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    await ended(orchestrator)
    (run,) = (await orchestrator.runs.list("acme", 10, "")).runs
    assert run.outcome == Outcome()
    assert run.status is RunStatus.COMPLETED


async def test_listing_reads_the_records_of_one_page_only(store: KeyValueRunStore) -> None:
    for number in range(200):
        await store.create(replace(FULL, key=RunKey("acme", f"{number:032x}")))
    read: list[str] = []
    get = store._records.get

    async def counted(key: str) -> object:
        read.append(key)
        return await get(key)

    store._records.get = counted  # type: ignore[method-assign,assignment]
    page = await store.list("acme", 10, "")
    assert [run.key.run_id for run in page.runs] == [f"{number:032x}" for number in range(199, 189, -1)]
    assert len(read) == 64
    rest = await store.list("acme", 1000, page.next_page_token)
    assert len(rest.runs) == 190
    assert rest.next_page_token == ""


async def test_pages_of_ones_own_runs_are_full_though_others_runs_lie_between(store: KeyValueRunStore) -> None:
    for number in range(150):
        subject = "ann" if number % 10 == 0 else "bert"
        await store.create(replace(FULL, key=RunKey("acme", f"{number:032x}"), subject=subject))
    first = await store.list("acme", 7, "", "ann")
    rest = await store.list("acme", 100, first.next_page_token, "ann")
    own = [int(run.key.run_id, 16) for run in [*first.runs, *rest.runs]]
    assert own == list(range(140, -1, -10))


async def test_answer_that_does_not_fit_is_left_to_the_log(store: KeyValueRunStore) -> None:
    running = replace(FULL, status=RunStatus.RUNNING, finished_at=None, outcome=Outcome())
    await store.create(running)
    large = replace(ANSWER, text="x" * 950_000)
    await store.finish(replace(FULL, outcome=Outcome(large, OUTCOME.usage)))
    found = await store.get(KEY)
    assert found is not None
    assert (found.status, found.outcome) == (RunStatus.COMPLETED, Outcome(None, OUTCOME.usage))


async def test_forgotten_document_leaves_the_record(start_orchestrator: Start, bucket: KeyValue) -> None:
    orchestrator = await start_orchestrator()
    key = await ended(orchestrator)
    request = ForgetRequest(Source.document("d1"), orchestrator.forgetting._now())
    assert await orchestrator.forgetting.forget("acme", request) is None
    entry = await bucket.get(key.name)
    assert entry is not None
    assert "1889" not in without_ids(entry.value)
    record = await orchestrator.runs.get(key)
    assert record.outcome.answer is None
    assert record.outcome.usage is not None


async def test_run_that_ends_after_it_was_forgotten_stores_no_answer(
    start_orchestrator: Start, bucket: KeyValue
) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    record = await orchestrator.runs.get(key)
    request = ForgetRequest(Source.document("d1"), now() - CUT_OFF_AFTER)
    assert await orchestrator.forgetting.forget("acme", request) is None
    await orchestrator.runs._store.finish(record.finished(RunStatus.COMPLETED, now(), OUTCOME))
    entry = await bucket.get(key.name)
    assert entry is not None
    assert "1889" not in without_ids(entry.value)
    model.gate.set()
    await collect(events)


async def test_record_without_what_every_record_has_is_damaged(bucket: KeyValue, store: KeyValueRunStore) -> None:
    await bucket.put(KEY.name, pb.RunRecord(subject="ann").SerializeToString())
    assert (await store.list("acme", 10, "")).runs == []


async def test_operator_sees_everybodys_runs_and_others_their_own(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator()
    key = await ended(orchestrator)
    bert, root = Principal("acme", "bert"), Principal("acme", "root", frozenset({"operator"}))
    foreign_root = Principal("other", "root", frozenset({"operator"}))
    seen = {
        who: [run.key for run in (await orchestrator.runs.list_visible(who, 10, "")).runs]
        for who in (ANN, bert, root, foreign_root)
    }
    assert seen == {ANN: [key], bert: [], root: [key], foreign_root: []}
