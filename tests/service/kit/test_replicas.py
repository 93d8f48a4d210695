"""On how many servers of a real cluster streams are kept: made so, given more, never scaled down."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from nats.js import api

from kit import deadline, state
from kit.errors import FailedPrecondition, Unavailable
from kit.jetstream import Entry, KeyValue, Nats, ObjectStore, WorkQueue, connect
from kit.jetstream.streams import replica_count
from kit.state import Bucket, Queue
from kit.testing.harness import make_signer, make_verifier
from kit.testing.nats_cluster import NatsCluster, nats_cluster
from ops.backup.snapshot import bring_back, copy_of
from ops.nats_users import ADMINISTRATOR, authorization, written_by
from ops.state import USERS
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog

QUEUE = Queue("WORK", "work")


@pytest.fixture
async def cluster() -> AsyncIterator[NatsCluster]:
    async with nats_cluster() as running:
        yield running


@dataclass(frozen=True)
class Kind:
    """Something that is kept, and how it is opened."""

    stream: str
    open: Callable[[Nats], Awaitable[object]]


KINDS = (
    Kind("KV_THINGS", lambda nats: KeyValue.open(nats, "THINGS")),
    Kind("KV_LEASES", lambda nats: KeyValue.open(nats, "LEASES", ttl_s=60.0)),
    Kind("OBJ_FILES", lambda nats: ObjectStore.open(nats, "FILES")),
    Kind("WORK", lambda nats: WorkQueue.open(nats, QUEUE, make_signer(), make_verifier())),
    Kind("RUNS", lambda nats: JetStreamEventLog.open(nats, retention_days=1.0)),
)


async def test_what_is_made_is_kept_on_as_many_servers_as_the_settings_say_and_never_on_fewer(
    cluster: NatsCluster,
) -> None:
    async with connect(cluster.url, name="test", replicas=1) as nats:
        for kind in KINDS:
            await kind.open(nats)
            assert await replica_count(nats, kind.stream) == 1
        bucket = await KeyValue.open(nats, "THINGS")
        revision = await bucket.put("a", b"kept")
        for replicas, kept_on in ((3, 3), (1, 3)):
            told = replace(nats, replicas=replicas)
            for kind in KINDS:
                await kind.open(told)
                assert await replica_count(nats, kind.stream) == kept_on, kind.stream
        entry = await bucket.get("a")
        assert entry is not None
        assert (entry.value, entry.revision) == (b"kept", revision)


async def test_opening_what_is_there_changes_nothing(cluster: NatsCluster) -> None:
    async with connect(cluster.url, name="test", replicas=3) as nats:
        for kind in KINDS:
            await kind.open(nats)
        changes = await nats.nc.subscribe("$JS.EVENT.ADVISORY.STREAM.UPDATED.>")
        await nats.nc.flush()
        for kind in KINDS:
            await kind.open(nats)
            await kind.open(replace(nats, replicas=1))
        await KeyValue.open(nats, "LEASES", ttl_s=30.0)
        assert (await changes.next_msg(timeout=60)).subject.endswith(".KV_LEASES")


async def test_backup_is_restored_on_as_many_servers_as_the_settings_say(cluster: NatsCluster, jetstream: Nats) -> None:
    await (await KeyValue.open(jetstream, "THINGS")).put("a", b"kept")
    async with connect(cluster.url, name="test", replicas=3) as nats:
        for source, target in ((jetstream, nats), (nats, jetstream)):
            async with copy_of(source, "KV_THINGS") as (copy, pieces):
                whole = [piece async for piece in pieces]
            if target is jetstream:
                await target.js.delete_stream("KV_THINGS")
            await bring_back(target, copy, given(whole))
            assert await replica_count(target, "KV_THINGS") == target.replicas
            entry = await KeyValue(target, "THINGS").get("a")
            assert entry is not None
            assert entry.value == b"kept"


async def given(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_what_others_have_set_stays_when_a_stream_is_given_more_replicas(cluster: NatsCluster) -> None:
    async with connect(cluster.url, name="test", replicas=1) as nats:
        await KeyValue.open(nats, "THINGS")
        config = (await nats.js.stream_info("KV_THINGS")).config
        set_by_hand = replace(config, description="by hand", max_bytes=50_000_000, metadata={"team": "search"})
        await nats.js.update_stream(set_by_hand)
        await KeyValue.open(replace(nats, replicas=3), "THINGS")
        found = (await nats.js.stream_info("KV_THINGS")).config
        assert (found.num_replicas, found.description, found.max_bytes) == (3, "by hand", 50_000_000)
        assert (found.metadata or {})["team"] == "search"


async def test_users_of_the_services_may_do_what_replicas_take() -> None:
    passwords = dict.fromkeys((ADMINISTRATOR, *USERS), "secret")
    async with nats_cluster(authorization(passwords)) as cluster:
        for user in USERS:
            urls = ",".join(f"nats://{user}:secret@127.0.0.1:{node.port}" for node in cluster.nodes)
            async with connect(urls, name=user, replicas=1) as nats:
                name = written_by(user, Bucket)[0].name
                await KeyValue.open(nats, name)
                bucket = await KeyValue.open(replace(nats, replicas=3), name)
                revision = await bucket.create("acme.one", b"1")
                assert await bucket.get("acme.one") == Entry("acme.one", b"1", revision)
                assert [entry.key async for entry in bucket.entries(">")] == ["acme.one"]
                await bucket.purge("acme.one", revision)
                for files in written_by(user, state.ObjectBucket):
                    store = await ObjectStore.open(replace(nats, replicas=3), files.name)
                    await store.put("file", given([b"content"]))
                    await store.delete("file")
                    assert not await store.exists("file")


async def test_who_was_told_of_one_server_goes_on_with_another_as_the_same_user() -> None:
    async with nats_cluster(authorization(dict.fromkeys((ADMINISTRATOR, *USERS), "secret"))) as cluster:
        first = cluster.nodes[0]
        async with connect(f"nats://tools:secret@127.0.0.1:{first.port}", name="tools", replicas=3) as nats:
            bucket = await KeyValue.open(nats, "TOOL_CALLS")
            revision = await bucket.create("acme.one", b"1")
            await first.stop(kill=True)
            while (entry := await eventually(bucket.get("acme.one"))) is None:
                pass
            assert entry.revision == revision
            assert nats.reconnections


async def eventually(reading: Awaitable[Entry | None]) -> Entry | None:
    """None while nobody answers: a slow machine elects for longer than anybody is waited for."""
    with suppress(Unavailable):
        return await reading
    return None


async def test_consumers_of_a_queue_have_as_many_replicas_as_their_queue(cluster: NatsCluster) -> None:
    async with connect(cluster.url, name="test", replicas=3) as nats:
        await WorkQueue.open(nats, QUEUE, make_signer(), make_verifier())
        config = api.ConsumerConfig(durable_name="acme", ack_policy=api.AckPolicy.EXPLICIT)
        made = await nats.persist("stream WORK", lambda _: nats.js.add_consumer("WORK", config))
        assert made.cluster is not None
        assert len(made.cluster.replicas or []) == 2


async def test_more_replicas_than_servers_is_told_from_an_outage(cluster: NatsCluster, nats_url: str) -> None:
    async with connect(nats_url, name="alone", replicas=3) as nats:
        with pytest.raises(FailedPrecondition, match="GROUNDWORK_NATS_REPLICAS=1"):
            await KeyValue.open(nats, "THINGS")
        await KeyValue.open(replace(nats, replicas=1), "OTHERS")
        with pytest.raises(FailedPrecondition, match="GROUNDWORK_NATS_REPLICAS=1"):
            await KeyValue.open(nats, "OTHERS")
    async with connect(cluster.url, name="test", replicas=5) as nats:
        deadline.set_remaining(0.5)  # it could be an outage, and is waited for
        with pytest.raises(Unavailable, match="5 servers") as raised:
            await KeyValue.open(nats, "THINGS")
        assert raised.value.reason == "NATS_SERVERS_MISSING"
