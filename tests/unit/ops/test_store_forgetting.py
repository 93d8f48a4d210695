"""What deletions rest on, lost from a real message store: the requests that wait, who quotes what, what is being forgotten."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from kit.access.principal import Principal, use_principal
from kit.jetstream import Job, KeyValue, Nats
from kit.stores.forgetting import ForgetQueue, ForgetRequest, Source
from kit.testing.harness import make_signer, make_verifier
from ops.watch.keeper import Keeper
from tests.unit.ops.stores import AT, Store, by_place, keys, mended, run_record, truncate, upload, watch_over

DELETIONS = 60
ANN = Principal("acme", "ann")
THREAD = f"local.{hashlib.sha256(b'ann').hexdigest()[:32]}.t1"


async def forget_queue(nats: Nats) -> ForgetQueue:
    return await ForgetQueue.open(nats, make_signer(), make_verifier())


async def request(nats: Nats, numbers: Sequence[int]) -> None:
    queue = await forget_queue(nats)
    with use_principal(ANN):
        for number in numbers:
            await queue.request(ForgetRequest(Source.document(f"d{number}"), AT))


async def done_jobs(nats: Nats, count: int) -> list[str]:
    """Takes that many jobs from the queue, as the orchestrator does; their ids."""
    queue = await forget_queue(nats)
    done: asyncio.Queue[str] = asyncio.Queue()

    async def forget(job: Job) -> None:
        done.put_nowait(job.job_id)

    consumer = asyncio.create_task(queue.queue.consume(forget, concurrency=1))
    async with asyncio.timeout(60):
        ids = [await done.get() for _ in range(count)]
        while await queue.queue.pending():
            await asyncio.sleep(0.01)
    consumer.cancel()
    await asyncio.gather(consumer, return_exceptions=True)
    return sorted(ids)


def job_ids(numbers: Sequence[int]) -> list[str]:
    return sorted(f"acme.document.d{number}" for number in numbers)


def flip_a_bit(block: Path) -> None:
    """In the middle of a request."""
    data = bytearray(block.read_bytes())
    data[data.index(b"forget.acme.document.d30") + 60] ^= 4
    block.write_bytes(data)


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("damage", [truncate, flip_a_bit])
async def test_deletions_that_a_damaged_queue_swallowed_are_named_and_queued_again(
    store: Store, damage: Callable[[Path], None], kill: bool
) -> None:
    async with store.open() as (nats, keeper):
        await request(nats, range(DELETIONS))
        await keeper.sync(final=not kill)
    await store.server.stop(kill=kill)
    damage(store.block("FORGET"))
    await store.server.start()
    async with store.open() as (nats, keeper):
        findings = await watch_over(nats, keeper).compare_at_start(store.rebuild)
        ((where, (lost, repaired)),) = by_place(findings).items()
        assert where == ("FORGET", "jobs_missing")
        assert 0 < lost == repaired < DELETIONS
        assert findings[0].detail == f"{lost} deletions that waited in FORGET are gone; {lost} were put right"
        assert await done_jobs(nats, DELETIONS) == job_ids(range(DELETIONS))
        assert await mended(keeper) == [], "it is over"


async def test_a_queue_whose_folder_is_gone_is_filled_again(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await request(nats, range(3))
        await keeper.sync(final=True)
        await nats.js.delete_stream("FORGET")
        assert by_place(await watch_over(nats, keeper).compare_at_start(store.rebuild)) == {
            ("FORGET", "jobs_missing"): (3, 3)
        }
        assert await done_jobs(nats, 3) == job_ids(range(3))


async def test_deletions_that_were_done_are_not_missed(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await request(nats, range(4))
        await keeper.sync()
        await done_jobs(nats, 4)
        assert await watch_over(nats, keeper).scrub() == [], "while the system runs"
        await request(nats, range(4, 6))
        await keeper.sync(final=True)
        assert await mended(keeper) == [], "after a stop"
        assert await done_jobs(nats, 2) == job_ids(range(4, 6))


async def test_after_a_crash_deletions_that_may_have_been_done_are_done_again_without_a_word(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await request(nats, range(2))
        await keeper.sync()
        await done_jobs(nats, 2)
    await store.server.stop(kill=True)
    await store.server.start()
    async with store.open() as (nats, keeper):
        assert await watch_over(nats, keeper).compare_at_start(store.rebuild) == []
        assert await done_jobs(nats, 2) == job_ids(range(2))


async def note(nats: Nats, tenant: str, source: str, run: str, thread: str = "") -> str:
    """As the orchestrator notes that a run holds text of a source."""
    key = f"{tenant}.{source}.{run}"
    value = json.dumps({"thread_id": thread or None, "subject": "ann"}).encode()
    await (await KeyValue.open(nats, "RUN_SOURCES")).create(key, value, ttl_s=None if thread else 3600.0)
    return key


async def put_record(nats: Nats, run: str, **fields: datetime) -> None:
    await (await KeyValue.open(nats, "RUN_RECORDS", ttl_s=3600.0)).put(f"local.{run}", run_record(**fields))


async def life_of(nats: Nats, key: str) -> int | None:
    message = await nats.js.get_msg("KV_RUN_SOURCES", subject=f"$KV.RUN_SOURCES.{key}")
    ttl = (message.headers or {}).get("Nats-TTL")
    return int(ttl.removesuffix("s")) if ttl else None


async def runs_with_sources(nats: Nats, keeper: Keeper) -> list[str]:
    """Two documents; a run of each, and one of a thread that is older than its run's record."""
    for number in range(2):
        await upload(nats, number)
        await put_record(nats, f"r{number}")
    await nats.js.add_stream(name="RUNS", subjects=["runs.>"], max_age=3600.0)
    await (await KeyValue.open(nats, "THREADS")).put(THREAD, b"{}")
    made = [await note(nats, "local", f"document.d{number}", f"r{number}") for number in range(2)]
    made.append(await note(nats, "local", "document.d1", "r9", thread="t1"))
    await (await KeyValue.open(nats, "RUN_SOURCES")).put("older-runs-are-noted", b"")
    await keeper.sync()
    return made


async def test_sources_of_runs_that_were_lost_are_noted_again(store: Store) -> None:
    async with store.open() as (nats, keeper):
        made = await runs_with_sources(nats, keeper)
        await nats.js.purge_stream("KV_RUN_SOURCES", subject="$KV.RUN_SOURCES.local.>")
        findings = await mended(keeper)
        assert by_place(findings) == {("RUN_SOURCES", "entries_missing"): (3, 3)}
        assert "which runs quote which documents" in findings[0].detail
        assert await keys(nats, "RUN_SOURCES") == made, (
            "without the mark: the orchestrator notes what it finds in the logs, too"
        )
        lives = [await life_of(nats, key) for key in made]
        assert lives == [3600 + 86_400, 3600 + 86_400, None], "of a thread's run for as long as the thread"
        assert await mended(keeper) == []


async def test_sources_are_noted_again_when_the_records_of_their_documents_were_lost_with_them(store: Store) -> None:
    async with store.open() as (nats, keeper):
        made = await runs_with_sources(nats, keeper)
        for bucket in ("DOCUMENTS", "RUN_SOURCES"):
            await nats.js.delete_stream(f"KV_{bucket}")
        assert by_place(await watch_over(nats, keeper).compare_at_start(store.rebuild)) == {
            ("DOCUMENTS", "entries_missing"): (2, 2),
            ("RUN_SOURCES", "entries_missing"): (3, 3),
        }
        assert await keys(nats, "RUN_SOURCES") == made


async def test_sources_of_what_was_deleted_meanwhile_are_not_missed(store: Store) -> None:
    async with store.open() as (nats, keeper):
        await runs_with_sources(nats, keeper)
        await note(nats, "local", "run.r0", "r1")
        await note(nats, "local", "document.d1", "r0")
        await keeper.sync()
        # As a deletion of d0 does, which r0 quotes, whose answer r1 was shown; r1 expires, and the thread of r9 is deleted.
        await (await KeyValue.open(nats, "DOCUMENTS")).purge("local.d0")
        await put_record(nats, "r0", forgotten_at=AT)
        await (await KeyValue.open(nats, "RUN_RECORDS", ttl_s=3600.0)).purge("local.r1")
        await (await KeyValue.open(nats, "THREADS")).purge(THREAD)
        await nats.js.purge_stream("KV_RUN_SOURCES", subject="$KV.RUN_SOURCES.local.>")
        assert await mended(keeper) == []


async def test_marks_of_what_is_being_forgotten_come_back_when_they_were_lost_and_not_when_they_expired(
    store: Store,
) -> None:
    async with store.open() as (nats, keeper):
        forgotten = await KeyValue.open(nats, "FORGOTTEN", ttl_s=86_400.0)
        for number in range(6):
            await forgotten.put(f"local.document.d{number}", b"")
        await keeper.sync()
        await nats.js.purge_stream("KV_FORGOTTEN", keep=4)  # from the front, as they expire
        assert await mended(keeper) == []
        await nats.js.purge_stream("KV_FORGOTTEN", subject="$KV.FORGOTTEN.local.document.d4")
        findings = await mended(keeper)
        assert by_place(findings) == {("FORGOTTEN", "entries_missing"): (1, 1)}
        assert await keys(nats, "FORGOTTEN") == [f"local.document.d{number}" for number in range(2, 6)]
