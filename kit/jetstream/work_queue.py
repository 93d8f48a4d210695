"""Work queues that lose nothing: a job is acknowledged only after its handler is done with it; a worker that dies or hangs loses it
to another. Nobody counts deliveries here: the server's count holds those that a stopping worker handed back and those that its own
restart made. What a failure is, and when to give a job up, only its handler knows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import NoStreamResponseError, NotFoundError
from opentelemetry import propagate, trace

from kit.errors import GroundworkError
from kit.jetstream.connection import Nats, cancellation_kept, translated_errors
from kit.principal import Principal, current_principal, use_principal
from kit.tokens import TokenSigner, TokenVerifier

_log = structlog.get_logger()
_tracer = trace.get_tracer(__name__)

PullSubscription = JetStreamContext.PullSubscription

_TOKEN = "Groundwork-Token"  # noqa: S105 - a header name
_FETCH_TIMEOUT_S = 5.0
_RETRY_AFTER_S = 1.0
_SILENCES_BEFORE_PROOF = 6
"""After so many empty fetches the server is asked whether queue and consumer still exist: an operator may have removed them."""
_DEDUPLICATION_WINDOW_S = 120.0


@dataclass(frozen=True)
class Job:
    """One delivery of a job. `delivery` counts them from 1, whatever ended the ones before; `principal` is who queued it, as the
    token that came with the job proves."""

    job_id: str
    data: bytes
    delivery: int
    principal: Principal


Handler = Callable[[Job], Awaitable[float | None]]
"""Does a job and returns None when it is done with, or the seconds after which it is to come back. Must be idempotent: a worker may
be killed between its work and the acknowledgement."""


@dataclass(frozen=True)
class WorkQueueConfig:
    """A queue: one stream, one durable consumer that all workers share."""

    stream: str
    subject: str
    """Subject prefix; jobs go to `<subject>.<suffix>`."""
    ack_wait_s: float = 15.0
    """A worker that has not been heard of for this long is taken for dead. It is heard of three times in it."""
    backoff_s: Sequence[float] = field(default=(1.0, 5.0, 15.0, 60.0))
    """Wait before the next delivery after the handler raised, by delivery; the last entry repeats."""


class WorkQueue:
    """Publishes jobs and hands them to workers, each job to one worker at a time."""

    def __init__(self, nats_: Nats, config: WorkQueueConfig, signer: TokenSigner, verifier: TokenVerifier) -> None:
        self._nats = nats_
        self._config = config
        self._signer = signer
        self._verifier = verifier

    @classmethod
    async def open(
        cls, nats_: Nats, config: WorkQueueConfig, signer: TokenSigner, verifier: TokenVerifier
    ) -> "WorkQueue":
        queue = cls(nats_, config, signer, verifier)
        await queue._ensure()
        return queue

    async def _ensure(self) -> None:
        await self._nats.ensure_stream(
            api.StreamConfig(
                name=self._config.stream,
                subjects=[f"{self._config.subject}.>"],
                retention=api.RetentionPolicy.WORK_QUEUE,
                storage=api.StorageType.FILE,
                duplicate_window=_DEDUPLICATION_WINDOW_S,
            )
        )

    async def publish(self, suffix: str, data: bytes, *, job_id: str) -> None:
        """Queues a job, once per `job_id` within two minutes. It is on the server's disk when this returns."""
        subject = f"{self._config.subject}.{suffix}"
        token = self._signer.sign_job(current_principal(), self._config.stream, subject, job_id, data)
        headers = {api.Header.MSG_ID: job_id, _TOKEN: token}
        propagate.inject(headers)
        with translated_errors(self._config.stream):
            try:
                await self._nats.js.publish(subject, data, headers=headers)
            except NoStreamResponseError:
                await self._ensure()
                await self._nats.js.publish(subject, data, headers=headers)

    async def pending(self) -> int:
        """Jobs in the queue, those being worked on included."""
        with translated_errors(self._config.stream):
            return int((await self._nats.js.stream_info(self._config.stream)).state.messages)

    async def consume(self, handler: Handler, *, concurrency: int) -> None:
        """Works until cancelled, on at most `concurrency` jobs at once.

        The handler runs as the principal that queued the job. A job whose handler raises comes back after the backoff, again and
        again: a handler that wants to give up says so by returning None. A job without a valid token (forged, of an earlier
        version, or signed with a key that was removed) is dropped and logged: whoever queues jobs looks for work that has none.
        """
        puller = _Puller(self._nats, self._config, self._ensure)
        slots = asyncio.Semaphore(concurrency)
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    await slots.acquire()
                    message = await puller.next()
                    if message is None:
                        slots.release()
                        continue
                    group.create_task(self._work(message, handler)).add_done_callback(lambda _: slots.release())
            finally:
                # Before jobs are handed back: a fetch that is still open would take them, and nobody would read it.
                await puller.close()

    async def _work(self, message: Msg, handler: Handler) -> None:
        try:
            job = self._job(message)
        except GroundworkError as error:
            _log.error("job_refused", stream=self._config.stream, subject=message.subject, error=error.message)
            await _quietly(message.term())
            return
        context = propagate.extract(message.headers or {})
        with (
            use_principal(job.principal),
            structlog.contextvars.bound_contextvars(tenant_id=job.principal.tenant_id, job_id=job.job_id),
            _tracer.start_as_current_span(f"{self._config.stream} job", context=context),
        ):
            try:
                async with self._heartbeats(message):
                    retry_after_s = await self._run(job, handler)
                await self._settle(message, retry_after_s)
            except asyncio.CancelledError:
                await _quietly(message.nak())  # a worker that is told to stop hands its job over at once
                raise
            except Exception as error:
                _log.warning("job_not_settled", error=repr(error))

    def _job(self, message: Msg) -> Job:
        """Raises Unauthenticated or PermissionDenied when the job's token is not valid."""
        headers = message.headers or {}
        job_id, token = headers.get(api.Header.MSG_ID, ""), headers.get(_TOKEN, "")
        principal = self._verifier.verify_job(token, self._config.stream, message.subject, job_id, message.data)
        return Job(job_id, message.data, message.metadata.num_delivered, principal)

    async def _run(self, job: Job, handler: Handler) -> float | None:
        try:
            return await handler(job)
        except Exception as error:
            _log.exception("job_handler_failed", delivery=job.delivery, error=repr(error))
            return self._backoff_s(job.delivery)

    async def _settle(self, message: Msg, retry_after_s: float | None) -> None:
        if retry_after_s is None:
            await message.ack_sync(timeout=_FETCH_TIMEOUT_S)
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


class _Puller:
    """The durable consumer as one worker pulls from it. Makes queue and consumer anew when they have vanished."""

    def __init__(self, nats_: Nats, config: WorkQueueConfig, ensure: Callable[[], Awaitable[None]]) -> None:
        self._nats = nats_
        self._config = config
        self._ensure = ensure
        self._subscription: PullSubscription | None = None
        self._silences = 0

    async def next(self) -> Msg | None:
        """The next message, or None when there was none for a while."""
        try:
            with cancellation_kept():
                if self._subscription is None:
                    self._subscription = await self._subscribe()
                (message,) = await self._subscription.fetch(1, timeout=_FETCH_TIMEOUT_S)
        except (TimeoutError, nats.errors.TimeoutError):
            await self._after_silence()
            return None
        except (nats.errors.Error, GroundworkError) as error:
            # The connection is lost, or the queue is: without a pause this would be asked a thousand times a second.
            _log.warning("queue_cannot_be_read", stream=self._config.stream, error=repr(error))
            await asyncio.sleep(_RETRY_AFTER_S)
            await self._prove()
            return None
        self._silences = 0
        return message

    async def close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await _quietly(subscription.unsubscribe())

    async def _subscribe(self) -> PullSubscription:
        config = api.ConsumerConfig(
            durable_name="workers",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=self._config.ack_wait_s,
            max_deliver=-1,
            max_ack_pending=10_000,  # jobs that wait for their next try are among them
        )
        with translated_errors(self._config.stream):
            return await self._nats.js.pull_subscribe(
                f"{self._config.subject}.>", durable="workers", stream=self._config.stream, config=config
            )

    async def _after_silence(self) -> None:
        self._silences += 1
        if self._silences % _SILENCES_BEFORE_PROOF == 0:
            await self._prove()

    async def _prove(self) -> None:
        """Whether the consumer is still there, as far as the server can be asked."""
        if not self._nats.nc.is_connected:
            return
        try:
            with translated_errors(self._config.stream):
                await self._nats.js.consumer_info(self._config.stream, "workers")
        except NotFoundError:
            _log.warning("queue_made_anew", stream=self._config.stream)
            await self.close()
            await self._ensure()
        except (nats.errors.Error, GroundworkError):
            return


async def _quietly(awaitable: Awaitable[None]) -> None:
    with contextlib.suppress(nats.errors.Error):
        await awaitable
