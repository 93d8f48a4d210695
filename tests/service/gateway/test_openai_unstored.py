"""Responses with `store: false` over the gateway: their runs are deleted however the answer ends, and no answer fails with that."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from kit.errors import Internal, NotFound
from services.gateway.openai import unstored as module
from services.gateway.openai.unstored import Following, unstored
from tests.service.gateway.conftest import Live, World
from tests.service.gateway.fakes import RUN_ID, answered_run

ASKED = {"model": "groundwork", "input": "How long?", "store": False}


async def deleted(world: World) -> list[str]:
    async with asyncio.timeout(20):
        while not world.orchestrator.deleted:
            await asyncio.sleep(0.02)
    return world.orchestrator.deleted


@pytest.mark.parametrize("stream", [False, True])
async def test_run_is_deleted_once_it_is_answered(client: httpx.AsyncClient, world: World, stream: bool) -> None:
    answer = await client.post("/v1/responses", json={**ASKED, "stream": stream})
    assert (answer.status_code, "Four weeks [1]." in answer.text) == (200, True)
    assert world.orchestrator.deleted == [RUN_ID]


@pytest.mark.parametrize("stream", [False, True])
async def test_stored_run_is_kept(client: httpx.AsyncClient, world: World, stream: bool) -> None:
    await client.post("/v1/responses", json={**ASKED, "store": None, "stream": stream})
    assert world.orchestrator.deleted == []


@pytest.mark.parametrize("stream", [False, True])
async def test_run_whose_stream_breaks_is_deleted(client: httpx.AsyncClient, world: World, stream: bool) -> None:
    world.orchestrator.log = answered_run()[:3]
    world.orchestrator.attach_failures = [NotFound("it is gone")]
    answer = await client.post("/v1/responses", json={**ASKED, "stream": stream})
    assert "it is gone" in answer.text
    assert world.orchestrator.deleted == [RUN_ID]


@pytest.mark.parametrize("stream", [False, True])
async def test_answer_does_not_fail_when_its_run_cannot_be_deleted(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(module, "_PAUSES_S", (0.02,))
    world.orchestrator.delete_failures = [Internal("broken")]
    with capture_logs() as logs:
        answer = await client.post("/v1/responses", json={**ASKED, "stream": stream})
    assert (answer.status_code, "Four weeks [1]." in answer.text) == (200, True)
    assert ("unstored_run_not_deleted", RUN_ID) in [(each["event"], each.get("run_id")) for each in logs]
    assert await deleted(world) == [RUN_ID]


async def test_run_is_deleted_when_the_client_hangs_up(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 2
    async with live() as client:
        async with client.stream("POST", "/v1/responses", json={**ASKED, "stream": True}) as answer:
            await anext(answer.aiter_bytes())
        assert await deleted(world) == [RUN_ID]


async def test_pieces_that_nobody_asked_for_are_closed_with_their_run() -> None:
    tried: list[str] = []

    class Orchestrator:
        async def DeleteRun(self, request: Any, timeout: float) -> None:
            tried.append(request.run_id)

    class Services:
        orchestrator = Orchestrator()
        settings = type("Settings", (), {"rpc_timeout_s": 1.0})

    async def events() -> AsyncIterator[Any]:
        while True:
            yield type("Event", (), {"run_id": RUN_ID})

    async def pieces() -> AsyncIterator[Any]:
        yield b""

    following = unstored(events(), Services())  # type: ignore[arg-type]
    await anext(following)
    await Following(pieces(), following).aclose()  # type: ignore[arg-type]
    assert tried == [RUN_ID]
