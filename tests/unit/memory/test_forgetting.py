"""Deleted threads and forgotten answers: nothing of them stays, whatever happens at the same time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kit.jetstream import KeyValue, Nats
from services.memory.errors import ThreadDamaged, ThreadNotFound
from services.memory.facts.facts import Facts
from services.memory.facts.learning import Learner
from services.memory.facts.models import Turn
from services.memory.facts.turns import Turns
from services.memory.message_items import message_items
from services.memory.models import Message, Owner, Role
from services.memory.ports import ThreadStore
from services.memory.threads import FORGOTTEN_TEXT, LATE_APPENDS_END_AFTER, Threads
from tests.unit.memory.fakes import FakeDeletions, FakeFactStore, FakeForgotten, FakeIndex, MemoryThreadStore

ANNA, BERT = Owner("local", "anna@example.org"), Owner("local", "bert")
START = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = Message("r1-question", Role.USER, "How much leave?", "r1", START)
ANSWER = Message("r1-answer", Role.ASSISTANT, "Thirty days. [1]", "r1", START)


class Room:
    """The threads over one store, and a clock."""

    def __init__(self, store: ThreadStore) -> None:
        self.store = store
        self.deletions = FakeDeletions()
        self.now = START
        self.index = FakeIndex()
        self.threads = Threads(store, self.deletions, self.index, now=lambda: self.now, new_thread_id=lambda: "0" * 12)

    async def thread(self, *messages: Message) -> str:
        thread_id = (await self.threads.create(ANNA, "")).thread_id
        await self.threads.append(ANNA, thread_id, messages)
        return thread_id

    async def is_empty(self, thread_id: str) -> bool:
        return (
            await self.store.get_head(ANNA, thread_id) is None
            and await self.store.read(ANNA, thread_id, 1, 9) == []
            and not await self.store.is_marked(ANNA, thread_id, ANSWER.message_id)
        )


@pytest.fixture(params=["fake_store", "nats_store"])
def room(request: pytest.FixtureRequest) -> Room:
    return Room(request.getfixturevalue(request.param))


async def test_deletion_is_queued_before_anything_goes_and_done_when_the_call_returns() -> None:
    store = MemoryThreadStore()
    room = Room(store)
    thread_id = await room.thread(QUESTION, ANSWER)

    async def is_queued() -> None:
        assert [each.thread_id for each in room.deletions.queued] == [thread_id]

    store.before["delete_head"] = is_queued
    await room.threads.delete(ANNA, thread_id)
    assert await room.is_empty(thread_id)


@pytest.mark.parametrize("killed_before", ["delete_head", "purge_messages", "forget_runs"])
async def test_deletion_killed_at_any_step_is_finished_from_the_queue(killed_before: str) -> None:
    store = MemoryThreadStore()
    room = Room(store)
    thread_id = await room.thread(QUESTION, ANSWER)
    store.dies_in, room.deletions.dies = killed_before, killed_before == "forget_runs"
    if killed_before == "forget_runs":
        await room.threads.delete(ANNA, thread_id)
    else:
        with pytest.raises(ConnectionError):
            await room.threads.delete(ANNA, thread_id)
    (deletion,) = room.deletions.queued
    if room.deletions.dies:
        with pytest.raises(ConnectionError):
            await room.threads.finish_deletion(deletion)
    assert await room.threads.finish_deletion(deletion) == LATE_APPENDS_END_AFTER.total_seconds()
    assert await room.is_empty(thread_id)
    assert room.deletions.runs_forgotten == [deletion]


async def test_clock_that_is_set_back_puts_the_last_look_off_by_no_more_than_it_waits_anyway(room: Room) -> None:
    await room.threads.delete(ANNA, await room.thread(QUESTION))
    (deletion,) = room.deletions.queued
    room.now -= timedelta(days=1)
    assert await room.threads.finish_deletion(deletion) == LATE_APPENDS_END_AFTER.total_seconds()


@pytest.mark.parametrize("deleted_before", ["is_marked", "take_position", "mark", "get_head", "update_head"])
async def test_append_that_meets_the_deletion_leaves_nothing_behind(deleted_before: str) -> None:
    store = MemoryThreadStore()
    room = Room(store)
    thread_id = await room.thread(QUESTION)
    append = room.threads.append(ANNA, thread_id, [ANSWER])

    async def meanwhile() -> None:
        await room.threads.delete(ANNA, thread_id)

    if deleted_before == "get_head":  # the second one: after the message was written

        async def after_writing() -> None:
            store.before["get_head"] = meanwhile

        store.before["mark"] = after_writing
    else:
        store.before[deleted_before] = meanwhile
    with pytest.raises(ThreadNotFound):
        await append
    assert await room.is_empty(thread_id)


async def test_appends_and_a_deletion_at_once_leave_nothing_behind(room: Room) -> None:
    thread_id = await room.thread(QUESTION)
    writers = [
        room.threads.append(ANNA, thread_id, [Message(f"m{n}", Role.USER, "late", "", START)]) for n in range(20)
    ]
    await asyncio.gather(*writers, room.threads.delete(ANNA, thread_id), return_exceptions=True)
    assert await room.is_empty(thread_id)


async def test_append_that_is_killed_after_the_deletion_is_cleaned_up_by_the_second_look() -> None:
    store = MemoryThreadStore()
    room = Room(store)
    thread_id = await room.thread(QUESTION)

    async def meanwhile() -> None:
        await room.threads.delete(ANNA, thread_id)
        (deletion,) = room.deletions.queued
        assert await room.threads.finish_deletion(deletion) is not None

    store.before["take_position"] = meanwhile
    store.dies_in = "mark"
    with pytest.raises(ConnectionError):
        await room.threads.append(ANNA, thread_id, [ANSWER])
    assert not await room.is_empty(thread_id)
    room.now += LATE_APPENDS_END_AFTER
    assert await room.threads.finish_deletion(room.deletions.queued[0]) is None
    assert await room.is_empty(thread_id)


async def test_forgotten_answer_says_so_and_the_question_stays(room: Room) -> None:
    other = Message("r2-answer", Role.ASSISTANT, "In May.", "r2", START)
    thread_id = await room.thread(QUESTION, ANSWER, other)
    for _ in range(2):
        await room.threads.forget_answer(ANNA, thread_id, "r1")
    history = await room.threads.history(ANNA, thread_id, 0)
    assert [(message.text, message.forgotten) for message in history] == [
        (QUESTION.text, False),
        (FORGOTTEN_TEXT, True),
        (other.text, False),
    ]
    await room.threads.append(ANNA, thread_id, [ANSWER])
    assert (await room.threads.history(ANNA, thread_id, 0))[1].text == FORGOTTEN_TEXT


async def test_forgotten_answer_goes_from_the_index_and_from_the_message_that_was_found_by_it(room: Room) -> None:
    then = [Message(f"r2-{each}", Role.USER, f"And {each}?", "r2", START) for each in ("then", "now")]
    thread_id = await room.thread(QUESTION, ANSWER, *then)
    appended = await room.threads.as_appended(ANNA, thread_id)
    await room.index.put(ANNA, message_items(thread_id, appended, lambda message: message != then[1]))
    assert "Thirty days" in room.index.items[ANNA, f"{thread_id}/r2-then"].context
    await room.threads.forget_answer(ANNA, thread_id, "r1")
    assert "Thirty days" not in str(room.index.items)
    assert [item.text for item in room.index.items.values()] == [f"User: {QUESTION.text}", f"User: {then[0].text}"]


async def test_answer_that_is_forgotten_while_its_turn_and_the_next_are_indexed_stays_in_neither(room: Room) -> None:
    thread_id = await room.thread(QUESTION, ANSWER, Message("r2-question", Role.USER, "And then?", "r2", START))
    learner = Learner(FakeFactStore(), now=lambda: START)
    facts = Facts(FakeFactStore(), learner, room.index, FakeForgotten(), now=lambda: START)
    turns = Turns(facts, learner, room.index, room.threads)

    async def forget() -> None:
        await room.threads.forget_answer(ANNA, thread_id, "r1")

    await turns.learn(ANNA, Turn("r1", thread_id, QUESTION.text, START), None)
    assert "Thirty days" in str(room.index.items)
    room.index.before_put = forget  # between reading the thread and writing what was read
    await turns.learn(ANNA, Turn("r2", thread_id, "And then?", START), None)
    assert "Thirty days" not in str(room.index.items)
    assert len(room.index.items) == 2


async def test_answers_are_forgotten_for_their_owner_and_run_only(room: Room) -> None:
    thread_id = await room.thread(QUESTION, ANSWER)
    await room.threads.forget_answer(BERT, thread_id, "r1")
    await room.threads.forget_answer(ANNA, thread_id, "r9")
    await room.threads.forget_answer(ANNA, thread_id, "")
    await room.threads.forget_answer(ANNA, "*", "r1")
    await room.threads.forget_answer(ANNA, "f" * 12, "r1")
    assert await room.threads.history(ANNA, thread_id, 0) == [QUESTION, ANSWER]


class TestDamage:
    """Records that cannot be read, and those of a newer version."""

    @pytest.fixture
    async def messages(self, jetstream: Nats) -> KeyValue:
        return await KeyValue.open(jetstream, "THREAD_MESSAGES")

    @pytest.fixture
    async def heads(self, jetstream: Nats) -> KeyValue:
        return await KeyValue.open(jetstream, "THREADS")

    @pytest.fixture
    def room(self, nats_store: ThreadStore) -> Room:
        return Room(nats_store)

    async def key_of(self, bucket: KeyValue, ending: str) -> str:
        (key,) = [entry.key async for entry in bucket.entries(">") if entry.key.endswith(ending)]
        return key

    async def test_head_that_cannot_be_read_is_left_out_of_the_list(self, room: Room, heads: KeyValue) -> None:
        thread_id = await room.thread(QUESTION)
        whole = await self.key_of(heads, thread_id)
        for number, torn in enumerate((b"{", b"", b"[]", b"\xff", b"{}"), start=1):
            await heads.put(f"{whole[:-12]}{number:012x}", torn)
        page = await room.threads.page(ANNA, 0, "")
        assert [thread.thread_id for thread in page.threads] == [thread_id]
        with pytest.raises(ThreadDamaged, match="delete it"):
            await room.threads.get(ANNA, f"{1:012x}")
        await room.threads.delete(ANNA, f"{1:012x}")
        with pytest.raises(ThreadNotFound):
            await room.threads.get(ANNA, f"{1:012x}")

    @pytest.mark.parametrize("torn", [b"", b"{", b"null", b'{"role": "user"}', b"\xfe"])
    async def test_history_goes_on_around_a_message_that_cannot_be_read(
        self, room: Room, messages: KeyValue, torn: bytes
    ) -> None:
        thread_id = await room.thread(QUESTION, ANSWER)
        await messages.put(await self.key_of(messages, "at.1"), torn)
        assert await room.threads.history(ANNA, thread_id, 0) == [ANSWER]
        await room.threads.forget_answer(ANNA, thread_id, "r1")
        later = Message("r2-question", Role.USER, "And in May?", "r2", START)
        await room.threads.append(ANNA, thread_id, [later])
        history = await room.threads.history(ANNA, thread_id, 0)
        assert [message.text for message in history] == [FORGOTTEN_TEXT, later.text]

    async def test_append_passes_a_place_that_holds_what_cannot_be_read(self, room: Room, messages: KeyValue) -> None:
        thread_id = await room.thread(QUESTION)
        place = await self.key_of(messages, "at.1")
        await messages.put(place.removesuffix("1") + "2", b"torn")
        await room.threads.append(ANNA, thread_id, [ANSWER])
        assert await room.threads.history(ANNA, thread_id, 0) == [QUESTION, ANSWER]

    async def test_what_a_newer_version_wrote_is_shown_and_kept(self, room: Room, messages: KeyValue) -> None:
        thread_id = await room.thread(QUESTION, ANSWER)
        newer = (
            b'{"message_id": "r1-answer", "role": "critic", "text": "Hm.", "run_id": "r1", "at": '
            b'"2026-01-01T00:00:00+00:00", "mood": "calm"}'
        )
        place = await self.key_of(messages, "at.2")
        await messages.put(place, newer)
        shown = (await room.threads.history(ANNA, thread_id, 0))[1]
        assert (shown.role, shown.text, shown.forgotten) == (Role.UNKNOWN, "Hm.", False)
        await room.threads.forget_answer(ANNA, thread_id, "r1")
        entry = await messages.get(place)
        assert entry is not None
        assert b'"mood": "calm"' in (entry.value or b"")
        assert b"Hm." not in (entry.value or b"")
