"""Threads over a store, fake and real: the same promises."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kit.errors import Aborted, AlreadyExists
from services.memory.errors import BadMessage, BadPageToken, BadTitle, ThreadNotFound
from services.memory.models import Message, Owner, Role, Thread
from services.memory.ports import ThreadStore
from services.memory.threads import Threads
from tests.unit.memory.fakes import FakeDeletions, FakeIndex, MemoryThreadStore

ANNA, BERT = Owner("local", "anna@example.org"), Owner("local", "bert")
START = datetime(2026, 1, 1, tzinfo=UTC)


def _message(message_id: str, role: Role = Role.USER, text: str = "", at: datetime = START) -> Message:
    return Message(message_id, role, text or f"text of {message_id}", "run1", at)


@pytest.fixture(params=["fake_store", "nats_store"])
def store(request: pytest.FixtureRequest) -> ThreadStore:
    made: ThreadStore = request.getfixturevalue(request.param)
    return made


def _threads(store: ThreadStore, deletions: FakeDeletions | None = None) -> Threads:
    clock = itertools.count()
    ids = itertools.count(1)
    return Threads(
        store,
        deletions or FakeDeletions(),
        FakeIndex(),
        now=lambda: START + timedelta(seconds=next(clock)),
        new_thread_id=lambda: f"{next(ids):012x}",
    )


async def test_messages_of_two_runs_at_once_stand_in_turns_in_the_order_of_asking(store: ThreadStore) -> None:
    threads = _threads(store)
    thread = await threads.create(ANNA, "")

    def turn(run_id: str, asked_at: datetime) -> tuple[Message, Message]:
        question = Message(f"{run_id}-q", Role.USER, "?", run_id, asked_at)
        return question, Message(f"{run_id}-a", Role.ASSISTANT, "!", run_id, START + timedelta(hours=1))

    slow, fast = turn("slow", START), turn("fast", START + timedelta(seconds=1))
    for message in (fast[0], slow[0], fast[1], slow[1]):  # the worst that two writers can do to each other
        await threads.append(ANNA, thread.thread_id, [message])
    history = await threads.history(ANNA, thread.thread_id, 0)
    assert [message.message_id for message in history] == ["slow-q", "slow-a", "fast-q", "fast-a"]
    last = await threads.history(ANNA, thread.thread_id, 2)
    assert [message.message_id for message in last] == ["fast-q", "fast-a"]


async def test_citations_are_kept_with_their_message_and_go_with_its_text(store: ThreadStore) -> None:
    threads = _threads(store)
    thread = await threads.create(ANNA, "")
    citation = {"number": 1, "document_id": "d1", "text": "quoted"}
    judged = {
        "support_status": "supported",
        "method": "extractive",
        "answer_confidence": 0.9,
        "answer_status": "likely",
    }
    answer = replace(_message("a", Role.ASSISTANT), citations=(citation,), **judged)
    await threads.append(ANNA, thread.thread_id, [answer])
    assert await threads.history(ANNA, thread.thread_id, 1) == [answer]
    await threads.forget_answer(ANNA, thread.thread_id, "run1")
    (forgotten,) = await threads.history(ANNA, thread.thread_id, 1)
    assert (forgotten.forgotten, forgotten.citations, forgotten.support_status) == (True, (), "")
    assert (forgotten.method, forgotten.answer_confidence, forgotten.answer_status) == ("", None, "")
    with pytest.raises(BadMessage, match="Leave out texts"):
        await threads.append(ANNA, thread.thread_id, [replace(answer, citations=({"text": "x" * 500_000},))])


async def test_thread_made_twice_under_one_id_is_one_thread(store: ThreadStore) -> None:
    threads = _threads(store)
    first = await threads.create(ANNA, "mine", "a" * 12)
    await threads.rename(ANNA, first.thread_id, "renamed")
    assert (await threads.create(ANNA, "mine", "a" * 12)).title == "renamed"


async def test_store_refuses_a_second_head_and_a_stale_update(store: ThreadStore) -> None:
    thread = Thread("0" * 12, "t", START, START, 0)
    await store.create_head(ANNA, thread)
    with pytest.raises(AlreadyExists):
        await store.create_head(ANNA, thread)
    stored = await store.get_head(ANNA, thread.thread_id)
    assert stored is not None
    await store.update_head(ANNA, thread, stored.revision)
    with pytest.raises(Aborted):
        await store.update_head(ANNA, thread, stored.revision)
    await store.delete_head(ANNA, thread.thread_id)
    await store.delete_head(ANNA, thread.thread_id)
    assert await store.get_head(ANNA, thread.thread_id) is None


async def test_store_gives_a_position_to_one_message_only(store: ThreadStore) -> None:
    assert await store.take_position(ANNA, "0" * 12, 1, _message("a")) is None
    assert await store.take_position(ANNA, "0" * 12, 1, _message("b")) == _message("a")
    await store.purge_messages(ANNA, "0" * 12)
    assert await store.take_position(ANNA, "0" * 12, 1, _message("b")) is None


async def test_messages_keep_their_order_and_history_is_the_last_of_them(store: ThreadStore) -> None:
    threads = _threads(store)
    thread = await threads.create(ANNA, "")
    await threads.append(ANNA, thread.thread_id, [_message(f"m{number}") for number in range(5)])
    head = await threads.append(ANNA, thread.thread_id, [_message("m5", Role.ASSISTANT)])
    assert head.message_count == 6
    history = await threads.history(ANNA, thread.thread_id, 3)
    assert [message.message_id for message in history] == ["m3", "m4", "m5"]
    assert history[-1] == _message("m5", Role.ASSISTANT)
    assert len(await threads.history(ANNA, thread.thread_id, 0)) == 6


async def test_a_message_whose_id_is_there_is_not_appended_again(store: ThreadStore) -> None:
    threads = _threads(store)
    thread = await threads.create(ANNA, "")
    await threads.append(ANNA, thread.thread_id, [_message("a"), _message("b")])
    head = await threads.append(ANNA, thread.thread_id, [_message("b"), _message("a"), _message("c")])
    assert head.message_count == 3
    assert [message.message_id for message in await threads.history(ANNA, thread.thread_id, 0)] == ["a", "b", "c"]


async def test_concurrent_appends_lose_nothing_and_double_nothing(store: ThreadStore) -> None:
    threads = _threads(store)
    thread = await threads.create(ANNA, "")
    async with asyncio.TaskGroup() as group:
        for writer in range(8):
            for _ in range(2):  # each writer's call comes twice, as after a lost answer
                group.create_task(
                    threads.append(ANNA, thread.thread_id, [_message(f"w{writer}-{number}") for number in range(3)])
                )
    ids = [message.message_id for message in await threads.history(ANNA, thread.thread_id, 0)]
    assert sorted(ids) == sorted(f"w{writer}-{number}" for writer in range(8) for number in range(3))
    for writer in range(8):
        own = [message_id for message_id in ids if message_id.startswith(f"w{writer}-")]
        assert own == sorted(own)
    assert (await threads.get(ANNA, thread.thread_id)).message_count == 24


@pytest.mark.parametrize("killed_before", ["take_position", "mark", "get_head", "update_head"])
async def test_an_append_that_was_killed_half_way_is_completed_by_its_repetition(killed_before: str) -> None:
    store = MemoryThreadStore()
    threads = _threads(store)
    thread = await threads.create(ANNA, "")
    store.dies_in = killed_before
    with pytest.raises(ConnectionError):
        await threads.append(ANNA, thread.thread_id, [_message("a")])
    await threads.append(ANNA, thread.thread_id, [_message("b")])
    await threads.append(ANNA, thread.thread_id, [_message("a")])
    ids = [message.message_id for message in await threads.history(ANNA, thread.thread_id, 0)]
    assert sorted(ids) == ["a", "b"]


async def test_another_subject_does_not_find_the_thread(store: ThreadStore) -> None:
    threads = _threads(store)
    thread = await threads.create(ANNA, "mine")
    for coroutine in (
        threads.get(BERT, thread.thread_id),
        threads.get(Owner("other", ANNA.subject), thread.thread_id),
        threads.history(BERT, thread.thread_id, 0),
        threads.append(BERT, thread.thread_id, [_message("a")]),
        threads.rename(BERT, thread.thread_id, "his"),
        threads.get(ANNA, "../../etc"),
        threads.get(ANNA, "*"),
    ):
        with pytest.raises(ThreadNotFound):
            await coroutine
    await threads.delete(BERT, thread.thread_id)
    assert (await threads.get(ANNA, thread.thread_id)).title == "mine"
    assert (await threads.page(BERT, 0, "")).threads == []


async def test_threads_are_listed_last_used_first_in_pages(store: ThreadStore) -> None:
    threads = _threads(store)
    made = [await threads.create(ANNA, f"t{number}") for number in range(5)]
    await threads.append(ANNA, made[1].thread_id, [_message("a", at=START + timedelta(hours=1))])
    first = await threads.page(ANNA, 2, "")
    second = await threads.page(ANNA, 2, first.next_page_token)
    third = await threads.page(ANNA, 2, second.next_page_token)
    titles = [thread.title for page in (first, second, third) for thread in page.threads]
    assert titles == ["t1", "t4", "t3", "t2", "t0"]
    assert third.next_page_token == ""


async def test_deleting_removes_thread_and_messages_and_may_be_repeated(store: ThreadStore) -> None:
    threads = _threads(store)
    thread = await threads.create(ANNA, "")
    await threads.append(ANNA, thread.thread_id, [_message("a")])
    await threads.delete(ANNA, thread.thread_id)
    await threads.delete(ANNA, thread.thread_id)
    with pytest.raises(ThreadNotFound):
        await threads.history(ANNA, thread.thread_id, 0)
    assert await store.read(ANNA, thread.thread_id, 1, 1) == []
    assert not await store.is_marked(ANNA, thread.thread_id, "a")


async def test_the_first_question_names_the_thread_until_it_is_renamed() -> None:
    threads = _threads(MemoryThreadStore())
    thread = await threads.create(ANNA, "")
    question = "How  much\nannual leave does " + "an employee of the company " * 5 + "get?"
    await threads.append(
        ANNA, thread.thread_id, [_message("a", Role.ASSISTANT, "Hello."), _message("b", text=question)]
    )
    title = (await threads.get(ANNA, thread.thread_id)).title
    assert title.startswith("How much annual leave does an employee")
    assert title.endswith("…")
    assert len(title) <= 80
    await threads.rename(ANNA, thread.thread_id, "Leave")
    await threads.append(ANNA, thread.thread_id, [_message("c", text="And in May?")])
    assert (await threads.get(ANNA, thread.thread_id)).title == "Leave"


async def test_what_cannot_be_stored_is_refused() -> None:
    threads = _threads(MemoryThreadStore())
    thread = await threads.create(ANNA, "")
    for message in (_message(""), _message("x" * 129), _message("a", text="x" * 100_001)):
        with pytest.raises(BadMessage):
            await threads.append(ANNA, thread.thread_id, [message])
    for title in ("", "  ", "x" * 201):
        with pytest.raises(BadTitle):
            await threads.rename(ANNA, thread.thread_id, title)
    with pytest.raises(BadPageToken):
        await threads.page(ANNA, 0, "no token of ours")
