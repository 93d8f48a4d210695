"""NatsLeases over real NATS: one holder at a time, and a dead holder's lease falls free."""

import asyncio

import pytest

from kit import deadline
from kit.errors import Unavailable
from kit.jetstream import Nats
from kit.jetstream.leases import LeaseLost, NatsLeases


async def test_second_holder_waits_for_the_first(jetstream: Nats) -> None:
    leases = await NatsLeases.open(jetstream, "LEASES", ttl_s=60.0)
    order: list[str] = []

    async def hold(who: str, held: asyncio.Event, let_go: asyncio.Event) -> None:
        async with leases.hold("document.local.a") as lease:
            lease.check()
            order.append(f"{who} holds")
            held.set()
            await let_go.wait()
            order.append(f"{who} lets go")

    first, second, let_go = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(hold("first", first, let_go))
        await first.wait()
        group.create_task(hold("second", second, let_go))
        async with leases.hold("document.local.b"):
            assert not second.is_set()
        let_go.set()
    assert order == ["first holds", "first lets go", "second holds", "second lets go"]


async def test_lease_taken_away_is_reported_as_lost(jetstream: Nats) -> None:
    leases = await NatsLeases.open(jetstream, "LEASES", ttl_s=9.0)
    async with leases.hold("document.local.a") as lease:
        bucket = lease._bucket
        await bucket.put("document.local.a", b"somebody else")
        async with asyncio.timeout(60):
            while True:
                try:
                    lease.check()
                except LeaseLost:
                    break
                await asyncio.sleep(0.05)
    taken = await bucket.get("document.local.a")
    assert taken is not None
    assert taken.value == b"somebody else"


async def test_lease_that_cannot_be_given_back_holds_nobody_up(
    jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = await NatsLeases.open(jetstream, "LEASES", ttl_s=60.0)
    left: list[float | None] = []

    async def delete(*_: object) -> None:
        left.append(deadline.remaining_s())
        raise Unavailable("the message store does not answer")

    async with leases.hold("document.local.a") as lease:
        monkeypatch.setattr(lease._bucket, "delete", delete)
    assert [seconds is not None and seconds <= 2.0 for seconds in left] == [True]


async def test_dead_holders_lease_falls_free(jetstream: Nats) -> None:
    leases = await NatsLeases.open(jetstream, "LEASES", ttl_s=1.0)
    await leases._bucket.create("document.local.a", b"a worker that died")
    async with asyncio.timeout(60), leases.hold("document.local.a") as lease:
        lease.check()


@pytest.mark.parametrize("key", ["document.local.a", "file.local.b"])
async def test_lease_is_free_again_after_its_block(jetstream: Nats, key: str) -> None:
    leases = await NatsLeases.open(jetstream, "LEASES", ttl_s=30.0)
    for _ in range(3):
        async with asyncio.timeout(60), leases.hold(key) as lease:
            lease.check()
