"""An open connection (kit.jetstream.opening). Questions and writes that are harmless to repeat are repeated while the cluster
elects a leader; what then has no answer fails with Unavailable."""

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import count
from typing import Any, TypeVar

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError
from opentelemetry.trace import INVALID_SPAN, SpanKind

from kit import deadline
from kit.jetstream.cluster import ServerChoice
from kit.jetstream.failures import WRONG_LAST_SEQUENCE, StoreSilent, replicas_explained, translated_errors
from kit.jetstream.metrics import FAILED_WRITES, REPETITIONS, WRITE_SECONDS
from kit.observability.telemetry import Attributes, begun_span, note_error
from kit.process.waiting import Waiting

_log = structlog.get_logger()
T = TypeVar("T")

REQUEST_TIMEOUT_S = 5.0
"""Longest wait for one JetStream answer that is not asked for again."""
PATIENCE_S = 12.0
"""How long the same is asked again. A NATS cluster that loses the leader of a stream elects another after 4 to 9 s (raft.go of
nats-server: minElectionTimeout, maxElectionTimeout); nothing can be set there."""
_FIRST_TRY_TIMEOUT_S, _LONGEST_TRY_TIMEOUT_S = 0.5, 2.0
"""How long the first of several answers is waited for, and twice as long each time. An ack takes 0.4 ms on a healthy server, 0.8 ms
of three; what reaches a server that just ceased to be the leader is never answered."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.2
_CHECK_TIMEOUT_S = 1.5
"""Shorter than those who check wait, so that a server that says nothing is noticed and left."""

_STREAM_NAME_IN_USE = 10058
_STREAM_NOT_FOUND = 10059
_DELETE_FAILED, _SEQUENCE_NOT_FOUND = 10057, 10043
_NOT_THERE = "no message found"


@contextmanager
def _written(stream: str, size_bytes: int, *, is_span: bool) -> Iterator[None]:
    """Traces and measures a write."""
    began = time.perf_counter()
    failed = FAILED_WRITES.labels(stream)  # there from the first write on, so that the first failure is an increase
    attributes: Attributes = {
        "messaging.system": "nats",
        "messaging.operation.type": "send",
        "messaging.destination.name": stream,
        "messaging.message.body.size": size_bytes,
    }
    span = begun_span(f"send {stream}", attributes, SpanKind.PRODUCER) if is_span else INVALID_SPAN
    try:
        yield
    except Exception as error:
        if not (isinstance(error, APIError) and error.err_code in WRONG_LAST_SEQUENCE):
            failed.inc()
            note_error(span, error)
        raise
    finally:
        span.end()
    WRITE_SECONDS.labels(stream).observe(time.perf_counter() - began)


@dataclass(frozen=True)
class Nats:
    """One connection and its JetStream context."""

    nc: Client
    js: JetStreamContext
    servers: ServerChoice
    replicas: int = 1
    """On how many servers whatever is made over this connection is kept."""
    waiting: Waiting | None = None
    """Where it is said that what is being opened is waited for; without it, opening raises Unavailable instead of waiting."""

    @property
    def reconnections(self) -> int:
        """How often the connection was made anew: the server may be another since, or may have lost its last seconds."""
        return self.nc.stats["reconnects"]

    async def check(self) -> None:
        """Raises Unavailable unless the server answers: for readiness."""
        began = asyncio.get_running_loop().time()
        try:
            with translated_errors("NATS"):
                await self._asked("INFO", {}, _CHECK_TIMEOUT_S)
        except StoreSilent:
            await self.servers.failed(began)
            raise

    async def ensure_stream(self, config: api.StreamConfig) -> None:
        """Makes the stream, or brings an existing one to `config`; what `config` does not name stays as it is. It is kept on
        `replicas` servers, or on as many as it was if they are more: another process may know of more.

        Safe to call from several processes at once. Raises Unavailable, also while too few servers have joined the cluster, and
        FailedPrecondition when there is no cluster.
        """
        name = config.name or ""
        config.num_replicas = self.replicas
        with replicas_explained(name, self.replicas):
            try:
                await self.persist(
                    f"stream {name}",
                    lambda timeout_s: self._asked(f"STREAM.CREATE.{name}", config.as_dict(), timeout_s),
                )
            except APIError as error:
                if error.err_code != _STREAM_NAME_IN_USE:
                    raise
                await self.persist(f"stream {name}", lambda timeout_s: self._bring_to(config, timeout_s))

    async def has_stream(self, name: str) -> bool:
        """Raises as `persist`."""
        return bool(await self._config(name))

    async def denies_deletion(self, name: str) -> bool:
        """Whether the stream is there and lets no message be deleted by its position: that can never be changed. Raises as
        `persist`."""
        return bool((await self._config(name)).get("deny_delete"))

    async def _config(self, name: str) -> dict[str, Any]:
        """How the server has a stream; empty where there is none."""

        async def ask(timeout_s: float) -> dict[str, Any]:
            config: dict[str, Any] = (await self._asked(f"STREAM.INFO.{name}", {}, timeout_s))["config"]
            return config

        try:
            return await self.persist(f"stream {name}", ask)
        except APIError as error:
            if error.err_code != _STREAM_NOT_FOUND:
                raise
            return {}

    async def last_position(self, name: str) -> int:
        """Of the newest message of a stream, also of one that is gone since; 0 when there was none. Raises as `persist`."""

        return int((await self.state(name))["last_seq"])

    async def state(self, name: str) -> dict[str, Any]:
        """Of a stream, as the server tells it: messages, first_ts, last_seq and more. Raises as `persist`."""

        async def ask(timeout_s: float) -> dict[str, Any]:
            state: dict[str, Any] = (await self._asked(f"STREAM.INFO.{name}", {}, timeout_s))["state"]
            return state

        return await self.persist(f"stream {name}", ask)

    async def _bring_to(self, config: api.StreamConfig, timeout_s: float) -> None:
        # As the server writes it: the client's type lacks what newer servers know, and would reset it.
        found = (await self._asked(f"STREAM.INFO.{config.name}", {}, timeout_s))["config"]
        named = {each.name for each in fields(config) if getattr(config, each.name) != each.default}
        wanted = found | {key: value for key, value in config.as_dict().items() if key in named}
        wanted["num_replicas"] = max(self.replicas, found["num_replicas"])
        if wanted != found:
            await self._asked(f"STREAM.UPDATE.{config.name}", wanted, timeout_s)
            if wanted["num_replicas"] > found["num_replicas"]:
                _log.info("stream_replicas_raised", stream=config.name, replicas=wanted["num_replicas"])

    async def _asked(self, question: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Raises APIError, ConnectionReconnectingError."""
        self.require_connection()
        message = await self.nc.request(f"$JS.API.{question}", json.dumps(body).encode(), timeout=timeout_s)
        answer: dict[str, Any] = json.loads(message.data)
        if "error" in answer:
            raise APIError.from_error(answer["error"])
        return answer

    def require_connection(self) -> None:
        """Raises ConnectionReconnectingError. The client would keep what it is given until it is connected again: a write would be
        made long after it was said to have failed, a job be given to a caller that waits for it no more."""
        if not self.nc.is_connected:
            raise nats.errors.ConnectionReconnectingError

    async def persist(self, what: str, ask: Callable[[float], Awaitable[T]]) -> T:
        """What `ask` returns, called with the seconds that it may take, and called again while the store does not answer: for
        PATIENCE_S or until the deadline of the request in hand. While there is no connection nothing is asked, and the patience
        counts from when it was lost: a later caller gets the error soon. `ask` must be harmless to repeat. Raises Unavailable,
        naming `what`, and what `ask` raises."""
        clock = asyncio.get_running_loop().time
        began = clock()
        give_up_at = began + (deadline.bounded_timeout_s(PATIENCE_S) or 0.0)
        if (lost_at := self.servers.lost_at) is not None:
            give_up_at = min(give_up_at, max(began + _FIRST_TRY_TIMEOUT_S, lost_at + PATIENCE_S))
        try_s, pause_s = _FIRST_TRY_TIMEOUT_S, _FIRST_PAUSE_S
        while True:
            try:
                with translated_errors(what):
                    self.require_connection()
                    return await ask(max(_FIRST_PAUSE_S, min(try_s, give_up_at - clock())))
            except StoreSilent as error:
                _log.debug(
                    "nats_asked_again", what=what, after_s=round(clock() - began, 2), error=repr(error.__cause__)
                )
                if self.nc.is_closed or clock() + pause_s >= give_up_at:
                    raise
            REPETITIONS.inc()
            await self.servers.failed(began)
            await asyncio.sleep(pause_s)
            try_s, pause_s = min(2 * try_s, _LONGEST_TRY_TIMEOUT_S), min(2 * pause_s, _LONGEST_PAUSE_S)

    async def store(
        self,
        stream: str,
        subject: str,
        data: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        ttl_s: float | None = None,
        make: Callable[[], Awaitable[None]] | None = None,
        is_part: bool = False,
    ) -> int:
        """Appends a message to the stream; returns its position. It is stored once, however often it had to be sent: by its
        Nats-Msg-Id, made here unless `headers` has one. `make` makes the stream, should it be gone. One that `is_part` of something
        larger is no span of its own. Raises as `persist`."""
        whole = {api.Header.MSG_ID.value: secrets.token_hex(8), **(headers or {})}
        makers = [] if make is None else [make]
        tries = count()

        async def send(timeout_s: float) -> int:
            is_repeated = next(tries) > 0
            # Copied: the client adds to the headers that it is given.
            publish = self.js.publish(subject, data, timeout=timeout_s, headers=dict(whole), msg_ttl=ttl_s)
            try:
                return (await publish).seq
            except NoStreamResponseError:  # or it has no leader now
                if makers:
                    await makers.pop()()
                raise
            except APIError as error:
                # A server that is alone looks at the expected sequence first, and only then whether it has the message already.
                if not is_repeated or error.err_code not in WRONG_LAST_SEQUENCE:
                    raise
                with suppress(NotFoundError):
                    last = await self.last_message(stream, subject)
                    if (last.headers or {}).get(api.Header.MSG_ID.value) == whole[api.Header.MSG_ID.value]:
                        return last.seq or 0
                raise

        with _written(stream, len(data), is_span=not is_part):
            position = await self.persist(f"stream {stream}", send)
        self.servers.stored()
        return position

    async def last_message(self, stream: str, subject: str) -> api.RawStreamMsg:
        """The last one on a subject or pattern that the stream's leader has. Raises as `persist`, and NotFoundError."""

        async def ask(timeout_s: float) -> api.RawStreamMsg:
            async with asyncio.timeout(timeout_s):
                return await self.js.get_msg(stream, subject=subject, direct=False)

        return await self.persist(f"stream {stream}", ask)

    async def delete(self, stream: str, position: int) -> None:
        """Removes the message at `position`; harmless when it is gone. Raises as `persist`."""

        async def ask(timeout_s: float) -> None:
            async with asyncio.timeout(timeout_s):
                try:
                    await self.js.delete_msg(stream, position)
                except APIError as error:
                    is_failed_only = error.err_code == _DELETE_FAILED and _NOT_THERE not in (error.description or "")
                    if error.err_code not in (_DELETE_FAILED, _SEQUENCE_NOT_FOUND) or is_failed_only:
                        raise

        await self.persist(f"stream {stream}", ask)

    async def purge(self, stream: str, subject: str, *, keep: int | None = None) -> None:
        """Removes what is stored on a subject or pattern, but for the last `keep`. Raises as `persist`, and NotFoundError."""

        async def ask(timeout_s: float) -> None:
            async with asyncio.timeout(timeout_s):
                await self.js.purge_stream(stream, subject=subject, keep=keep)

        await self.persist(f"stream {stream}", ask)
