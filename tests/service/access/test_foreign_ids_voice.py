"""Ids of others over `/ws/voice-chat`: strangers are told of them what they are told of ids that nothing has."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from websockets.asyncio.client import connect

from tests.service.access.asking import Gateway, gateway_settings
from tests.service.access.kinds import STRANGERS, UNKNOWN, Stranger
from tests.service.access.world import SECRET, World
from tests.service.gateway.conftest import over_http
from tests.service.gateway.key_desk import bearer

pytestmark = pytest.mark.asyncio(loop_scope="module")

MESSAGE = {"type": "message", "message": "What is planned?", "language": "en"}
ASKED = {
    "run": lambda id_: {"type": "resume", "run_id": id_},
    "thread": lambda id_: {**MESSAGE, "thread_id": id_},
    "collection": lambda id_: {**MESSAGE, "collection_ids": [id_]},
}
"""A message that names an id, by its kind."""
TIMEOUT_S = 60


@pytest_asyncio.fixture(loop_scope="module")
async def address(world: World) -> AsyncIterator[str]:
    async with over_http(gateway_settings(world)) as client:
        yield f"ws://{client.base_url.host}:{client.base_url.port}/ws/voice-chat"


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: stranger.name)
async def test_stranger_hears_of_ids_of_others_what_they_hear_of_ids_of_nothing(
    world: World, address: str, stranger: Stranger
) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(TIMEOUT_S))
        key = await (await Gateway.open(world, stack)).key(stranger.principal)
        socket = await stack.enter_async_context(connect(address, additional_headers=bearer(key)))
        assert json.loads(await socket.recv())["event"] == "ready"
        for kind, message in ASKED.items():
            told = []
            for id_ in (world.things.ids[kind], UNKNOWN[kind]):
                await socket.send(json.dumps(message(id_)))
                answer = json.loads(await socket.recv())
                assert answer["event"] == "error", "nothing is said of what is somebody else's"
                del answer["data"]["trace_id"]
                told.append(json.dumps(answer).replace(id_, "<id>"))
            assert told[0] == told[1], kind
            assert SECRET not in told[0]
