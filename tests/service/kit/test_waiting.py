"""A service whose message store is away, at its start or later: it lives, says what it waits for, and goes on by itself."""

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from nats.js import api
from structlog.testing import capture_logs

from kit.errors import GroundworkError, Unavailable
from kit.jetstream import KeyValue, Nats, ObjectStore, connect
from kit.jetstream.opening import patient
from kit.process.service import Service
from kit.process.settings import MessageStoreSettings
from kit.process.waiting import FailureLogLimit, Waiting
from kit.stores.message_store import STOPS_AFTER_S, StoreWatch, lasting, open_message_store
from kit.testing.harness import free_port, open_test_channel
from kit.testing.nats import NatsServer

DESCRIPTOR = pb.DESCRIPTOR.services_by_name["MemoryService"]
GIVE_UP_S = 60.0


class Servicer(rpc.MemoryServiceServicer):
    """Has one thread, the name of which is in the bucket."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    async def GetThread(self, request: pb.GetThreadRequest, context: Any) -> pb.GetThreadResponse:
        entry = await self._bucket.get("title")
        return pb.GetThreadResponse(thread=pb.Thread(title=entry.value if entry and entry.value else b""))


class Process:
    """A service with a bucket, a stream and an object store, and what it says."""

    def __init__(self, url: str) -> None:
        self.settings = MessageStoreSettings(
            nats_url=url, grpc_address=f"127.0.0.1:{free_port()}", ops_port=free_port(), drain_grace_s=0
        )
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with Service("test", self.settings) as service:
            nats = await open_message_store(service, self.settings)
            bucket = await KeyValue.open(nats, "TITLES")
            await ObjectStore.open(nats, "PICTURES")
            await Stream.open(nats)
            await bucket.put("title", b"found")
            service.add_servicer(rpc.add_MemoryServiceServicer_to_server, Servicer(bucket), DESCRIPTOR)
            await service.serve()

    async def says(self, path: str, status_code: int, *parts: str) -> str:
        """What the operator's door answers, once it has this status and these parts."""
        async with asyncio.timeout(GIVE_UP_S), httpx.AsyncClient(trust_env=False) as http:
            while True:
                assert not self.task.done(), self.task
                with suppress(httpx.TransportError):
                    answer = await http.get(f"http://127.0.0.1:{self.settings.ops_port}{path}")
                    if answer.status_code == status_code and all(part in answer.text for part in parts):
                        return answer.text
                await asyncio.sleep(0.05)

    async def is_well(self) -> None:
        """Returns once it is ready and has nothing to tell."""
        while await self.says("/readyz", 200) != "ok\n":
            await asyncio.sleep(0.05)

    async def health(self) -> tuple[Any, str]:
        """The status of the gRPC health check, once it answers, and what it adds."""
        async with grpc.aio.insecure_channel(self.settings.grpc_address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
            call = stub.Check(health_pb2.HealthCheckRequest(), timeout=GIVE_UP_S, wait_for_ready=True)
            status = (await call).status
            return status, dict(await call.trailing_metadata()).get("groundwork-detail-bin", b"").decode()

    async def title(self) -> str:
        async with open_test_channel(self.settings.grpc_address) as channel:
            answer = await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=60)
            return str(answer.thread.title)


class Stream:
    """A stream as an adapter opens it."""

    @classmethod
    @patient
    async def open(cls, nats: Nats) -> "Stream":
        await nats.ensure_stream(api.StreamConfig(name="EVENTS", subjects=["events.>"]))
        return cls()


@asynccontextmanager
async def process(url: str) -> AsyncIterator[Process]:
    running = Process(url)
    try:
        yield running
    finally:
        running.task.cancel()
        await asyncio.gather(running.task, return_exceptions=True)


@asynccontextmanager
async def absent_server(tmp_path: Path, configuration: str = "") -> AsyncIterator[NatsServer]:
    """A server that is not started yet, and whose port is known."""
    server = NatsServer(tmp_path, configuration, free_port())
    try:
        yield server
    finally:
        await server.stop(kill=True)


@pytest.fixture
def _listens_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waits tells its health after a while; these tests need not wait for it."""
    monkeypatch.setattr("kit.process.service._LISTEN_AFTER_S", 0.0)


NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.mark.usefixtures("_listens_at_once")
async def test_service_that_starts_before_the_message_store_waits_and_goes_on(tmp_path: Path) -> None:
    async with absent_server(tmp_path) as server, process(server.url) as service:
        text = await service.says("/readyz", 503, "message store: waits for it since")
        assert f"127.0.0.1:{server.port} cannot be used" in text
        await service.says("/livez", 200)
        status, detail = await service.health()
        assert status == NOT_SERVING
        assert "message store" in detail
        with pytest.raises(Unavailable, match="waits for message store") as refusal:
            await service.title()
        assert refusal.value.reason == "NOT_OPEN"
        await server.start()
        await service.is_well()
        assert await service.title() == "found"


@pytest.mark.usefixtures("_listens_at_once")
async def test_service_waits_for_a_majority_of_the_message_stores_servers(tmp_path: Path) -> None:
    ports, routes = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
    servers = []
    for number, port in enumerate(ports):
        (store := tmp_path / str(number)).mkdir()
        others = ", ".join(f'"nats://127.0.0.1:{route}"' for route in routes)
        cluster = f'cluster {{ name: test, listen: "127.0.0.1:{routes[number]}", routes: [{others}] }}'
        servers.append(NatsServer(store, f"server_name: n{number}\n{cluster}", port))
    try:
        await servers[0].start()
        async with process(servers[0].url) as service:
            await service.says("/readyz", 503, "message store: waits for it since", "the message store")
            await service.says("/livez", 200)
            assert (await service.health())[0] == NOT_SERVING
            await asyncio.gather(servers[1].start(), servers[2].start())
            await service.is_well()
            assert await service.title() == "found"
            await asyncio.gather(servers[1].stop(kill=True), servers[2].stop(kill=True))
            await service.says("/readyz", 200, "message store: does not answer since")
            await asyncio.gather(servers[1].start(), servers[2].start())
            await service.is_well()
            assert await service.title() == "found"
    finally:
        for server in servers:
            await server.stop(kill=True)


def users(password: str) -> str:
    return f'authorization {{ users: [ {{ user: test, password: "{password}" }} ] }}'


async def test_service_whose_password_is_refused_says_so_and_waits_for_it_to_be_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with absent_server(tmp_path, users("of-the-server")) as server:
        await server.start()
        async with process(f"nats://test:of-the-service@127.0.0.1:{server.port}") as service:
            text = await service.says("/readyz", 503, "refuses our user or password (GROUNDWORK_NATS_URL)")
            assert "of-the-service" not in text
            await service.says("/livez", 200)
            await server.stop()
            server.configuration = users("of-the-service")
            await server.start()
            await service.says("/readyz", 200)
    assert capsys.readouterr().out.count("nats_refuses_credentials") == 1


async def test_connection_that_a_running_server_ends_for_its_password_is_made_again(tmp_path: Path) -> None:
    async with absent_server(tmp_path, users("before")) as server:
        await server.start()
        async with process(f"nats://test:before@127.0.0.1:{server.port}") as service:
            await service.says("/readyz", 200)
            reload(server, users("after"))
            await service.says("/readyz", 200, "refuses our user or password")
            reload(server, users("before"))
            await service.is_well()
            assert await service.title() == "found"


def reload(server: NatsServer, configuration: str) -> None:
    assert server.process is not None
    (server.store / "nats.conf").write_text(configuration, "utf-8")
    os.kill(server.process.pid, signal.SIGHUP)


async def test_sigterm_ends_a_service_that_waits_at_once_and_without_an_error(tmp_path: Path) -> None:
    async with absent_server(tmp_path) as server, process(server.url) as service:
        await service.says("/readyz", 503, "message store")
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(GIVE_UP_S):
            assert await service.task is None


async def test_without_a_service_opening_says_that_the_message_store_is_away(nats: NatsServer) -> None:
    async with connect(nats.url, name="command") as connection:
        await nats.stop()
        with pytest.raises(Unavailable):
            await KeyValue.open(connection, "TITLES")


class Away:
    """A message store for StoreWatch, and the time."""

    def __init__(self) -> None:
        self.is_away = False
        self.now_s = 100.0

    async def check(self) -> None:
        if self.is_away:
            raise Unavailable("away")


async def test_absence_of_the_store_is_told_at_once_and_stops_the_service_when_it_is_long() -> None:
    store = Away()
    watch = StoreWatch(store.check, clock=lambda: store.now_s)
    await watch.look()
    assert watch.troubles() == ()
    store.is_away = True
    await watch.look()
    store.now_s += STOPS_AFTER_S - 1
    await watch.look()
    assert [trouble.stops_service for trouble in watch.troubles()] == [False]
    store.now_s += 1
    assert [trouble.stops_service for trouble in watch.troubles()] == [True]
    store.is_away = False
    await watch.look()
    assert watch.troubles() == ()


async def test_loop_that_ends_for_the_store_is_begun_anew_and_one_that_is_broken_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors: list[Exception] = [
        *(Unavailable("away"), Unavailable("away")),
        ExceptionGroup("two", [Unavailable("away"), ValueError("broken")]),
    ]

    async def loop() -> None:
        raise errors.pop(0)

    monkeypatch.setattr("kit.stores.message_store._AGAIN_AFTER_S", 0.0)
    with pytest.raises(ExceptionGroup) as raised, capture_logs() as logs:
        await lasting("test", loop)
    assert raised.group_contains(ValueError)
    assert not errors
    assert [log["event"] for log in logs] == ["loop_begun_anew"], "not each time"


async def until_quiet(waiting: Waiting, failures: int, tick: Callable[[], None]) -> None:
    left = failures

    async def attempt() -> None:
        nonlocal left
        tick()
        if left:
            left -= 1
            raise Unavailable("not there")

    await waiting.until("thing", attempt)


@pytest.fixture
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    real = asyncio.sleep

    def sleep(_: float) -> Coroutine[Any, Any, None]:
        return real(0)

    monkeypatch.setattr("kit.process.waiting.asyncio.sleep", sleep)


@pytest.mark.usefixtures("_no_sleep")
async def test_wait_is_logged_when_it_gets_long_every_half_minute_and_when_it_is_over() -> None:
    now = 0.0

    def tick() -> None:
        nonlocal now
        now += 1.0

    waiting = Waiting(clock=lambda: now)
    with capture_logs() as logs:
        await until_quiet(waiting, 2, tick)
        assert logs == []  # those who start together wait for each other
        await until_quiet(waiting, 70, tick)
    assert [log["event"] for log in logs] == ["waiting", "waiting", "waiting", "waiting_over"]
    assert not waiting.is_waiting


def test_loop_that_fails_again_and_again_tells_it_every_half_minute() -> None:
    seconds = itertools.count()
    complaints = FailureLogLimit(clock=lambda: next(seconds))
    told = [complaints.is_due() for _ in range(61)]
    assert [second for second, is_told in enumerate(told) if is_told] == [0, 30, 60]
    assert [complaints.is_over(), complaints.is_over(), complaints.is_due()] == [True, False, True]


async def test_attempt_that_takes_long_is_told_while_it_goes_on() -> None:
    waiting, answer = Waiting(), asyncio.get_running_loop().create_future()

    async def attempt() -> str:
        return str(await answer)

    task = asyncio.create_task(waiting.until("thing", attempt))
    async with asyncio.timeout(GIVE_UP_S):
        while not waiting.is_waiting:
            await asyncio.sleep(0.05)
    assert [trouble.part for trouble in waiting.troubles()] == ["thing"]
    answer.set_result("there")
    assert await task == "there"
    assert not waiting.is_waiting


async def test_what_is_no_absence_is_raised() -> None:
    async def attempt() -> None:
        raise GroundworkError("broken")

    waiting = Waiting()
    with pytest.raises(GroundworkError, match="broken"):
        await waiting.until("thing", attempt)
    assert not waiting.is_waiting
