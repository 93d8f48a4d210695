"""Whether what a question names exists. "The documents do not say" would be a lie about a collection that is not there, and an
answer on a thread that is not there would be forgotten."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from groundwork.ingest.v1 import ingest_pb2
from groundwork.memory.v1 import memory_pb2

from kit.errors import Code, GroundworkError
from services.gateway.backends import Backends

T = TypeVar("T")

_DOWN = {Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED}


async def require_existing(
    services: Backends, collection_ids: Sequence[str], thread_id: str = ""
) -> list[ingest_pb2.Collection]:
    """The collections, but those that cannot be asked for now: that is no reason not to answer. Raises NotFound for the first
    collection, or the thread, that does not exist."""
    timeout_s = services.settings.health_timeout_s
    calls: list[Awaitable[object]] = [
        services.ingest.GetCollection(ingest_pb2.GetCollectionRequest(collection_id=each), timeout=timeout_s)
        for each in dict.fromkeys(collection_ids)
    ]
    if thread_id:
        calls.append(services.memory.GetThread(memory_pb2.GetThreadRequest(thread_id=thread_id), timeout=timeout_s))
    answers = await asyncio.gather(*(_answer(call) for call in calls))
    for answer in answers:
        if isinstance(answer, GroundworkError):
            raise answer
    return [answer.collection for answer in answers if isinstance(answer, ingest_pb2.GetCollectionResponse)]


async def unless_missing(services: Backends, collection_ids: Sequence[str], call: Awaitable[T]) -> T:
    """The answer to a call that changes nothing, which is made while the collections are looked up. Raises what
    `require_existing` raises, first of all."""
    answer = asyncio.ensure_future(call)
    try:
        await require_existing(services, collection_ids)
        return await answer
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)


async def _answer(call: Awaitable[object]) -> object:
    """What it answers, the refusal, or None where it cannot be asked."""
    try:
        return await call
    except GroundworkError as error:
        return None if error.code in _DOWN else error
