"""The event log in JetStream: stream RUNS, one subject a run. The server itself fences a second writer off, by the sequence that
an append expects to be the subject's last."""

import secrets
from collections.abc import AsyncIterator, Sequence

import nats.errors
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError

from kit.jetstream import Nats
from kit.jetstream.connection import translated_errors
from services.orchestrator.adapters.codec import event_from_proto, event_to_proto
from services.orchestrator.errors import FencedOff
from services.orchestrator.events import Done, RunEvent
from services.orchestrator.models import RunKey

STREAM = "RUNS"
_APPEND_TIMEOUT_S = 2.0
_RESUBSCRIBE_AFTER_S = 10.0
"""A follower that has heard nothing for this long subscribes anew: cheaper than proving that the old consumer still lives."""
_WRONG_LAST_SEQUENCE = (10071, 10164)
_DAY_S = 86_400.0


class JetStreamEventLog:
    """EventLog over one NATS connection."""

    def __init__(self, nats_: Nats) -> None:
        self._js = nats_.js
        # A lost ack is repaired by sending again: the id makes the server answer with the first one's position. It names
        # the writer, because two writers of one seq must not be taken for one.
        self._writer = secrets.token_hex(4)

    @classmethod
    async def open(cls, nats_: Nats, *, retention_days: float) -> "JetStreamEventLog":
        await nats_.ensure_stream(
            api.StreamConfig(
                name=STREAM,
                subjects=["runs.*.*"],
                storage=api.StorageType.FILE,
                max_age=retention_days * _DAY_S,
                allow_direct=True,
            )
        )
        return cls(nats_)

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        headers: dict[str, str] = {
            api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE: str(last_position),
            api.Header.MSG_ID: f"{key.run_id}:{event.seq}:{self._writer}",
        }
        data = event_to_proto(event).SerializeToString()
        with translated_errors("the event log"):
            for last_try in (False, True):
                try:
                    ack = await self._js.publish(_subject(key), data, timeout=_APPEND_TIMEOUT_S, headers=dict(headers))
                    return int(ack.seq)
                except APIError as error:
                    if error.err_code in _WRONG_LAST_SEQUENCE:
                        raise FencedOff(f"run {key.run_id} is written by another orchestrator") from error
                    raise
                except nats.errors.TimeoutError:
                    if last_try:
                        raise
        raise AssertionError("unreachable")

    async def read(self, key: RunKey) -> tuple[Sequence[RunEvent], int]:
        with translated_errors("the event log"):
            try:
                last = await self._js.get_last_msg(STREAM, _subject(key))
            except NotFoundError:
                return (), 0
            events: list[RunEvent] = []
            subscription = await self._subscribe(key, 1)
            try:
                while True:
                    message = await subscription.next_msg(timeout=_APPEND_TIMEOUT_S)
                    events.append(_decode(message))
                    if message.metadata.sequence.stream >= (last.seq or 0):
                        return events, message.metadata.sequence.stream
            finally:
                await subscription.unsubscribe()

    async def follow(self, key: RunKey, after_seq: int) -> AsyncIterator[RunEvent]:
        position = 0
        while True:
            with translated_errors("the event log"):
                subscription = await self._subscribe(key, position + 1)
            try:
                while True:
                    message = await subscription.next_msg(timeout=_RESUBSCRIBE_AFTER_S)
                    position = message.metadata.sequence.stream
                    event = _decode(message)
                    if event.seq > after_seq:
                        after_seq = event.seq
                        yield event
                    if isinstance(event.payload, Done):
                        return
            except nats.errors.TimeoutError:
                continue
            finally:
                await subscription.unsubscribe()

    async def _subscribe(self, key: RunKey, start: int) -> JetStreamContext.PushSubscription:
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start)
        return await self._js.subscribe(_subject(key), stream=STREAM, ordered_consumer=True, config=config)


def _subject(key: RunKey) -> str:
    return f"runs.{key.tenant_id}.{key.run_id}"


def _decode(message: Msg) -> RunEvent:
    return event_from_proto(pb.RunEvent.FromString(message.data))
