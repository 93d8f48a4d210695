"""Work queues on a real nats-server."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import nats.errors
import pytest
from opentelemetry import trace
from prometheus_client import REGISTRY, CollectorRegistry
from structlog.testing import capture_logs

from kit.access.keys import new_key
from kit.access.principal import Principal, current_principal, use_principal
from kit.jetstream import Job, Nats, WorkQueue
from kit.jetstream.queues import work_queue
from kit.jetstream.queues.backlog import BacklogGauges
from kit.jetstream.queues.work_queue import Handler
from kit.state import Queue
from kit.testing.harness import make_signer, make_verifier
from kit.testing.telemetry import recorded_spans

ANN = Principal("acme", "ann")
QUEUE = Queue("WORK", "work", ack_wait_s=60.0, backoff_s=(0.01,), refills_itself=True)


async def open_queue(jetstream: Nats, ack_wait_s: float = QUEUE.ack_wait_s) -> WorkQueue:
    return await WorkQueue.open(jetstream, replace(QUEUE, ack_wait_s=ack_wait_s), make_signer(), make_verifier())


async def consume_until(queue: WorkQueue, handler: Handler, done: asyncio.Event) -> None:
    worker = asyncio.create_task(queue.consume(handler, concurrency=2))
    try:
        async with asyncio.timeout(60):
            await done.wait()
            while await queue.pending():
                await asyncio.sleep(0.01)
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


async def test_job_runs_once_as_its_publisher_though_queued_twice(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, seen = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme.j1", b"data", job_id="j1")
        await queue.publish("acme.j1", b"data", job_id="j1")

    async def handler(job: Job) -> None:
        seen.append((job.job_id, job.data, job.delivery, current_principal()))
        done.set()

    await consume_until(queue, handler, done)
    assert seen == [("j1", b"data", 1, ANN)]


async def test_job_that_is_stored_is_published_also_when_workers_cannot_be_told(
    jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = await open_queue(jetstream)

    async def full(*_: object) -> None:
        raise nats.errors.OutboundBufferLimitError

    monkeypatch.setattr(queue, "_ring", full)
    with use_principal(ANN):
        await queue.publish("acme.j1", b"data", job_id="j1")
    assert await queue.pending() == 1


async def test_job_without_a_valid_token_is_dropped_and_others_go_on(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    with use_principal(ANN):
        await queue.publish("acme.seen", b"data", job_id="seen")
    real = await jetstream.js.get_last_msg(QUEUE.stream, f"{QUEUE.subject}.acme.seen")
    token = (real.headers or {})["Groundwork-Token"]
    subject = f"{QUEUE.subject}.globex.x"
    earlier_version = {"Groundwork-Tenant": "globex", "Groundwork-Subject": "bob", "Groundwork-Scopes": ""}
    await jetstream.js.publish(subject, b"data", headers={"Nats-Msg-Id": "old", **earlier_version})
    await jetstream.js.publish(subject, b"data", headers={"Nats-Msg-Id": "stolen", "Groundwork-Token": token})
    await jetstream.js.publish(subject, b"data")
    stranger = await WorkQueue.open(jetstream, QUEUE, make_signer(new_key("stranger")), make_verifier())
    with use_principal(Principal("globex", "bob")):
        await stranger.publish("globex.forged", b"data", job_id="forged")
        await queue.publish("globex.last", b"last", job_id="last")
    done, seen = asyncio.Event(), []

    async def handler(job: Job) -> None:
        seen.append((job.job_id, job.principal.tenant_id))
        if job.job_id == "last":
            done.set()

    with capture_logs() as logs:
        await consume_until(queue, handler, done)
    assert sorted(seen) == [("last", "globex"), ("seen", "acme")]
    assert len([each for each in logs if each["event"] == "job_refused"]) == 4


async def test_job_comes_back_when_its_handler_says_so_and_after_every_error(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, deliveries = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def handler(job: Job) -> float | None:
        deliveries.append(job.delivery)
        if job.delivery == 1:
            return 0.01
        if job.delivery < 25:
            raise ZeroDivisionError
        done.set()
        return None

    await consume_until(queue, handler, done)
    assert deliveries == list(range(1, 26)), "the queue gives no job up of its own accord"


async def test_long_job_is_not_given_to_another_worker(jetstream: Nats) -> None:
    ack_wait_s = 5.0
    queue = await open_queue(jetstream, ack_wait_s)
    done, starts = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def handler(job: Job) -> None:
        starts.append(job.delivery)
        await asyncio.sleep(1.5 * ack_wait_s)
        done.set()

    await consume_until(queue, handler, done)
    assert starts == [1]


async def test_job_of_a_stopped_worker_goes_to_another_at_once(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    started, done = asyncio.Event(), asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def hang(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    async def finish(job: Job) -> None:
        done.set()

    first = asyncio.create_task(queue.consume(hang, concurrency=1))
    await started.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    async with asyncio.timeout(50.0):
        await consume_until(queue, finish, done)


async def test_queue_that_an_operator_removed_is_made_anew(jetstream: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "_RETRY_AFTER_S", 0.05)
    queue = await open_queue(jetstream)
    done, first = asyncio.Event(), asyncio.Event()

    async def handler(job: Job) -> None:
        (first if job.job_id == "j1" else done).set()

    worker = asyncio.create_task(queue.consume(handler, concurrency=1))
    try:
        async with asyncio.timeout(60):
            with use_principal(ANN):
                await queue.publish("acme.j1", b"", job_id="j1")
                await first.wait()
                await jetstream.js.delete_stream(QUEUE.stream)
                await queue.publish("acme.j2", b"", job_id="j2")
            await done.wait()
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


async def test_failing_jobs_of_one_tenant_do_not_hold_up_anothers(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, order = asyncio.Event(), []
    with use_principal(ANN):
        for n in range(200):
            await queue.publish(f"acme.j{n}", b"acme", job_id=f"j{n}")

    async def handler(job: Job) -> float | None:
        order.append(job.data)
        if len(order) == 20:
            with use_principal(ANN):
                await queue.publish("bee.k1", b"bee", job_id="k1")
        if job.data == b"bee":
            done.set()
            return None
        return 0.01  # each of them comes back for ever

    worker = asyncio.create_task(queue.consume(handler, concurrency=2))
    try:
        async with asyncio.timeout(60):
            await done.wait()
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    assert len(order) < 30, "it was its turn after one or two of the others"


async def test_cancellation_that_nobody_asked_for_is_a_failure_and_waits_its_turn(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, deliveries = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def handler(job: Job) -> None:
        deliveries.append(job.delivery)
        if job.delivery == 1:
            raise asyncio.CancelledError
        done.set()

    with capture_logs() as logs:
        await consume_until(queue, handler, done)
    assert deliveries == [1, 2]
    assert [each["event"] for each in logs if each["log_level"] == "error"] == ["job_handler_failed"]


async def test_job_that_cannot_be_made_again_is_kept_when_its_token_is_not_valid(jetstream: Nats) -> None:
    queue = await WorkQueue.open(jetstream, replace(QUEUE, refills_itself=False), make_signer(), make_verifier())
    await jetstream.js.publish(f"{QUEUE.subject}.acme.old", b"")
    done = asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def handler(job: Job) -> None:
        done.set()

    worker = asyncio.create_task(queue.consume(handler, concurrency=1))
    async with asyncio.timeout(60):
        await done.wait()
        while await queue.pending() != 1:
            await asyncio.sleep(0.01)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert await queue.pending() == 1


async def test_jobs_that_rest_hold_no_place(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, rested = asyncio.Event(), set()
    with use_principal(ANN):
        for n in range(5):
            await queue.publish(f"acme.j{n}", b"", job_id=f"j{n}")
        await queue.publish("acme.last", b"", job_id="last")

    async def handler(job: Job) -> float | None:
        if job.job_id == "last":
            done.set()
            return None
        rested.add(job.job_id)
        return 3600.0

    worker = asyncio.create_task(queue.consume(handler, concurrency=1))
    try:
        async with asyncio.timeout(60):
            await done.wait()
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    assert len(rested) == 5


async def test_consumer_of_an_older_version_is_replaced_and_its_jobs_are_done(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    old = await jetstream.js.pull_subscribe(f"{QUEUE.subject}.>", durable="workers", stream=QUEUE.stream)
    done = asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")
    await old.fetch(1)  # in the hands of the older version

    async def handler(job: Job) -> None:
        done.set()

    await consume_until(queue, handler, done)
    await old.unsubscribe()


async def test_tenant_whose_name_is_no_name_for_a_consumer_has_one_all_the_same(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done = asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme/de.j1", b"", job_id="j1")

    async def handler(job: Job) -> None:
        done.set()

    await consume_until(queue, handler, done)


async def test_what_becomes_of_deliveries_is_counted(jetstream: Nats) -> None:
    queue, done = await open_queue(jetstream), asyncio.Event()
    before = {outcome: deliveries(outcome) for outcome in ("done", "retried", "failed", "handed_back")}
    waits = REGISTRY.get_sample_value("groundwork_queue_wait_seconds_count", {"queue": "WORK"}) or 0.0

    async def handler(job: Job) -> float | None:
        if job.delivery == 1:
            return 0.01
        if job.delivery == 2:
            raise RuntimeError
        done.set()
        return None

    with use_principal(ANN):
        await queue.publish("acme.one", b"", job_id="1")
    await consume_until(queue, handler, done)
    gained = {outcome: deliveries(outcome) - count for outcome, count in before.items()}
    assert gained == {"done": 1, "retried": 1, "failed": 1, "handed_back": 0}
    assert REGISTRY.get_sample_value("groundwork_queue_wait_seconds_count", {"queue": "WORK"}) == waits + 1
    assert REGISTRY.get_sample_value("groundwork_queue_jobs_in_hand", {"queue": "WORK"}) == 0


def deliveries(outcome: str) -> float:
    labels = {"queue": "WORK", "outcome": outcome}
    return REGISTRY.get_sample_value("groundwork_queue_jobs_total", labels) or 0.0


async def test_backlog_is_told_with_the_age_of_its_oldest_job(jetstream: Nats) -> None:
    queue, registry = await open_queue(jetstream), CollectorRegistry()
    gauges = BacklogGauges("probe", "told by a test", registry, now=lambda: datetime.now(UTC) + timedelta(hours=1))
    gauges.set(await queue.backlog())
    assert (registry.get_sample_value("probe_depth"), registry.get_sample_value("probe_oldest_seconds")) == (0, 0)
    with use_principal(ANN):
        await queue.publish("acme.one", b"", job_id="1")
        await queue.publish("globex.two", b"", job_id="2")
    gauges.set(await queue.backlog())
    assert registry.get_sample_value("probe_depth") == 2
    assert 3500 < (registry.get_sample_value("probe_oldest_seconds") or 0) < 3700


async def test_job_is_worked_on_in_the_trace_of_whoever_queued_it(jetstream: Nats) -> None:
    done = asyncio.Event()

    async def handler(_: Job) -> None:
        done.set()

    with recorded_spans() as spans:
        queue = await open_queue(jetstream)
        with use_principal(ANN), trace.get_tracer("test").start_as_current_span("upload") as upload:
            await queue.publish("acme.one", b"", job_id="1")
        await consume_until(queue, handler, done)
    (job,) = [span for span in spans.get_finished_spans() if span.name == "process WORK"]
    assert job.context is not None
    assert job.context.trace_id == upload.get_span_context().trace_id
