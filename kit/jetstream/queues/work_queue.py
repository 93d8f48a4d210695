"""Work queues that lose nothing: a job is acknowledged only after its handler is done with it; a worker that dies or hangs loses it
to another. Tenants take turns. Nobody counts deliveries here: the server's count holds those that a stopping worker handed back and
those that its own restart made. What a failure is, and when to give a job up, only its handler knows."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import APIError, NotFoundError
from opentelemetry.trace import SpanKind

from kit import deadline
from kit.access.principal import Principal, current_principal, use_principal
from kit.access.tokens import TokenSigner, TokenVerifier
from kit.errors import GroundworkError, Unavailable
from kit.jetstream.connection import Nats
from kit.jetstream.failures import translated_errors
from kit.jetstream.metrics import JOB_SECONDS, JOB_WAIT_SECONDS, JOBS, JOBS_IN_HAND
from kit.jetstream.opening import patient
from kit.jetstream.queues.backlog import BACKLOG_INTERVAL_S, Backlog, BacklogGauges
from kit.jetstream.queues.tenant_consumers import TenantConsumers
from kit.jetstream.queues.turns import Turns
from kit.observability.telemetry import TRACEPARENT, Attributes, continued_span, current_traceparent
from kit.process.waiting import FailureLogLimit
from kit.state import Queue

_log = structlog.get_logger()

_TOKEN = "Groundwork-Token"  # noqa: S105 - a header name
_RETRY_AFTER_S = 1.0
_REFUSED_AGAIN_AFTER_S = 600.0
_BELLS = "bells"
"""Workers hear on `bells.<subject>.<tenant>` that there is a job. Not on the job's own subject: a publisher whose stream is gone
would then get no error, since somebody listens."""
_LOOK_INTERVAL_S = 1.0
"""Between two looks at which tenants have jobs: how long a job waits that came back from a worker that died."""
_LONGEST_INTERVAL_S = 10.0
_LOOKS_SHARE = 0.02
"""Part of the time that these looks may take: one at ten thousand jobs takes a tenth of a second."""
_DEDUPLICATION_WINDOW_S = 120.0


@dataclass(frozen=True)
class Job:
    """One delivery of a job. `delivery` counts them from 1, whatever ended the ones before; `principal` is who queued it, as the
    token that came with the job proves."""

    job_id: str
    data: bytes
    delivery: int
    principal: Principal
    kind: str = ""
    """What its key was found to sign for, in a queue of several kinds."""


Handler = Callable[[Job], Awaitable[float | None]]
"""Does a job and returns None when it is done with, or the seconds after which it is to come back. Must be idempotent: a worker may
be killed between its work and the acknowledgement."""


def stream_config(queue: Queue) -> api.StreamConfig:
    """The stream of a queue as the server is to make it."""
    return api.StreamConfig(
        name=queue.stream,
        subjects=[queue.subjects],
        retention=api.RetentionPolicy.WORK_QUEUE,
        storage=api.StorageType.FILE,
        duplicate_window=_DEDUPLICATION_WINDOW_S,
    )


class WorkQueue:
    """Publishes jobs and hands them to workers, each job to one worker at a time."""

    def __init__(self, nats_: Nats, config: Queue, signer: TokenSigner, verifier: TokenVerifier) -> None:
        self._nats = nats_
        self._config = config
        self._signer = signer
        self._verifier = verifier

    @classmethod
    @patient
    async def open(cls, nats_: Nats, config: Queue, signer: TokenSigner, verifier: TokenVerifier) -> "WorkQueue":
        queue = cls(nats_, config, signer, verifier)
        await queue._ensure()
        return queue

    async def report_backlog(self, gauges: BacklogGauges) -> None:
        """Keeps the gauges until cancelled."""
        while True:
            try:
                gauges.set(await self.backlog())
            except GroundworkError as error:
                _log.debug("backlog_unknown", stream=self._config.stream, error=error.message)
            await asyncio.sleep(BACKLOG_INTERVAL_S)

    async def _ensure(self) -> None:
        await self._nats.ensure_stream(stream_config(self._config))

    async def publish(self, suffix: str, data: bytes, *, job_id: str) -> None:
        """Queues a job, once per `job_id` within two minutes. `suffix` begins with the lane whose turn it takes: the tenant, or
        its `bulk_lane`. It is on the server's disk when this returns."""
        subject = f"{self._config.subject}.{suffix}"
        token = self._signer.sign_job(current_principal(), self._config.stream, subject, job_id, data)
        headers = {api.Header.MSG_ID.value: job_id, _TOKEN: token}
        if traceparent := current_traceparent():
            headers[TRACEPARENT] = traceparent
        await self._nats.store(self._config.stream, subject, data, headers, make=self._ensure)
        await _quietly(self._ring(suffix.split(".", 1)[0]))

    async def _ring(self, tenant: str) -> None:
        """Tells workers of a job. One that is not heard is found by their next look."""
        await self._nats.nc.publish(f"{_BELLS}.{self._config.subject}.{tenant}")

    async def pending(self) -> int:
        """Jobs in the queue, those being worked on included."""
        return (await self.backlog()).jobs

    async def backlog(self) -> Backlog:
        """What is in the queue. Raises Unavailable."""
        state = await self._nats.state(self._config.stream)
        jobs = int(state["messages"])
        return Backlog(jobs, datetime.fromisoformat(state["first_ts"]) if jobs else None)

    async def consume(self, handler: Handler, *, concurrency: int) -> None:
        """Works until cancelled, on at most `concurrency` jobs at once.

        The handler runs as the principal that queued the job. A job whose handler raises comes back after the backoff, again and
        again: a handler that wants to give up says so by returning None. A job without a valid token (forged, of an earlier
        version, or signed with a key that was removed) is not done, and logged.
        """
        puller = _Puller(self._nats, self._config, self._ensure, concurrency)
        async with asyncio.TaskGroup() as group, puller.listening():
            while True:
                tenant, message = await puller.next()
                task = group.create_task(self._work(tenant, message, handler))
                task.add_done_callback(partial(puller.done, tenant))

    async def _work(self, tenant: str, message: Msg, handler: Handler) -> float | None:
        """Does a job; returns after how many seconds it comes back, or None when it is settled or another's."""
        try:
            job = self._job(message)
        except GroundworkError as error:
            JOBS.labels(self._config.stream, "refused").inc()
            _log.error("job_refused", stream=self._config.stream, subject=message.subject, error=error.message)
            await _quietly(message.term() if self._config.refills_itself else message.nak(delay=_REFUSED_AGAIN_AFTER_S))
            return None
        with (
            use_principal(job.principal),
            structlog.contextvars.bound_contextvars(tenant_id=job.principal.tenant_id, job_id=job.job_id),
            self._measured(message) as delivery,
        ):
            try:
                async with self._heartbeats(message):
                    retry_after_s = await self._run(job, handler, delivery)
                    await self._settle(message, retry_after_s)
            except asyncio.CancelledError:
                delivery.outcome = "handed_back"
                await _quietly(message.nak())  # a worker that has to stop hands its job over at once
                await _quietly(self._ring(tenant))
                raise
            except Exception as error:
                delivery.outcome = "unsettled"
                _log.warning("job_not_settled", error=repr(error))
                return None
        return retry_after_s

    @contextlib.contextmanager
    def _measured(self, message: Msg) -> Iterator["_Delivery"]:
        """Traces and measures the work on a delivery."""
        queue, metadata = self._config.stream, message.metadata
        attributes: Attributes = {
            "messaging.system": "nats",
            "messaging.operation.type": "process",
            "messaging.destination.name": queue,
            "groundwork.job.delivery": metadata.num_delivered,
        }
        traceparent = (message.headers or {}).get(TRACEPARENT, "")
        began, in_hand, delivery = time.perf_counter(), JOBS_IN_HAND.labels(queue), _Delivery()
        if metadata.num_delivered == 1:
            JOB_WAIT_SECONDS.labels(queue).observe(max(0.0, time.time() - metadata.timestamp.timestamp()))
        in_hand.inc()
        try:
            with continued_span(f"process {queue}", traceparent, attributes, SpanKind.CONSUMER) as span:
                yield delivery
                span.set_attribute("groundwork.job.outcome", delivery.outcome)
        finally:
            in_hand.dec()
            JOBS.labels(queue, delivery.outcome).inc()
            JOB_SECONDS.labels(queue).observe(time.perf_counter() - began)

    def _job(self, message: Msg) -> Job:
        """Raises Unauthenticated or PermissionDenied when the job's token is not valid."""
        headers = message.headers or {}
        principal = verified_principal(self._verifier, self._config, message.subject, headers, message.data)
        job_id, kind = headers.get(api.Header.MSG_ID, ""), self._config.kind_of(message.subject)
        return Job(job_id, message.data, message.metadata.num_delivered, principal, kind)

    async def _run(self, job: Job, handler: Handler, delivery: "_Delivery") -> float | None:
        try:
            retry_after_s = await handler(job)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            _log.exception("job_handler_failed", delivery=job.delivery, error="cancelled from within")
            delivery.outcome = "failed"
            return self._backoff_s(job.delivery)
        except Exception as error:
            _log.exception("job_handler_failed", delivery=job.delivery, error=repr(error))
            delivery.outcome = "failed"
            return self._backoff_s(job.delivery)
        if retry_after_s is not None:
            delivery.outcome = "retried"
        return retry_after_s

    async def _settle(self, message: Msg, retry_after_s: float | None) -> None:
        if retry_after_s is None:
            if self._config.is_erased:  # first: nobody would come back for what is acknowledged
                try:
                    with deadline.within(self._config.ack_wait_s / 2):
                        await self._nats.delete(self._config.stream, message.metadata.sequence.stream)
                except Unavailable as error:  # to do the job again would be worse
                    _log.warning("job_not_erased", stream=self._config.stream, error=error.message)

            async def acknowledge(timeout_s: float) -> None:
                await self._nats.nc.request(message.reply, Msg.Ack.Ack, timeout=timeout_s)

            with deadline.within(self._config.ack_wait_s):  # then it comes back anyway
                await self._nats.persist(self._config.stream, acknowledge)
        else:
            await message.nak(delay=retry_after_s)

    def _backoff_s(self, delivery: int) -> float:
        return self._config.backoff_s[min(delivery, len(self._config.backoff_s)) - 1]

    @contextlib.asynccontextmanager
    async def _heartbeats(self, message: Msg) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                await asyncio.sleep(self._config.ack_wait_s / 3)
                await _quietly(message.in_progress())

        task = asyncio.create_task(beat())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@dataclass
class _Delivery:
    """What has become of a delivery so far."""

    outcome: str = "done"


def verified_principal(
    verifier: TokenVerifier, config: Queue, subject: str, headers: Mapping[str, str], data: bytes
) -> Principal:
    """Who queued a job, as it lies in its stream. Raises Unauthenticated or PermissionDenied when its token is not valid."""
    token, job_id, kind = headers.get(_TOKEN, ""), headers.get(api.Header.MSG_ID, ""), config.kind_of(subject)
    return verifier.verify_job(token, config.stream, subject, job_id, data, kind=kind)


class _Puller:
    """The queue as one worker pulls from it. Hears of new jobs as they are published, and looks every second or so for those that
    came back from workers that died. Makes the queue anew when it has vanished."""

    def __init__(self, nats_: Nats, config: Queue, ensure: Callable[[], Awaitable[None]], concurrency: int) -> None:
        self._nats = nats_
        self._config = config
        self._ensure = ensure
        self._clock = asyncio.get_running_loop().time
        self._slots = asyncio.Semaphore(concurrency)
        self._consumers = TenantConsumers(nats_, config.stream, config.subject, config.ack_wait_s)
        self._turns = Turns(concurrency, self._clock)
        self._changed = asyncio.Event()
        self._look_at = 0.0
        self._complaints = FailureLogLimit()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Hears of jobs as they are published, for the block."""

        async def heard(message: Msg) -> None:
            self._turns.may_have([message.subject.rsplit(".", 1)[1]])
            self._changed.set()

        with translated_errors(self._config.stream):
            subscription = await self._nats.nc.subscribe(f"{_BELLS}.{self._config.subject}.*", cb=heard)
        try:
            yield
        finally:
            await _quietly(subscription.unsubscribe())

    async def next(self) -> tuple[str, Msg]:
        """The next job and its tenant, once there is one and a place for it. `done` gives the place back."""
        await self._slots.acquire()
        try:
            while True:
                self._changed.clear()
                began = self._clock()
                try:
                    found = await self._take()
                except (nats.errors.Error, GroundworkError, NotFoundError) as error:
                    # The connection is lost, or the queue is: without a pause this would be asked a thousand times a second.
                    if self._complaints.is_due():
                        _log.warning("queue_cannot_be_read", stream=self._config.stream, error=repr(error))
                    await self._nats.servers.failed(began)
                    await asyncio.sleep(_RETRY_AFTER_S)
                    await self._prove()
                    continue
                if self._complaints.is_over():
                    _log.info("queue_read_again", stream=self._config.stream)
                if found is not None:
                    return found
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._turns.wait_s(max(0.0, self._look_at - self._clock()))):
                        await self._changed.wait()
        except BaseException:
            self._slots.release()
            raise

    def done(self, tenant: str, task: "asyncio.Task[float | None]") -> None:
        """Gives back the place of a job, which itself comes back after as many seconds as its task returned."""
        self._turns.done(tenant)
        if not task.cancelled() and task.exception() is None and (retry_after_s := task.result()) is not None:
            self._turns.comes_back(tenant, retry_after_s)
        self._slots.release()
        self._changed.set()

    async def _take(self) -> tuple[str, Msg] | None:
        await self._look()
        while (tenant := self._turns.next()) is not None:
            message = await self._consumers.take(tenant)
            if message is not None:
                self._turns.took(tenant)
                return tenant, message
            self._turns.nothing(tenant)
        return None

    async def _look(self) -> None:
        began = self._clock()
        if began < self._look_at:
            return
        if await self._consumers.job_count() > self._turns.in_hand:
            self._turns.may_have(await self._consumers.tenants())
        ended = self._clock()
        self._look_at = ended + min(max(_LOOK_INTERVAL_S, (ended - began) / _LOOKS_SHARE), _LONGEST_INTERVAL_S)

    async def _prove(self) -> None:
        """Makes queue and consumers anew if they are gone, as far as the server can be asked."""
        if not self._nats.nc.is_connected:
            return
        try:
            with translated_errors(self._config.stream):
                await self._nats.js.stream_info(self._config.stream)
        except NotFoundError:
            _log.warning("queue_made_anew", stream=self._config.stream)
            with contextlib.suppress(nats.errors.Error, APIError, GroundworkError):  # tried again soon
                await self._ensure()
            self._consumers.forget()
        except (nats.errors.Error, GroundworkError):
            return


async def _quietly(awaitable: Awaitable[None]) -> None:
    with contextlib.suppress(nats.errors.Error):
        await awaitable
