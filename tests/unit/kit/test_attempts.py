"""When a call is made again: the patience of a channel, and streams of requests that are begun anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import pytest
from groundwork.ingest.v1.ingest_pb2 import UploadDocumentRequest
from grpc import ChannelConnectivity as State

from kit.rpc.attempts import Requests
from kit.rpc.connection import Connection

NEVER_S = 600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeChannel:
    """A channel whose state the test sets."""

    def __init__(self, state: State) -> None:
        self.state = state

    def get_state(self, try_to_connect: bool = False) -> State:
        return self.state


def connection(channel: FakeChannel, clock: Clock, patience_s: float) -> Connection:
    return Connection(lambda _: cast("grpc.aio.Channel", channel), "127.0.0.1:1", patience_s, clock=clock)


async def test_who_calls_long_after_the_last_server_was_lost_does_not_wait() -> None:
    channel, clock = FakeChannel(State.TRANSIENT_FAILURE), Clock()
    lost = connection(channel, clock, NEVER_S)
    assert not await lost.ready(0.0)  # notes the loss
    clock.now += NEVER_S
    assert not await lost.ready(None)


async def test_patience_begins_anew_with_each_loss() -> None:
    channel, clock = FakeChannel(State.TRANSIENT_FAILURE), Clock()
    lost = connection(channel, clock, NEVER_S)
    assert not await lost.ready(0.0)
    channel.state = State.READY
    assert await lost.ready(None)
    channel.state = State.TRANSIENT_FAILURE
    clock.now += NEVER_S
    waiting = asyncio.ensure_future(lost.ready(None))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    waiting.cancel()


async def test_an_idle_channel_has_lost_nothing() -> None:
    channel, clock = FakeChannel(State.IDLE), Clock()
    idle = connection(channel, clock, NEVER_S)
    assert not await idle.ready(0.0)
    clock.now += 2 * NEVER_S
    waiting = asyncio.ensure_future(idle.ready(None))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    waiting.cancel()


def piece(text: str) -> UploadDocumentRequest:
    return UploadDocumentRequest(data=text.encode())


async def source(*texts: str, failure: Exception | None = None) -> AsyncIterator[UploadDocumentRequest]:
    for text in texts:
        yield piece(text)
    if failure is not None:
        raise failure


async def taken(requests: AsyncIterator[Any], count: int) -> list[str]:
    return [(await anext(requests)).data.decode() for _ in range(count)]


async def rest(requests: AsyncIterator[Any]) -> list[str]:
    return [request.data.decode() async for request in requests]


async def test_a_stream_begun_again_gives_the_same_from_the_first() -> None:
    requests = Requests(source("a", "b", "c"))
    assert await taken(requests.begin(), 2) == ["a", "b"]
    assert requests.can_begin_again
    assert await rest(requests.begin()) == ["a", "b", "c"]


async def test_a_stream_may_have_been_carried_out_once_its_last_request_was_given_out() -> None:
    requests = Requests(source("a", "end"), lambda request: request.data == b"end")
    attempt = requests.begin()
    assert await taken(attempt, 1) == ["a"]
    assert not requests.may_be_whole
    assert await taken(attempt, 1) == ["end"]
    assert requests.may_be_whole
    assert Requests(source("a")).may_be_whole, "where nothing is known of the last one"


async def test_requests_that_are_there_already_need_no_async_iterator() -> None:
    requests = Requests(iter([piece("a"), piece("b")]))
    assert await taken(requests.begin(), 1) == ["a"]
    assert await rest(requests.begin()) == ["a", "b"]


async def test_an_empty_stream_stays_empty() -> None:
    assert await rest(Requests(source()).begin()) == []


async def test_what_an_abandoned_attempt_still_reads_is_not_lost() -> None:
    gate = asyncio.Event()

    async def slow() -> AsyncIterator[UploadDocumentRequest]:
        yield piece("a")
        yield piece("b")
        await gate.wait()
        yield piece("c")

    requests = Requests(slow())
    abandoned = requests.begin()
    assert await taken(abandoned, 2) == ["a", "b"]
    reading = asyncio.ensure_future(anext(abandoned, None))
    await asyncio.sleep(0)
    again = asyncio.ensure_future(rest(requests.begin()))
    await asyncio.sleep(0)
    gate.set()
    assert await again == ["a", "b", "c"]
    assert await reading is None, "the abandoned attempt gives out nothing more"


async def test_too_much_is_not_kept_and_cannot_be_begun_again() -> None:
    requests = Requests(source("a" * 100, "b" * 100, "c" * 100), most_kept_bytes=150)
    attempt = requests.begin()
    await taken(attempt, 2)
    assert not requests.can_begin_again
    assert await rest(attempt) == ["c" * 100]


async def test_a_source_that_fails_fails_its_readers() -> None:
    requests = Requests(source("a", failure=ValueError("broken file")))
    with pytest.raises(ValueError, match="broken file"):
        await rest(requests.begin())
    assert not requests.can_begin_again
