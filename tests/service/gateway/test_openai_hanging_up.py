"""Clients of OpenAI's API that hang up, and gateways that close: what becomes of the run, and of the stream."""

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.service.gateway.conftest import Live, World
from tests.service.gateway.fakes import RUN_ID

TIMEOUT_S = 60
CHAT = ("/v1/chat/completions", {"model": "groundwork", "messages": [{"role": "user", "content": "How long?"}]})
RESPONSE = ("/v1/responses", {"model": "groundwork", "input": "How long?"})
NATIVE = ("/v1/qa", {"question": "How long?", "collection_ids": ["default"]})
Asked = tuple[str, dict[str, object]]


async def hang_up(client: httpx.AsyncClient, world: World, asked: Asked, **headers: str) -> None:
    """Asks for a stream, and leaves in the middle of the answer."""
    world.orchestrator.pause_after = 3
    path, body = asked
    wanted = {"Accept": "text/event-stream", **headers}
    async with client.stream("POST", path, json={**body, "stream": True} if asked != NATIVE else body, headers=wanted):
        await asyncio.wait_for(world.orchestrator.paused.wait(), TIMEOUT_S)


@pytest.mark.parametrize("asked", [CHAT, RESPONSE], ids=["chat", "response"])
async def test_run_is_cancelled_when_the_client_of_its_stream_hangs_up(live: Live, world: World, asked: Asked) -> None:
    async with live() as client:
        await hang_up(client, world, asked)
        await asyncio.wait_for(world.orchestrator.was_cancelled.wait(), TIMEOUT_S)
    assert world.orchestrator.cancelled == [RUN_ID]


@pytest.mark.parametrize("asked", [CHAT, RESPONSE], ids=["chat", "response"])
async def test_run_is_cancelled_when_the_client_waits_no_longer_for_a_whole_answer(
    live: Live, world: World, asked: Asked
) -> None:
    world.orchestrator.pause_after = 3
    path, body = asked
    async with live() as client:
        asking = asyncio.ensure_future(client.post(path, json=body))
        await asyncio.wait_for(world.orchestrator.paused.wait(), TIMEOUT_S)
        asking.cancel()
        await asyncio.wait_for(world.orchestrator.was_cancelled.wait(), TIMEOUT_S)
    assert world.orchestrator.cancelled == [RUN_ID]


async def test_run_goes_on_that_another_client_or_the_same_one_may_come_back_for(live: Live, world: World) -> None:
    async with live() as client:
        for asked, headers in ((NATIVE, {}), (CHAT, {"Idempotency-Key": "k1"}), (RESPONSE, {"Idempotency-Key": "k2"})):
            world.orchestrator.hung_up.clear()
            world.orchestrator.paused.clear()
            await hang_up(client, world, asked, **headers)
            await asyncio.wait_for(world.orchestrator.hung_up.wait(), TIMEOUT_S)
        begun = await client.post("/v1/responses", json={**RESPONSE[1], "background": True})
        assert begun.status_code == 200
        world.orchestrator.pause_after = None
        whole = await client.post(CHAT[0], json=CHAT[1])
        assert whole.status_code == 200
        # A cancellation would have arrived before these answers.
        assert world.orchestrator.cancelled == []


@pytest.fixture
async def closing() -> asyncio.Event:
    return asyncio.Event()


Create = Callable[[AsyncOpenAI], AsyncIterator[object]]


async def chunks(api: AsyncOpenAI) -> AsyncIterator[object]:
    stream = await api.chat.completions.create(
        model="groundwork", messages=[{"role": "user", "content": "How long?"}], stream=True
    )
    async for each in stream:
        yield each


async def response_events(api: AsyncOpenAI) -> AsyncIterator[object]:
    async for each in await api.responses.create(model="groundwork", input="How long?", stream=True):
        yield each


@pytest.mark.parametrize("create", [chunks, response_events])
async def test_stream_comes_to_its_end_while_the_gateway_closes(
    live: Live, world: World, closing: asyncio.Event, create: Create
) -> None:
    world.orchestrator.pause_after = 3
    async with live(closing) as client, AsyncOpenAI(api_key="any", base_url=f"{client.base_url}/v1") as api:
        stream = create(api)
        received = [await anext(stream)]
        await asyncio.wait_for(world.orchestrator.paused.wait(), TIMEOUT_S)
        closing.set()
        world.orchestrator.resume.set()
        received += [each async for each in stream]
    assert "Four weeks [1]." in "".join(
        getattr(each, "delta", "") if hasattr(each, "type") else each.choices[0].delta.content or ""  # type: ignore[attr-defined]
        for each in received
    )


@pytest.mark.parametrize("create", [chunks, response_events])
async def test_stream_that_a_closing_gateway_breaks_off_ends_in_an_error(
    live: Live, world: World, closing: asyncio.Event, create: Create
) -> None:
    world.orchestrator.pause_after = 3
    async with (
        live(closing, drain_grace_s=0.0) as client,
        AsyncOpenAI(api_key="any", base_url=f"{client.base_url}/v1") as api,
    ):
        stream = create(api)
        await anext(stream)
        closing.set()
        with pytest.raises(openai.APIError, match=f"GET /v1/responses/resp_{RUN_ID}"):
            [each async for each in stream]
    assert world.orchestrator.cancelled == [], "the run can still be read"
