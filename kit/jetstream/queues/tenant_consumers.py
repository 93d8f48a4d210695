"""Taking jobs from a work queue, tenant by tenant: a durable consumer for each, so that what rests or piles up in one is in nobody
else's way. Consumers are made when first needed and vanish when a tenant has had no job for a while."""

import hashlib
import json
import re

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import APIError, NotFoundError

from kit.errors import Unavailable
from kit.jetstream.connection import Nats
from kit.jetstream.failures import translated_errors
from kit.jetstream.streams import subject_counts

_log = structlog.get_logger()

_IDLE_LIFE_S = 3600.0
"""A consumer that nobody asked for so long is removed by the server; its jobs stay in the stream. Jobs rest ten minutes at most."""
_TAKE_TIMEOUT_S = 2.0
"""It answers at once, also that there is nothing, unless it is on a server that hangs or is cut off."""
_OLD_CONSUMER = "workers"
"""All tenants' until 2026-11: a work queue refuses a second consumer for the same subjects."""
_CONSUMER_NAME = re.compile(r"[A-Za-z0-9_=-]{1,64}")


class TenantConsumers:
    """One queue's consumers. `subject` is the queue's prefix: jobs are on `<subject>.<tenant>.<rest>`."""

    def __init__(self, nats_: Nats, stream: str, subject: str, ack_wait_s: float) -> None:
        self._nats = nats_
        self._stream = stream
        self._subject = subject
        self._ack_wait_s = ack_wait_s
        self._made: set[str] = set()

    async def take(self, tenant: str) -> Msg | None:
        """A job of the tenant, or None when none is ready. Raises Unavailable, and NotFoundError when the queue is gone."""
        with translated_errors(self._stream):
            self._nats.require_connection()
            if tenant not in self._made:
                await self._make(tenant)
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{consumer_name(tenant)}"
            request = json.dumps({"batch": 1, "no_wait": True}).encode()
            # Old style: an inbox of its own for the answer, since a job comes under the subject that it was published on.
            try:
                message = await self._nats.nc.request(subject, request, timeout=_TAKE_TIMEOUT_S, old_style=True)
            except nats.errors.NoRespondersError:
                self._made.discard(tenant)  # the server removed the consumer, or is starting
                return None
        return None if api.Header.STATUS in (message.headers or {}) else message

    async def job_count(self) -> int:
        """Jobs in the queue; those being worked on count. Raises as `take`."""
        with translated_errors(self._stream):
            self._nats.require_connection()
            return int((await self._nats.js.stream_info(self._stream)).state.messages)

    async def tenants(self) -> set[str]:
        """Tenants that have jobs in the queue; those being worked on count. Raises Unavailable, and DataLoss when it is gone."""
        start = len(self._subject) + 1
        subjects = await subject_counts(self._nats, self._stream, f"{self._subject}.>")
        return {subject[start:].split(".", 1)[0] for subject in subjects}

    def forget(self) -> None:
        """The queue was made anew: so are its consumers, when they are needed."""
        self._made.clear()

    async def _make(self, tenant: str) -> None:
        config = api.ConsumerConfig(
            durable_name=consumer_name(tenant),
            filter_subject=f"{self._subject}.{tenant}.>",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=self._ack_wait_s,
            max_deliver=-1,
            max_ack_pending=-1,  # jobs that wait for their next try are among them
            inactive_threshold=_IDLE_LIFE_S,
        )
        try:
            await self._nats.js.add_consumer(self._stream, config)
        except NotFoundError:
            raise
        except APIError as error:
            if not await self._removed_old():
                raise Unavailable(f"the queue {self._stream} cannot be read: {error.description}") from error
            await self._nats.js.add_consumer(self._stream, config)
        self._made.add(tenant)

    async def _removed_old(self) -> bool:
        try:
            await self._nats.js.delete_consumer(self._stream, _OLD_CONSUMER)
        except NotFoundError:
            return False
        _log.info("queue_consumer_replaced", stream=self._stream)
        return True


def consumer_name(tenant: str) -> str:
    """The tenant where a consumer may be called so, else a hash of it."""
    return tenant if _CONSUMER_NAME.fullmatch(tenant) else hashlib.sha256(tenant.encode()).hexdigest()[:40]
