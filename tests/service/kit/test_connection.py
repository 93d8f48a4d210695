"""The connection to a real nats-server that dies, freezes, refuses or is left; what is stored is in test_jetstream."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from nats import errors as nats_errors

from kit import deadline
from kit.errors import Unavailable
from kit.jetstream import Entry, Job, KeyValue, Nats, WorkQueue, connect
from kit.jetstream.failures import cancellation_kept
from kit.process.service import _CHECK_TIMEOUT_S as CHECK_TIMEOUT_S
from kit.process.waiting import Waiting
from kit.state import Queue
from kit.testing.harness import free_port, make_signer, make_verifier
from kit.testing.nats import NatsServer


async def eventually(write: Callable[[], Awaitable[object]], seconds: float = 60.0) -> None:
    """Writes once the server takes it again."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                await write()
            except Unavailable:
                continue
            return


async def test_dead_server_is_unavailable_and_comes_back(nats: NatsServer) -> None:
    async with connect(nats.url, name="test") as connection:
        bucket = await KeyValue.open(connection, "THINGS")
        await bucket.put("a", b"x")
        await nats.stop(kill=True)
        with pytest.raises(Unavailable):
            await bucket.get("a")
        await nats.start()
        async with asyncio.timeout(60):
            while True:
                try:
                    entry = await bucket.get("a")
                    break
                except Unavailable:
                    continue
        assert entry is not None


async def lose(nats: NatsServer, connection: Nats) -> None:
    """Kills the server; returns once the client knows."""
    await nats.stop(kill=True)
    async with asyncio.timeout(60):
        while connection.servers.lost_at is None:
            await asyncio.sleep(0.01)


async def test_nothing_is_kept_back_to_be_written_after_it_was_said_to_have_failed(nats: NatsServer) -> None:
    async with connect(nats.url, name="test") as connection:
        bucket = await KeyValue.open(connection, "THINGS")
        revision = await bucket.put("a", b"before")
        await lose(nats, connection)
        with pytest.raises(Unavailable), deadline.within(0.5):
            await bucket.put("a", b"said to have failed")
        with pytest.raises(Unavailable):
            await connection.check()
        await nats.start()
        await eventually(lambda: connection.has_stream("KV_THINGS"))
        assert await bucket.get("a") == Entry("a", b"before", revision)


async def test_nothing_is_asked_for_by_readers_and_workers_while_there_is_no_connection(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect(nats.url, name="test") as connection:
        bucket = await KeyValue.open(connection, "THINGS")
        queue = await WorkQueue.open(connection, Queue("WORK", "work"), make_signer(), make_verifier())
        failures: asyncio.Queue[None] = asyncio.Queue()

        async def failed(_: float) -> None:
            failures.put_nowait(None)

        async def work(_: Job) -> None:
            """Does nothing."""

        async with aclosing(bucket.watch()) as changes:
            assert await anext(changes) is None
            await lose(nats, connection)
            sent = connection.nc.stats["out_msgs"]
            monkeypatch.setattr(connection.servers, "failed", failed)
            tasks = [asyncio.ensure_future(anext(changes)), asyncio.ensure_future(queue.consume(work, concurrency=1))]
            for _ in range(4):
                await failures.get()
            assert connection.nc.stats["out_msgs"] == sent
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_patience_counts_from_when_the_connection_was_lost(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    an_hour_s = 3600.0
    monkeypatch.setattr("kit.jetstream.connection.PATIENCE_S", an_hour_s)
    async with connect(nats.url, name="test") as connection:
        await lose(nats, connection)
        connection.servers.lost_at = asyncio.get_running_loop().time() - an_hour_s
        async with asyncio.timeout(60):
            with pytest.raises(Unavailable):
                await connection.last_position("KV_THINGS")
        await nats.start()
        await eventually(lambda: connection.has_stream("KV_THINGS"))
        assert connection.servers.lost_at is None


async def test_server_that_says_nothing_to_a_check_is_one_to_leave(
    jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = asyncio.Event()

    async def silent(*_: Any, timeout: float) -> Any:
        assert timeout < CHECK_TIMEOUT_S, "who checks has given up by then"
        raise nats_errors.TimeoutError

    async def failed(_: float) -> None:
        left.set()

    monkeypatch.setattr(jetstream.nc, "request", silent)
    monkeypatch.setattr(jetstream.servers, "failed", failed)
    with pytest.raises(Unavailable):
        await jetstream.check()
    assert left.is_set()


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["answer", "error"])
async def test_cancellation_that_comes_with_the_answer_is_not_forgotten(error: Exception | None) -> None:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ask() -> int:
        with cancellation_kept():
            return await asyncio.wait_for(answer, 5)

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    if error:
        answer.set_exception(error)
    else:
        answer.set_result(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize("listens", [False, True], ids=["nobody there", "hangs up"])
async def test_connecting_ends_at_whatever_moment_it_is_told_to(listens: bool) -> None:
    """Also at that where the server has just refused the connection, or ended it."""
    port = free_port()
    address = f"nats://127.0.0.1:{port}"
    if listens:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)

    async def connected() -> None:
        async with connect(address, name="test", waiting=Waiting()):
            pass

    for moment in range(100):
        connecting = asyncio.create_task(connected())
        for _ in range(moment):
            await asyncio.sleep(0)
        connecting.cancel()
        async with asyncio.timeout(60):
            await asyncio.wait({connecting})
        assert connecting.cancelled()
    if listens:
        server.close()
        await server.wait_closed()


async def test_connection_that_is_not_yet_made_when_its_owner_leaves_is_closed() -> None:
    """Also where the one before it was refused: the socket would stay open until it is collected."""
    ends: list[bytes] = []
    refused, kept = asyncio.Event(), asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if refused.is_set():
            kept.set()
            ends.append(await reader.read())
        refused.set()
        writer.close()

    async def connected(address: str) -> None:
        async with connect(address, name="test", waiting=Waiting()):
            pass

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(60):
        connecting = asyncio.create_task(connected(f"nats://127.0.0.1:{port}"))
        await kept.wait()
        connecting.cancel()
        await asyncio.wait({connecting})
        while not ends:
            await asyncio.sleep(0.01)
    assert ends == [b""]


async def test_reader_ends_when_this_process_closes_its_connection(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "closing")
    async with aclosing(bucket.watch()) as changes, asyncio.timeout(60):
        assert await anext(changes) is None
        await jetstream.nc.close()
        with pytest.raises(Unavailable):
            await anext(changes)
