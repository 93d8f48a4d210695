"""Idempotency keys over a real store."""

import asyncio
from dataclasses import replace
from itertools import count

import pytest

from kit.access.principal import Principal
from kit.errors import InvalidArgument, Unavailable
from kit.jetstream import KeyValue, Nats
from kit.stores.idempotency import IN_HAND_S, Attempt, IdempotencyConflict, IdempotencyInFlight, IdempotencyKeys

ANN = Principal("acme", "ann")
KEY, REQUEST = "4f1c", b"make one"


class Shop:
    """Makes things, and can fail while it does."""

    def __init__(self, bucket: KeyValue) -> None:
        self.now = 1_000.0
        self.made: list[Attempt] = []
        self.error: BaseException | None = None
        self.ids = (f"id{number}" for number in count(1))
        self.keys = IdempotencyKeys(bucket, "TEST_KEYS", lambda: self.now)

    async def make(self, attempt: Attempt) -> str:
        self.made.append(attempt)
        if self.error is not None:
            raise self.error
        return attempt.item_id

    async def ask(
        self, key: str = KEY, request: bytes = REQUEST, who: Principal = ANN, operation: str = "thing"
    ) -> str:
        return await self.keys.once(who, operation, key, request, lambda: next(self.ids), self.make)


@pytest.fixture
async def shop(jetstream: Nats) -> Shop:
    return Shop(await KeyValue.open(jetstream, "TEST_KEYS", ttl_s=60))


async def test_same_key_and_request_make_one_thing(shop: Shop) -> None:
    first = await shop.ask()
    assert [await shop.ask(), await shop.ask()] == [first, first]
    assert shop.made == [Attempt(first, True)]


async def test_another_request_under_the_key_is_refused(shop: Shop) -> None:
    await shop.ask()
    with pytest.raises(IdempotencyConflict, match="use a new key"):
        await shop.ask(request=b"make two")


async def test_keys_of_others_and_of_other_operations_are_others(shop: Shop) -> None:
    asked = [
        await shop.ask(),
        await shop.ask(who=replace(ANN, subject="bob")),
        await shop.ask(who=replace(ANN, tenant_id="umbrella")),
        await shop.ask(operation="other"),
    ]
    assert len(set(asked)) == 4


async def test_while_the_first_is_in_hand_the_second_is_told_to_wait(shop: Shop) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow(attempt: Attempt) -> str:
        started.set()
        await go_on.wait()
        return attempt.item_id

    first = asyncio.create_task(shop.keys.once(ANN, "thing", KEY, REQUEST, lambda: "id", slow))
    await started.wait()
    with pytest.raises(IdempotencyInFlight) as told:
        await shop.ask()
    assert told.value.retry_after_s
    go_on.set()
    assert await first == "id" == await shop.ask()


@pytest.mark.parametrize("later_s", [IN_HAND_S, -86_400.0], ids=["later", "clock set back"])
async def test_after_a_death_the_same_thing_is_made(shop: Shop, later_s: float) -> None:
    shop.error = asyncio.CancelledError()  # nothing is noted of how it ended, as after a kill
    with pytest.raises(asyncio.CancelledError):
        await shop.ask()
    shop.error = None
    with pytest.raises(IdempotencyInFlight):
        await shop.ask()
    shop.now += later_s
    assert await shop.ask() == "id1"
    assert shop.made == [Attempt("id1", True), Attempt("id1", False)]


async def test_after_an_outage_the_next_attempt_need_not_wait(shop: Shop) -> None:
    shop.error = Unavailable("the store is away")
    with pytest.raises(Unavailable):
        await shop.ask()
    shop.error = None
    assert await shop.ask() == "id1"
    assert shop.made == [Attempt("id1", True), Attempt("id1", False)]


async def test_a_refusal_leaves_the_key_free(shop: Shop) -> None:
    shop.error = InvalidArgument("no such colour")
    with pytest.raises(InvalidArgument):
        await shop.ask()
    shop.error = None
    assert await shop.ask(request=b"make a blue one")


async def test_of_several_that_find_a_dead_attempt_one_goes_on(shop: Shop) -> None:
    shop.error = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await shop.ask()
    shop.error = None
    shop.now += IN_HAND_S
    answers = await asyncio.gather(*(shop.ask() for _ in range(8)), return_exceptions=True)
    assert "id1" in answers
    assert all(answer == "id1" or isinstance(answer, IdempotencyInFlight) for answer in answers)
    assert len(shop.made) == 2


async def test_a_note_that_cannot_be_read_is_set_aside(shop: Shop, jetstream: Nats) -> None:
    await shop.ask()
    bucket = await KeyValue.open(jetstream, "TEST_KEYS", ttl_s=60)
    (entry,) = [each async for each in bucket.entries(">")]
    await bucket.put(entry.key, b"{torn")
    assert await shop.ask() == "id2"
