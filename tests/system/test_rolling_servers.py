"""Servers that go away and come back while others call: no call is lost, and none is carried out twice."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from kit.errors import Unavailable
from kit.rpc.server import Server
from kit.testing.certificates import Authority, CertificateFolder
from kit.testing.harness import free_port, open_test_channel, public_keys_text
from tests.service.kit.callers import Callers
from tests.service.kit.served import CONTRACTS, Servicer, serve

ROUNDS = 10
NEVER_S = 600.0
"""No call of these takes so long: a limit that a slow machine does not meet."""


@pytest.mark.parametrize("with_tls", [False, True])
@pytest.mark.parametrize("count", [1, 2])
async def test_servers_that_are_restarted_in_turn_lose_no_call(count: int, with_tls: bool, tmp_path: Path) -> None:
    servicer, authority = Servicer(), Authority()
    tls = CertificateFolder(tmp_path, authority.issue(), [authority]).source() if with_tls else None
    servers: list[tuple[Server, int]] = [
        await serve(servicer, public_keys_text(), certificates=tls) for _ in range(count)
    ]
    address = ",".join(f"127.0.0.1:{port}" for _, port in servers)
    async with open_test_channel(address, services=CONTRACTS, patience_s=NEVER_S, certificates=tls) as channel:
        callers = Callers(channel)
        async with callers.at_work():
            for turn in range(ROUNDS):
                await callers.have_called()
                server, port = servers[turn % count]
                await server.stop(NEVER_S)
                servers[turn % count] = await serve(servicer, public_keys_text(), port, certificates=tls)
    for server, _ in servers:
        await server.stop(None)
    assert callers.failed == {"read": [], "made": [], "run": [], "upload": []}
    for kind in ("made", "run", "upload"):
        assert [servicer.done[name] for name in callers.answered[kind]] == [1] * len(callers.answered[kind])
    assert set(servicer.done.values()) == {1}, "nothing was carried out twice"


class Killable:
    """A server in a process of its own, and what it has said that it did."""

    def __init__(self, done: list[str]) -> None:
        self.port = free_port()
        self._done = done
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        environment = {**os.environ, "TEST_PUBLIC_KEYS": public_keys_text()}
        command = (sys.executable, "-m", "tests.service.kit.served", str(self.port))
        self._process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE)
        assert self._process.stdout is not None
        assert await self._process.stdout.readline() == b"ready\n"
        self._reading = asyncio.create_task(self._read(self._process.stdout))

    async def _read(self, said: asyncio.StreamReader) -> None:
        async for line in said:
            self._done.append(line.decode().strip())

    async def kill(self) -> None:
        assert self._process is not None
        assert self._reading is not None
        self._process.kill()
        await self._process.wait()
        await self._reading


async def test_a_killed_server_loses_only_what_it_had_in_hand_and_must_not_be_repeated() -> None:
    done: list[str] = []
    servers = [Killable(done), Killable(done)]
    await asyncio.gather(*(server.start() for server in servers))
    address = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    kills = 4
    try:
        async with open_test_channel(address, services=CONTRACTS, patience_s=NEVER_S) as channel:
            callers = Callers(channel)
            async with callers.at_work():
                for turn in range(kills):
                    await callers.have_called()
                    await servers[turn % 2].kill()
                    await callers.have_called()
                    await servers[turn % 2].start()
    finally:
        await asyncio.gather(*(server.kill() for server in servers))
    assert callers.failed["read"] == []
    for kind in ("made", "run", "upload"):
        # Each of the three callers loses the call that it has in hand, and on a busy machine one more, which it begins before the
        # balancer has heard that the connection is gone.
        assert len(callers.failed[kind]) <= 2 * 3 * kills
        assert all(isinstance(error, Unavailable) for error in callers.failed[kind])
        assert set(callers.answered[kind]) <= set(done)
    assert len(done) == len(set(done)), "nothing was carried out twice"
