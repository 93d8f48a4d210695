"""The message store behind names, while those who know the names' addresses are away."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from kit.errors import Unavailable
from kit.jetstream import connect
from kit.jetstream.names import KnownAddresses
from kit.testing.nats import NatsServer

NEVER_S = 600.0


class NameServer:
    """Knows one address. `is_away`: it says nothing until it is back; `refuses`: it knows no name."""

    def __init__(self) -> None:
        self.is_there = asyncio.Event()
        self.is_there.set()
        self.refuses = False
        self.address = "127.0.0.1"
        self.asked = 0

    async def look_up(self, host: str, port: int) -> Sequence[Any]:
        self.asked += 1
        await self.is_there.wait()
        if self.refuses:
            raise OSError(f"nobody knows {host}")
        return [(0, 0, 0, "", (self.address, port))]


async def test_connection_is_made_again_while_no_name_server_answers(nats: NatsServer) -> None:
    names = NameServer()
    addresses = KnownAddresses(names.look_up, timeout_s=0.01)
    async with connect(f"nats://store.test:{nats.port}", name="test", addresses=addresses) as connection:
        names.is_there.clear()
        await nats.stop(kill=True)
        await nats.start()
        async with asyncio.timeout(60):
            while not await answers(connection):
                await asyncio.sleep(0.05)
        assert connection.reconnections == 1
        names.is_there.set()


async def answers(connection: Any) -> bool:
    try:
        await connection.check()
    except Unavailable:
        return False
    return True


@pytest.mark.parametrize("how", ["away", "ignorant"])
async def test_last_address_is_kept_and_the_new_one_taken_when_there_is_one(how: str) -> None:
    names = NameServer()
    addresses = KnownAddresses(names.look_up, timeout_s=0.01)
    assert await addresses.of("store.test", 4222) == "127.0.0.1"
    names.address = "127.0.0.2"
    if how == "away":
        names.is_there.clear()
    else:
        names.refuses = True
    assert await addresses.of("store.test", 4222) == "127.0.0.1"
    names.refuses = False
    names.is_there.set()
    await asyncio.sleep(0)
    assert await addresses.of("store.test", 4222) == "127.0.0.2"


async def test_one_look_up_at_a_time_however_often_is_tried() -> None:
    names = NameServer()
    names.is_there.clear()
    addresses = KnownAddresses(names.look_up, timeout_s=0.001)
    for _ in range(10):
        with pytest.raises(OSError, match=r"store\.test cannot be looked up"):
            await addresses.of("store.test", 4222)
    assert names.asked == 1
    names.is_there.set()
    patient = KnownAddresses(names.look_up, timeout_s=NEVER_S)
    assert await patient.of("store.test", 4222) == "127.0.0.1"
