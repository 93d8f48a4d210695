"""Calls by their id: with an effect they are made once, whatever becomes of who asked."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from groundwork.retriever.v1.retriever_pb2 import Chunk, Hit

from kit.jetstream import KeyValue, Nats
from services.tools.adapters.call_store import KeyValueCallStore
from services.tools.calling.calls import Calls
from services.tools.errors import (
    CallForgotten,
    CallIdMissing,
    CallIdReused,
    CallInDoubt,
    CallNotRecorded,
    InvalidArguments,
)
from services.tools.models import Call, Effect, Passage, Policy, ToolOutcome
from services.tools.ports import CallStore, NotedCall
from tests.unit.tools.fakes import START, MemoryCallStore

HIT = Hit(
    chunk=Chunk(chunk_id="c1", document_id="d1", document_name="a.txt", collection_id="k", text="t", page=2), score=0.5
)
PASSAGE = Passage("c1", "d1", "a.txt", "k", "t", page=2, score=0.5, hit=HIT)
CALL = Call("acme", "send_email", {"to": "ann@example.org"}, "run1/step1")
ONCE, IDEMPOTENT, NONE = (
    Policy(timeout_s=5.0, effect=effect) for effect in (Effect.ONCE, Effect.IDEMPOTENT, Effect.NONE)
)


class Maker:
    """Makes calls on behalf of one process of the service."""

    def __init__(self, store: CallStore) -> None:
        self.now = START
        self.made = 0
        self.dies = False
        self.calls = Calls(store, now=lambda: self.now, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        await asyncio.sleep(0)

    async def make(self) -> ToolOutcome:
        self.made += 1
        if self.dies:
            raise asyncio.CancelledError
        return ToolOutcome(True, 0.1, {"sent": self.made, "to": ["ann"]}, summary="Sent.", passages=(PASSAGE,))

    async def call(self, call: Call = CALL, policy: Policy = ONCE) -> ToolOutcome:
        return await self.calls.once(call, policy, self.make)


@pytest.fixture(params=["fake", "nats"])
async def store(request: pytest.FixtureRequest, jetstream: Nats) -> CallStore:
    return MemoryCallStore() if request.param == "fake" else await KeyValueCallStore.open(jetstream)


@pytest.mark.parametrize("policy", [ONCE, IDEMPOTENT])
async def test_call_asked_for_again_answers_with_what_came_of_it(store: CallStore, policy: Policy) -> None:
    maker, another = Maker(store), Maker(store)
    first = await maker.call(policy=policy)
    assert [await maker.call(policy=policy), await another.call(policy=policy)] == [first, first]
    assert (maker.made, another.made) == (1, 0)


async def test_call_without_effect_is_made_again_and_not_noted(store: CallStore) -> None:
    maker = Maker(store)
    await maker.call(policy=NONE)
    await maker.call(policy=NONE)
    assert maker.made == 2
    assert await store.get("acme", CALL.call_id) is None


async def test_call_with_an_effect_needs_an_id(store: CallStore) -> None:
    maker = Maker(store)
    with pytest.raises(CallIdMissing):
        await maker.call(replace(CALL, call_id=""))
    assert maker.made == 0


async def test_call_id_has_a_bound(store: CallStore) -> None:
    maker = Maker(store)
    with pytest.raises(InvalidArguments, match="at most 200"):
        await maker.call(replace(CALL, call_id="r" * 201))
    assert maker.made == 0


async def test_id_stands_for_one_call(store: CallStore) -> None:
    maker = Maker(store)
    await maker.call()
    with pytest.raises(CallIdReused):
        await maker.call(replace(CALL, arguments={"to": "bob@example.org"}))
    with pytest.raises(CallIdReused):
        await Maker(store).call(replace(CALL, name="other"))
    await maker.call(replace(CALL, tenant_id="umbrella"))
    assert maker.made == 2


async def test_call_whose_maker_died_is_in_doubt_and_never_made_again(store: CallStore) -> None:
    died, another = Maker(store), Maker(store)
    died.dies = True
    with pytest.raises(asyncio.CancelledError):
        await died.call()
    for _ in range(2):
        with pytest.raises(CallInDoubt, match="look whether"):
            await another.call()
    assert another.made == 0


async def test_idempotent_call_whose_maker_died_is_made_again(store: CallStore) -> None:
    died, another = Maker(store), Maker(store)
    died.dies = True
    with pytest.raises(asyncio.CancelledError):
        await died.call(policy=IDEMPOTENT)
    assert (await another.call(policy=IDEMPOTENT)).ok
    assert another.made == 1


async def test_while_another_process_makes_the_call_its_end_is_waited_for(store: CallStore) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> ToolOutcome:
        started.set()
        await go_on.wait()
        return ToolOutcome(True, 1.0, "slow")

    maker, another = Maker(store), Maker(store)
    making = asyncio.create_task(maker.calls.once(CALL, ONCE, slow))
    await started.wait()

    async def release(seconds: float) -> None:
        go_on.set()
        await making

    another.calls = Calls(store, now=lambda: another.now, sleep=release)
    assert (await another.call()).output == "slow"
    assert another.made == 0


async def test_callers_of_one_process_share_the_call_and_it_outlives_them(store: CallStore) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    made = 0

    async def slow() -> ToolOutcome:
        nonlocal made
        made += 1
        started.set()
        await go_on.wait()
        return ToolOutcome(True, 1.0, "slow")

    maker = Maker(store)
    first, second = (asyncio.create_task(maker.calls.once(CALL, ONCE, slow)) for _ in range(2))
    await started.wait()
    first.cancel()
    go_on.set()
    assert (await second).output == "slow"
    await maker.calls.close()
    assert (await Maker(store).call()).output == "slow"
    assert made == 1


async def test_what_cannot_be_noted_first_is_not_done() -> None:
    store = MemoryCallStore()
    store.down = True
    maker = Maker(store)
    with pytest.raises(CallNotRecorded, match="try again"):
        await maker.call()
    assert maker.made == 0


async def test_end_that_is_not_taken_at_first_is_noted_again() -> None:
    store = MemoryCallStore()
    store.ends_lost = 3
    first = await Maker(store).call()
    assert await Maker(store).call() == first


async def test_call_whose_end_could_not_be_noted_is_answered_and_in_doubt_from_then_on() -> None:
    store = MemoryCallStore()
    store.ends_lost = 99
    maker = Maker(store)
    assert (await maker.call()).ok
    with pytest.raises(CallInDoubt):
        await maker.call()
    assert maker.made == 1


async def test_repeat_answers_with_summary_and_passages_and_their_hits(store: CallStore) -> None:
    first = await Maker(store).call()
    again = await Maker(store).call()
    assert (again.summary, again.passages, again.passages[0].hit) == ("Sent.", (PASSAGE,), HIT)
    assert again == first


@pytest.mark.parametrize("policy", [ONCE, IDEMPOTENT])
async def test_what_came_of_the_calls_of_a_deleted_run_is_erased(store: CallStore, policy: Policy) -> None:
    maker = Maker(store)
    await maker.call(policy=policy)
    await maker.call(replace(CALL, call_id="run1/step2"), policy)
    others = [replace(CALL, call_id="run10/step1"), replace(CALL, tenant_id="umbrella")]
    kept = [await maker.call(call, policy) for call in others]
    await maker.calls.forget("acme", "run1")
    await maker.calls.forget("acme", "run1")
    for call_id in ("run1/step1", "run1/step2", "run1/step3"):
        with pytest.raises(CallForgotten, match="deleted"):
            await maker.call(replace(CALL, call_id=call_id), policy)
    assert maker.made == 4
    noted = await store.get("acme", "run1/step1")
    assert noted is not None
    assert (noted.outcome, bool(noted.fingerprint)) == (None, True)
    assert [await maker.call(call, policy) for call in others] == kept


async def test_call_under_way_when_its_run_is_deleted_leaves_no_outcome(store: CallStore) -> None:
    maker = Maker(store)

    async def deleted_meanwhile() -> ToolOutcome:
        await maker.calls.forget("acme", "run1")
        return ToolOutcome(True, 1.0, "a secret")

    await maker.calls.once(CALL, IDEMPOTENT, deleted_meanwhile)
    noted = await store.get("acme", CALL.call_id)
    assert noted is not None
    assert (noted.outcome, noted.forgotten) == (None, True)


async def test_whoever_waits_for_a_call_of_a_deleted_run_is_told(store: CallStore) -> None:
    died, another = Maker(store), Maker(store)
    died.dies = True
    with pytest.raises(asyncio.CancelledError):
        await died.call()

    async def deleted_meanwhile(_: float) -> None:
        await another.calls.forget("acme", "run1")

    another.calls = Calls(store, now=lambda: another.now, sleep=deleted_meanwhile)
    with pytest.raises(CallForgotten):
        await another.call()


class DyingBucket(KeyValue):
    """Whose process dies before the write that is `writes_left` away."""

    writes_left = 99

    async def put(self, key: str, value: bytes) -> int:
        self._count()
        return await super().put(key, value)

    async def update(self, key: str, value: bytes, revision: int) -> int:
        self._count()
        return await super().update(key, value, revision)

    def _count(self) -> None:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise asyncio.CancelledError


async def opened(jetstream: Nats) -> KeyValue:
    return await KeyValue.open(jetstream, "TOOL_CALLS", ttl_s=7 * 86_400)


@pytest.mark.parametrize("writes", range(3))
async def test_forgetting_that_was_killed_anywhere_is_finished_by_the_next_try(jetstream: Nats, writes: int) -> None:
    maker = Maker(await KeyValueCallStore.open(jetstream))
    for number in range(2):
        await maker.call(replace(CALL, call_id=f"run1/step{number}"))
    await opened(jetstream)
    dying = DyingBucket(jetstream, "TOOL_CALLS")
    dying.writes_left = writes
    with pytest.raises(asyncio.CancelledError):
        await KeyValueCallStore(dying).forget("acme", "run1")
    await maker.calls.forget("acme", "run1")
    stored = [entry.value or b"" async for entry in (await opened(jetstream)).entries(">")]
    assert len(stored) == 3
    assert not [value for value in stored if b"Sent." in value]


async def test_call_that_was_noted_while_its_run_was_forgotten_is_refused_and_leaves_nothing(jetstream: Nats) -> None:
    """It is noted after the listing: only the mark tells of it."""
    bucket = await opened(jetstream)
    store = KeyValueCallStore(bucket)
    await store.forget("acme", "run1")
    listed = await bucket.keys(">")
    assert len(listed) == 1
    maker = Maker(store)
    with pytest.raises(CallForgotten):
        await maker.call()
    await store.end("acme", CALL.call_id, NotedCall("f", START, ToolOutcome(True, 0.1, "a secret")))
    assert maker.made == 0
    assert (await store.get("acme", CALL.call_id) or NotedCall("", START)).outcome is None


@pytest.mark.parametrize("torn", [b"{torn", b"\x0atorn", b"{}"])
async def test_note_that_cannot_be_read_means_in_doubt(jetstream: Nats, torn: bytes) -> None:
    store = await KeyValueCallStore.open(jetstream)
    await Maker(store).call()
    bucket = await opened(jetstream)
    (entry,) = [each async for each in bucket.entries(">")]
    await bucket.put(entry.key, torn)
    with pytest.raises(CallInDoubt):
        await Maker(store).call()


async def test_note_of_a_newer_release_is_read(jetstream: Nats) -> None:
    store = await KeyValueCallStore.open(jetstream)
    first = await Maker(store).call()
    bucket = await opened(jetstream)
    (entry,) = [each async for each in bucket.entries(">")]
    unknown_field = b"\xfa\x01\x03new"  # number 31
    await bucket.put(entry.key, (entry.value or b"") + unknown_field)
    assert await Maker(store).call() == first
