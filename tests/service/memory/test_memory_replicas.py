"""Two memory services over one message store: whichever is asked, a thread is the same, and nothing is lost or stored twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc

from kit.errors import GroundworkError, NotFound
from kit.jetstream import KeyValue, Nats
from kit.testing.harness import free_port, open_test_channel, running_service
from services.memory.app import run
from services.memory.settings import MemorySettings
from tests.service.memory.test_memory_service import SERVICES

TIMEOUT_S = 60.0
RUNS = 20


@pytest.fixture
async def stubs(nats_url: str) -> AsyncIterator[list[Any]]:
    """Of two services."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(2):
            settings = MemorySettings(grpc_address=f"127.0.0.1:{free_port()}", nats_url=nats_url)
            address = await stack.enter_async_context(running_service(run, settings))
            channel = await stack.enter_async_context(open_test_channel(address, services=SERVICES))
            found.append(memory_pb2_grpc.MemoryServiceStub(channel))
        yield found


def turn(thread_id: str, run_id: str) -> pb.AppendMessagesRequest:
    question = pb.Message(message_id=f"{run_id}-q", role=pb.ROLE_USER, text="How much leave?", run_id=run_id)
    answer = pb.Message(message_id=f"{run_id}-a", role=pb.ROLE_ASSISTANT, text="30 days.", run_id=run_id)
    return pb.AppendMessagesRequest(thread_id=thread_id, messages=[question, answer])


async def test_turns_that_are_appended_through_both_are_all_there_once_and_in_order(stubs: list[Any]) -> None:
    thread = (await stubs[0].CreateThread(pb.CreateThreadRequest(), timeout=TIMEOUT_S)).thread
    runs = [f"run{number}" for number in range(RUNS)]
    # Each through both at once: a caller that got no answer asks again, of the other.
    appends = [
        stub.AppendMessages(turn(thread.thread_id, run_id), timeout=TIMEOUT_S) for run_id in runs for stub in stubs
    ]
    await asyncio.gather(*appends)
    for stub in stubs:
        history = await stub.GetHistory(pb.GetHistoryRequest(thread_id=thread.thread_id, limit=1000), timeout=TIMEOUT_S)
        ids = [message.message_id for message in history.messages]
        assert sorted(ids) == sorted(f"{run_id}-{kind}" for run_id in runs for kind in "qa")
        assert all(ids[ids.index(f"{run_id}-q") + 1] == f"{run_id}-a" for run_id in runs)
        head = (await stub.GetThread(pb.GetThreadRequest(thread_id=thread.thread_id), timeout=TIMEOUT_S)).thread
        assert head.message_count == 2 * RUNS


async def test_what_one_has_written_the_other_knows_at_once(stubs: list[Any]) -> None:
    for writes, reads in (stubs, stubs[::-1]):
        thread = (await writes.CreateThread(pb.CreateThreadRequest(title="one"), timeout=TIMEOUT_S)).thread
        named = pb.GetThreadRequest(thread_id=thread.thread_id)
        assert (await reads.GetThread(named, timeout=TIMEOUT_S)).thread == thread
        renamed = pb.RenameThreadRequest(thread_id=thread.thread_id, title="two")
        await reads.RenameThread(renamed, timeout=TIMEOUT_S)
        assert (await writes.GetThread(named, timeout=TIMEOUT_S)).thread.title == "two"
        await reads.DeleteThread(pb.DeleteThreadRequest(thread_id=thread.thread_id), timeout=TIMEOUT_S)
        with pytest.raises(NotFound):
            await writes.GetThread(named, timeout=TIMEOUT_S)


async def test_key_that_is_used_at_both_at_once_makes_one_thread(stubs: list[Any]) -> None:
    async def made(stub: Any) -> str | None:
        """Its id; None where it is in hand at the other."""
        request = pb.CreateThreadRequest(title="mine", idempotency_key="k1")
        try:
            return str((await stub.CreateThread(request, timeout=TIMEOUT_S)).thread.thread_id)
        except GroundworkError as error:
            if error.reason != "IDEMPOTENCY_KEY_IN_FLIGHT":
                raise
            return None

    found = await asyncio.gather(*(made(stub) for stub in stubs for _ in range(5)))
    listed = await stubs[0].ListThreads(pb.ListThreadsRequest(), timeout=TIMEOUT_S)
    assert set(found) - {None} == {thread.thread_id for thread in listed.threads}
    assert len(listed.threads) == 1


async def test_thread_that_is_deleted_through_one_while_the_other_appends_leaves_nothing(
    stubs: list[Any], jetstream: Nats
) -> None:
    thread = (await stubs[0].CreateThread(pb.CreateThreadRequest(), timeout=TIMEOUT_S)).thread
    appends = [
        asyncio.ensure_future(
            stubs[number % 2].AppendMessages(turn(thread.thread_id, f"run{number}"), timeout=TIMEOUT_S)
        )
        for number in range(RUNS)
    ]
    await appends[0]
    await stubs[1].DeleteThread(pb.DeleteThreadRequest(thread_id=thread.thread_id), timeout=TIMEOUT_S)
    refused = [each for each in await asyncio.gather(*appends, return_exceptions=True) if isinstance(each, Exception)]
    assert all(isinstance(each, NotFound) for each in refused)
    messages = await KeyValue.open(jetstream, "THREAD_MESSAGES")
    assert [entry.key async for entry in messages.entries(">")] == []
