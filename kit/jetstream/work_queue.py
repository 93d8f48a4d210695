"""Work queues that lose nothing: a job is acknowledged only after its handler returned; a worker that dies or hangs loses it to
another; a job that cannot be done ends in the handler of the dead, with its reason."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from opentelemetry import propagate, trace

from kit.errors import GroundworkError
from kit.jetstream.connection import Nats, cancellation_kept, translated_errors
from kit.principal import Principal, current_principal, use_principal

_log = structlog.get_logger()
_tracer = trace.get_tracer(__name__)

PullSubscription = JetStreamContext.PullSubscription

_TENANT, _SUBJECT, _SCOPES = "Groundwork-Tenant", "Groundwork-Subject", "Groundwork-Scopes"
_FETCH_TIMEOUT_S = 5.0
_RETRY_AFTER_S = 1.0
_DEDUPLICATION_WINDOW_S = 120.0


@dataclass(frozen=True)
class Job:
    """One delivery of a job. `attempt` counts deliveries from 1; `principal` is who queued it."""

    job_id: str
    data: bytes
    attempt: int
    principal: Principal


@dataclass(frozen=True)
class WorkQueueConfig:
    """A queue: one stream, one durable consumer that all workers share."""

    stream: str
    subject: str
    """Subject prefix; jobs go to `<subject>.<suffix>`."""
    ack_wait_s: float = 15.0
    """A worker that has not been heard of for this long is taken for dead. It is heard of three times in it."""
    max_deliver: int = 20
    """Deliveries before a job is dead. A killed worker uses one up, so this is more than a few."""
    backoff_s: Sequence[float] = field(default=(1.0, 5.0, 15.0, 60.0))
    """Wait before the next delivery after a failure, by attempt; the last entry repeats."""


class WorkQueue:
    """Publishes jobs and hands them to workers, each job to one worker at a time."""

    def __init__(self, nats_: Nats, config: WorkQueueConfig) -> None:
        self._nats = nats_
        self._config = config

    @classmethod
    async def open(cls, nats_: Nats, config: WorkQueueConfig) -> "WorkQueue":
        await nats_.ensure_stream(
            api.StreamConfig(
                name=config.stream,
                subjects=[f"{config.subject}.>"],
                retention=api.RetentionPolicy.WORK_QUEUE,
                storage=api.StorageType.FILE,
                duplicate_window=_DEDUPLICATION_WINDOW_S,
            )
        )
        return cls(nats_, config)

    async def publish(self, suffix: str, data: bytes, *, job_id: str) -> None:
        """Queues a job, once per `job_id` within two minutes. It is on the server's disk when this returns."""
        principal = current_principal()
        headers = {
            api.Header.MSG_ID: job_id,
            _TENANT: principal.tenant_id,
            _SUBJECT: principal.subject,
            _SCOPES: " ".join(sorted(principal.scopes)),
        }
        propagate.inject(headers)
        with translated_errors(self._config.stream):
            await self._nats.js.publish(f"{self._config.subject}.{suffix}", data, headers=headers)

    async def pending(self) -> int:
        """Jobs in the queue, those being worked on included."""
        with translated_errors(self._config.stream):
            return int((await self._nats.js.stream_info(self._config.stream)).state.messages)

    async def consume(
        self,
        handler: Callable[[Job], Awaitable[None]],
        on_dead: Callable[[Job, GroundworkError | None], Awaitable[None]],
        *,
        concurrency: int,
    ) -> None:
        """Works until cancelled, on at most `concurrency` jobs at once.

        The handler runs as the principal that queued the job. It returns: the job is acknowledged. It raises something
        retryable, or something unknown: the job comes back after the backoff. It raises a permanent error, or this was the last
        delivery: `on_dead` is called (with None when workers died on it), then the job is dropped. Both must be
        idempotent: a worker may be killed between its work and the acknowledgement.
        """
        subscription = await self._subscribe()
        slots = asyncio.Semaphore(concurrency)
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    await slots.acquire()
                    message = await self._fetched(subscription)
                    if message is None:
                        slots.release()
                        continue
                    group.create_task(self._work(message, handler, on_dead)).add_done_callback(
                        lambda _: slots.release()
                    )
            finally:
                # Before jobs are handed back: a fetch that is still open would take them, and nobody would read it.
                await _quietly(subscription.unsubscribe())

    async def _subscribe(self) -> PullSubscription:
        config = api.ConsumerConfig(
            durable_name="workers",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=self._config.ack_wait_s,
            max_deliver=-1,
            max_ack_pending=1000,
        )
        with translated_errors(self._config.stream):
            return await self._nats.js.pull_subscribe(
                f"{self._config.subject}.>", durable="workers", stream=self._config.stream, config=config
            )

    async def _fetched(self, subscription: PullSubscription) -> Msg | None:
        """The next message, or None when there was none for a while."""
        try:
            with cancellation_kept():
                (message,) = await subscription.fetch(1, timeout=_FETCH_TIMEOUT_S)
        except (TimeoutError, nats.errors.TimeoutError):
            return None
        except nats.errors.Error as error:
            # The connection is lost, or the queue is: without a pause this would be asked a thousand times a second.
            _log.warning("queue_cannot_be_read", stream=self._config.stream, error=repr(error))
            await asyncio.sleep(_RETRY_AFTER_S)
            return None
        return message

    async def _work(
        self,
        message: Msg,
        handler: Callable[[Job], Awaitable[None]],
        on_dead: Callable[[Job, GroundworkError | None], Awaitable[None]],
    ) -> None:
        job = _to_job(message)
        context = propagate.extract(message.headers or {})
        with (
            use_principal(job.principal),
            structlog.contextvars.bound_contextvars(tenant_id=job.principal.tenant_id, job_id=job.job_id),
            _tracer.start_as_current_span(f"{self._config.stream} job", context=context),
        ):
            try:
                async with self._heartbeats(message):
                    settled = await self._run(job, handler, on_dead)
                await self._settle(message, settled)
            except asyncio.CancelledError:
                await _quietly(message.nak())  # a worker that is told to stop hands its job over at once
                raise
            except Exception as error:
                _log.warning("job_not_settled", error=repr(error))

    async def _run(
        self,
        job: Job,
        handler: Callable[[Job], Awaitable[None]],
        on_dead: Callable[[Job, GroundworkError | None], Awaitable[None]],
    ) -> float | None:
        """Returns None when the job is done with, else the seconds until it should come back."""
        if job.attempt > self._config.max_deliver:
            await on_dead(job, None)
            return None
        try:
            await handler(job)
        except GroundworkError as error:
            if error.retryable and job.attempt < self._config.max_deliver:
                _log.warning("job_will_be_retried", attempt=job.attempt, reason=error.reason, error=error.message)
                return error.retry_after_s or self._backoff_s(job.attempt)
            await on_dead(job, error)
        except Exception as error:
            if job.attempt < self._config.max_deliver:
                _log.exception("job_failed_unexpectedly", attempt=job.attempt, error=repr(error))
                return self._backoff_s(job.attempt)
            await on_dead(job, None)
        return None

    async def _settle(self, message: Msg, retry_after_s: float | None) -> None:
        if retry_after_s is None:
            await message.ack_sync(timeout=_FETCH_TIMEOUT_S)
        else:
            await message.nak(delay=retry_after_s)

    def _backoff_s(self, attempt: int) -> float:
        return self._config.backoff_s[min(attempt, len(self._config.backoff_s)) - 1]

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


def _to_job(message: Msg) -> Job:
    headers = message.headers or {}
    principal = Principal(
        headers.get(_TENANT, ""), headers.get(_SUBJECT, ""), frozenset(headers.get(_SCOPES, "").split())
    )
    return Job(headers.get(api.Header.MSG_ID, ""), message.data, message.metadata.num_delivered, principal)


async def _quietly(awaitable: Awaitable[None]) -> None:
    with contextlib.suppress(nats.errors.Error):
        await awaitable
