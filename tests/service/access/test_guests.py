"""A day after a guest has come nothing is left of what the guest made, searched for from outside and in the message store."""

import asyncio
import itertools
from contextlib import suppress
from datetime import timedelta
from typing import Any

import httpx
import pytest
from groundwork.memory.v1 import memory_pb2

from kit.access.principal import ADMIN, QUERY, Principal, use_principal
from kit.jetstream import Nats, connect
from services.gateway.access.guests.puzzles import zero_bits
from services.gateway.access.guests.sweeping import Sweeper
from services.gateway.settings import GatewaySettings
from tests.service.access.world import TIMEOUT_S, World
from tests.service.gateway.conftest import Clocks, in_process
from tests.service.gateway.key_desk import KeyDesk, bearer

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORD = "quokka"
"""In all that the guest writes."""
NAMED = {"AUDIT", "DOCUMENTS", "GUESTS", "RUN_COSTS"}
"""Where the guest's random name stays, without a word of what was said: the audit log, a document's tombstone
for an hour, the marker of the guest's record for a day, what runs cost."""


async def become_guest(client: httpx.AsyncClient) -> tuple[dict[str, str], str]:
    """The header that shows the cookie, and the guest's name."""
    asked = (await client.post("/guests/challenge")).json()
    number = next(n for n in itertools.count() if zero_bits(f"{asked['seed']}.{n}") >= asked["bits"])
    answer = await client.post("/guests", json={"challenge": asked["challenge"], "solution": str(number)})
    cookie = answer.headers["set-cookie"].partition(";")[0]
    client.cookies.clear()
    return {"Cookie": cookie}, answer.json()["subject"]


async def until_ready(client: httpx.AsyncClient, document_id: str, headers: dict[str, str]) -> None:
    async with asyncio.timeout(60):
        while (await client.get(f"/v1/documents/{document_id}", headers=headers)).json()["status"] != "ready":
            await asyncio.sleep(0.05)


async def make_things(client: httpx.AsyncClient, guest: dict[str, str]) -> dict[str, str]:
    """A document, a conversation with a run, and what is learnt from it."""
    text = f"# {WORD}\n\nThe plan for {WORD} is to leave in spring."
    upload = await client.post(
        "/v1/collections/default/documents", files={"file": ("notes.md", text.encode())}, headers=guest
    )
    ids = {"documents": upload.json()["document"]["id"]}
    await until_ready(client, ids["documents"], guest)
    ids["threads"] = (await client.post("/v1/threads", json={"title": WORD}, headers=guest)).json()["id"]
    message = {"message": f"My name is {WORD}. What is the plan for {WORD}?", "thread_id": ids["threads"]}
    answered = await client.post("/v1/collections/default/chat", json=message, headers=guest)
    assert answered.status_code == 200, answered.text
    ids["runs"] = answered.headers["x-run-id"]
    async with asyncio.timeout(60):
        while WORD not in (await client.get("/v1/memory/facts", headers=guest)).text:
            await asyncio.sleep(0.05)
    return ids


async def refuse_uploads_to_shared(client: httpx.AsyncClient, guest: dict[str, str], admin: dict[str, str]) -> None:
    """A guest reads a shared collection, and writes nothing into it though all guests are its editors."""
    shared = (await client.post("/v1/collections", json={"id": "handbook", "name": "Handbook"}, headers=admin)).json()[
        "id"
    ]
    member = {"kind": "group", "name": "guest", "role": "editor"}
    assert (await client.put(f"/v1/collections/{shared}/members", json=member, headers=admin)).status_code == 200
    async with asyncio.timeout(60):
        while (await client.get(f"/v1/collections/{shared}", headers=guest)).status_code != 200:
            await asyncio.sleep(0.05)
    files = {"file": ("notes.md", b"# a guest's")}
    refused = await client.post(f"/v1/collections/{shared}/documents", files=files, headers=guest)
    assert (refused.status_code, refused.json()["reason"]) == (403, "NOT_YOURS")
    assert "guests only read" in refused.json()["detail"]
    assert (await client.delete(f"/v1/collections/{shared}", headers=admin)).status_code in {200, 202, 204}


async def stored_with(nats: Nats, *texts: str) -> set[str]:
    """Streams of the message store that hold a message with one of these texts, in its subject or its data."""
    found = set()
    for info in await nats.js.streams_info():
        name = str(info.config.name)
        for seq in range(info.state.first_seq, info.state.last_seq + 1):
            try:
                message = await nats.js.get_msg(name, seq)
            except Exception:
                continue
            where = message.subject.encode() + (message.data or b"")
            if any(text.encode() in where for text in texts):
                found.add(name.removeprefix("KV_").removeprefix("OBJ_"))
    return found


async def test_nothing_of_a_guest_is_left_when_the_day_is_over(world: World) -> None:
    clocks = Clocks()
    addresses: dict[str, Any] = {
        f"{room.replace('-', '_')}_address": address for room, address in world.addresses.items()
    }
    settings = GatewaySettings(
        auth="api_keys",
        nats_url=world.nats_url,
        port=0,
        audit_max_bytes=16 * 1024**2,
        guests=True,
        guests_proof_bits=4,
        **addresses,
    )
    async with connect(world.nats_url, name="test") as nats, in_process(settings, clocks=clocks) as client:
        guest, subject = await become_guest(client)
        other, _ = await become_guest(client)
        ids = await make_things(client, guest)
        desk = await KeyDesk.open(nats)
        admin = bearer(await desk.issue(ADMIN, subject="gina", tenant_id="guests"))
        await refuse_uploads_to_shared(client, guest, admin)
        assert await stored_with(nats, WORD) >= {"THREADS", "RUNS", "MEMORY_FACTS"}
        for kind, each in ids.items():
            assert (await client.get(f"/v1/{kind}/{each}", headers=guest)).status_code == 200
            assert (await client.get(f"/v1/{kind}/{each}", headers=other)).status_code == 404
        app: Any = client._transport
        keys = app.app.state.api_keys
        sweeper = Sweeper(keys.guests, app.app.state.backends, lambda: clocks.now().timestamp())
        await sweeper.sweep()
        assert (await client.get(f"/v1/documents/{ids['documents']}", headers=guest)).status_code == 200
        clocks.day += timedelta(hours=24, seconds=1)
        await sweeper.sweep()
        for kind in ("documents", "runs"):
            async with asyncio.timeout(60):  # a run is removed behind the call
                while (await client.get(f"/v1/{kind}/{ids[kind]}", headers=admin)).status_code != 404:
                    await asyncio.sleep(0.05)
        assert WORD not in (await client.get("/v1/runs", headers=admin)).text
        with use_principal(Principal("guests", subject, frozenset({QUERY}))):
            memory = world.stub("memory")
            assert not (await memory.ListThreads(memory_pb2.ListThreadsRequest(), timeout=TIMEOUT_S)).threads
            assert not (await memory.ListFacts(memory_pb2.ListFactsRequest(), timeout=TIMEOUT_S)).facts
        left = await stored_with(nats, WORD)
        with suppress(TimeoutError):
            async with asyncio.timeout(60):  # jobs remove texts behind the calls
                while left := await stored_with(nats, WORD):
                    await asyncio.sleep(0.2)
        assert not left
        assert "GUESTS" in await stored_with(nats, subject.removeprefix("guest-"))
        clocks.day += timedelta(hours=2)
        await sweeper.sweep()
        assert await stored_with(nats, subject.removeprefix("guest-")) <= NAMED
        assert not (await keys.guests.guests()).gone()
