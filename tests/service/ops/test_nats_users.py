"""The users of NATS against a real nats-server: each service can do all that its adapters do, and nothing with another's."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nats.errors import TimeoutError as NatsTimeoutError
from structlog.testing import capture_logs
from structlog.typing import EventDict

from kit import state
from kit.access.principal import Principal, use_principal
from kit.errors import Unavailable
from kit.jetstream import Job, KeyValue, Nats, ObjectStore, WorkQueue, connect, connection, opening
from kit.jetstream.bell import Bell
from kit.jetstream.following import follow
from kit.jetstream.reading import stored_messages
from kit.state import Bucket
from kit.testing.harness import make_signer, make_verifier
from kit.testing.nats import NatsServer, nats_server
from ops.nats_users import ADMINISTRATOR, authorization, written_by
from ops.state import USERS
from services.ingest.state import JOBS as INGEST_QUEUE
from services.memory.adapters.nats import NatsThreadStore
from services.memory.models import Message, Owner, Role, Thread
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.log.events import RunEvent, Token
from services.orchestrator.models import RunKey
from services.retriever.adapters.collections import NatsCollections

PASSWORDS = {name: f"password-of-{name}" for name in (ADMINISTRATOR, *USERS)}
SILENCE_S = 0.3
"""A server says no to the connection, not to the call, which hears nothing."""


@pytest.fixture
async def server() -> AsyncIterator[NatsServer]:
    async with nats_server(authorization(PASSWORDS)) as server:
        yield server


@pytest.fixture
def refusals() -> Iterator[list[EventDict]]:
    """What the server refused, as it is logged."""
    with capture_logs() as logs:
        yield logs


def as_user(server: NatsServer, name: str) -> str:
    return f"nats://{name}:{PASSWORDS[name]}@127.0.0.1:{server.port}"


async def greeting(server: NatsServer, credentials: dict[str, str]) -> bytes:
    """What the server says to somebody who comes with these, until it hangs up or is content."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(f"CONNECT {json.dumps({'verbose': True, **credentials})}\r\n".encode())
        async with asyncio.timeout(60):
            await reader.readline()  # what the server is
            return await reader.readline()
    finally:
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def connected(server: NatsServer, name: str) -> AsyncIterator[Nats]:
    async with connect(as_user(server, name), name=name) as nats:
        yield nats


def refused(logs: list[EventDict]) -> list[str]:
    return [str(each["error"]) for each in logs if each["event"] == "nats_permission_missing"]


async def until_refused(logs: list[EventDict], times: int) -> None:
    async with asyncio.timeout(60):
        while len(refused(logs)) < times:
            await asyncio.sleep(0.01)


async def whole_life_of_a_bucket(nats: Nats, name: str) -> None:
    bucket = await KeyValue.open(nats, name)
    revision = await bucket.create("local.one", b"1")
    await bucket.update("local.one", b"2", revision)
    await bucket.put("local.two", b"1")
    entry = await bucket.get("local.one")
    assert entry is not None
    assert [entry.key async for entry in bucket.entries("local.>")] == ["local.one", "local.two"]
    async with aclosing(bucket.watch("local.*")) as changes, asyncio.timeout(60):
        while await anext(changes) is not None:
            pass
        await bucket.delete("local.two")
        change = await anext(changes)
        assert change is not None
        assert change.key == "local.two"
    await bucket.purge("local.one")
    await KeyValue.open(nats, name, ttl_s=3600.0)
    await nats.js.purge_stream(f"KV_{name}")


@pytest.mark.parametrize("name", sorted(USERS))
async def test_a_service_does_with_its_own_what_it_needs(
    name: str, server: NatsServer, refusals: list[EventDict], tmp_path: Path
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"text"

    async with connected(server, name) as nats:
        await nats.check()
        for bucket in written_by(name, Bucket):
            await whole_life_of_a_bucket(nats, bucket.name)
        for files in written_by(name, state.ObjectBucket):
            store = await ObjectStore.open(nats, files.name)
            await store.put("one", pieces())
            assert await store.exists("one")
            await store.get_to_file("one", tmp_path / "one")
            await store.delete("one")
    assert refused(refusals) == []


async def test_the_services_adapters_work(server: NatsServer, refusals: list[EventDict]) -> None:
    async with AsyncExitStack() as stack:
        memory, orchestrator = [
            await stack.enter_async_context(connected(server, name)) for name in ("memory", "orchestrator")
        ]
        threads, owner, now = await NatsThreadStore.open(memory), Owner("local", "ann"), datetime.now(UTC)
        await threads.create_head(owner, Thread("t1", "Title", now, now, 0))
        await threads.take_position(owner, "t1", 1, Message("m1", Role.USER, "text", "", now))
        assert [message.text for message in await threads.read(owner, "t1", 1, 1)] == ["text"]
        await threads.purge_messages(owner, "t1")
        await JetStreamEventLog.open(orchestrator, retention_days=1)
        await orchestrator.js.publish("runs.local.r1", b"event")
        async with aclosing(follow(orchestrator, "RUNS", "runs.local.r1")) as events, asyncio.timeout(60):
            event = await anext(events)
            assert event is not None
            assert event.data == b"event"
        stored = [message.data async for message in stored_messages(orchestrator, "RUNS", "runs.local.r1")]
        assert stored == [b"event"]
    assert refused(refusals) == []


async def test_orchestrators_hear_of_followed_runs_and_of_those_that_were_let_go(
    server: NatsServer, refusals: list[EventDict]
) -> None:
    key, now = RunKey("local", "a" * 32), datetime.now(UTC)
    async with connected(server, "orchestrator") as one, connected(server, "orchestrator") as other:
        writer, follower = [await JetStreamEventLog.open(each, retention_days=1) for each in (one, other)]
        position = await writer.append(key, RunEvent(key.run_id, 1, now, Token("one", 0)), 0)
        following = follower.follow(key, 0, live=True)
        async with asyncio.timeout(60), aclosing(following):
            assert (await anext(following)).seq == 1
            await writer.append(key, RunEvent(key.run_id, 2, now, Token("two", 3)), position)
            assert (await anext(following)).seq == 2  # nothing reads the log for what is not heard: `work` does not run
        bell = Bell(one, "runs")
        async with asyncio.timeout(60), aclosing(Bell(other, "runs").heard()) as heard:
            rung = asyncio.ensure_future(anext(heard))
            await asyncio.sleep(0)
            await other.nc.flush()
            await bell.ring("local")
            await rung
    assert refused(refusals) == []


async def test_jobs_go_from_the_ingest_api_to_the_worker(server: NatsServer, refusals: list[EventDict]) -> None:
    done: asyncio.Queue[Job] = asyncio.Queue()

    async def handler(job: Job) -> None:
        done.put_nowait(job)

    async with connected(server, "ingest") as api, connected(server, "ingest-worker") as worker:
        queue = await WorkQueue.open(api, INGEST_QUEUE, make_signer(), make_verifier())
        consumer = await WorkQueue.open(worker, INGEST_QUEUE, make_signer(), make_verifier())
        consuming = asyncio.create_task(consumer.consume(handler, concurrency=1))
        try:
            with use_principal(Principal("local", "ann")):
                await queue.publish("local.d.r", b"data", job_id="r")
            async with asyncio.timeout(60):
                assert (await done.get()).principal == Principal("local", "ann")
                while await queue.pending():
                    await asyncio.sleep(0.01)
        finally:
            consuming.cancel()
            await asyncio.gather(consuming, return_exceptions=True)
        await api.js.publish("ingest.local.d.last", b"")
        await api.js.get_last_msg("INGEST", "ingest.local.d.last")
    assert refused(refusals) == []


async def test_the_ingest_api_takes_no_job_from_the_worker(
    server: NatsServer, refusals: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "REQUEST_TIMEOUT_S", SILENCE_S)
    monkeypatch.setattr(connection, "PATIENCE_S", SILENCE_S)
    async with connected(server, "ingest") as api:
        await WorkQueue.open(api, INGEST_QUEUE, make_signer(), make_verifier())
        with pytest.raises(NatsTimeoutError):
            await api.js.pull_subscribe("ingest.>", durable="workers", stream="INGEST")
        with pytest.raises(NatsTimeoutError):
            await api.js.purge_stream("INGEST")
        await until_refused(refusals, 2)


async def test_the_retriever_follows_the_collections_and_never_writes_one(
    server: NatsServer, refusals: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the two services comes first makes the bucket."""
    async with connected(server, "retriever") as retriever, connected(server, "ingest") as ingest:
        collections = await NatsCollections.open(retriever)
        mine = await KeyValue.open(ingest, "COLLECTIONS")
        await mine.put("local.papers", b'{"owner": "ann"}')
        following = asyncio.create_task(collections.follow())
        await collections.wait_known()
        for subject, papers in (("ann", ("papers",)), ("bob", ())):
            with use_principal(Principal("local", subject)):
                assert await collections.readable(["papers", "never"]) == papers
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert refused(refusals) == []
        monkeypatch.setattr(opening, "REQUEST_TIMEOUT_S", SILENCE_S)
        stream, js = "KV_COLLECTIONS", retriever.nc.jetstream(timeout=SILENCE_S)
        config = (await ingest.js.stream_info(stream)).config
        attempts: list[Callable[[], Awaitable[object]]] = [
            lambda: js.publish("$KV.COLLECTIONS.local.papers", b"2"),
            lambda: js.purge_stream(stream),
            lambda: js.update_stream(config),
            lambda: js.delete_stream(stream),
        ]
        for attempt in attempts:
            with pytest.raises(NatsTimeoutError):
                await attempt()
        await until_refused(refusals, len(attempts))
        entry = await mine.get("local.papers")
        assert entry is not None
        assert entry.value == b'{"owner": "ann"}'


FOREIGN = [
    (user, bucket)
    for user in USERS
    for bucket in ("DOCUMENTS", "THREADS", "RUN_RECORDS", "ACTIVE_REVISIONS", "API_KEYS")
    if bucket not in {each.name for each in written_by(user, Bucket)}
]


@pytest.mark.parametrize(("user", "bucket"), FOREIGN)
async def test_a_service_neither_reads_nor_writes_the_bucket_of_another(
    user: str, bucket: str, server: NatsServer, refusals: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(server, ADMINISTRATOR) as administrator:
        mine = await KeyValue.open(administrator, bucket)
        await mine.put("local.one", b"1")
        monkeypatch.setattr(opening, "REQUEST_TIMEOUT_S", SILENCE_S)
        monkeypatch.setattr(connection, "PATIENCE_S", SILENCE_S)
        stream, subject = f"KV_{bucket}", f"$KV.{bucket}.local.one"
        async with connected(server, user) as nats:
            attempts: list[Callable[[], Awaitable[object]]] = [
                lambda: KeyValue.open(nats, bucket),
                lambda: nats.js.get_msg(stream, subject=subject, direct=True),
                lambda: nats.js.get_msg(stream, subject=subject),
                lambda: nats.js.subscribe(subject, stream=stream, ordered_consumer=True),
                lambda: nats.js.pull_subscribe(subject, durable="thief", stream=stream),
                lambda: nats.js.publish(subject, b"2"),
                lambda: nats.js.purge_stream(stream),
                lambda: nats.js.delete_stream(stream),
                lambda: nats.js.delete_stream(written_by(user, Bucket)[0].stream),
            ]
            for attempt in attempts:
                with pytest.raises((Unavailable, NatsTimeoutError)):
                    await attempt()
            await until_refused(refusals, len(attempts))
        monkeypatch.undo()
        entry = await mine.get("local.one")
        assert entry is not None
        assert entry.value == b"1"


async def test_nobody_hears_the_answers_of_another_nor_comes_in_without_a_user(
    server: NatsServer, refusals: list[EventDict]
) -> None:
    async with connected(server, "memory") as nats:
        for subject in (">", "_INBOX.>", "_INBOX.ingest.>", "$KV.DOCUMENTS.>", "ingest.>", "$JS.>"):
            await nats.nc.subscribe(subject)
        await until_refused(refusals, 6)
    for credentials in ({}, {"user": "memory", "pass": "wrong"}, {"user": "nobody", "pass": PASSWORDS["memory"]}):
        assert b"Authorization Violation" in await greeting(server, credentials)
