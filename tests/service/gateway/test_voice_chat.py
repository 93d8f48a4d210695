"""Conversations over `/ws/voice-chat`: the events of a chat, the answer in pieces to be said, interrupting, and coming back."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from kit.access.principal import INGEST, QUERY
from kit.errors import ResourceExhausted
from kit.jetstream import Nats
from tests.service.gateway.conftest import Live, Settings, World, over_http
from tests.service.gateway.fakes import RUN_ID, answered_run, event, run_with_tools
from tests.service.gateway.key_desk import KeyDesk, bearer, id_of

MESSAGE = {"type": "message", "message": "How long?", "language": "en"}
PATH = "/ws/voice-chat"
TIMEOUT_S = 60


@asynccontextmanager
async def opened(client: httpx.AsyncClient, path: str = PATH, **options: Any) -> AsyncIterator[ClientConnection]:
    """A WebSocket whose first event was read."""
    url = f"ws://{client.base_url.host}:{client.base_url.port}{path}"
    async with connect(url, **options) as socket:
        yield socket


async def heard(socket: ClientConnection, until: str) -> list[dict[str, Any]]:
    """Events up to the first of that name."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(TIMEOUT_S):
        while not events or events[-1]["event"] != until:
            events.append(json.loads(await socket.recv()))
    return events


async def closed(socket: ClientConnection) -> None:
    """Returns once the other side has closed the WebSocket."""
    async with asyncio.timeout(TIMEOUT_S):
        with suppress(ConnectionClosed):
            while True:
                await socket.recv()


async def say(socket: ClientConnection, **message: object) -> None:
    await socket.send(json.dumps(message))


def pieces(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each["data"] for each in events if each["event"] == "speakable"]


def run_of_sentences() -> list[run_pb.RunEvent]:
    """An answer in three sentences, of which the check takes one away: 8 events."""
    citation = run_pb.Citation(
        number=1, document_id="d0000001", document_name="staff_handbook.pdf", chunk_id="c1", page=3
    )
    evidence = run_pb.Evidence(
        number=1, document_id="d0000001", document_name="staff_handbook.pdf", chunk_id="c1", page=3
    )
    whole = "You have **28 days** [1]. Ask before 2026-11-27. That is all"
    return [
        event(1, run=run_pb.RunStarted(mode=run_pb.RUN_MODE_CHAT, question="How long?")),
        event(2, retrieval=run_pb.Retrieval(evidence=[evidence])),
        event(3, token=run_pb.Token(text=whole[:20], offset=0)),
        event(4, token=run_pb.Token(text=whole[20:40], offset=20)),
        event(5, token=run_pb.Token(text=whole[40:], offset=40)),
        event(
            6, answer=run_pb.Answer(text="You have **28 days** [1]. That is all.", citations=[citation], method="model")
        ),
        event(7, usage=run_pb.Usage(seconds=0.5)),
        event(8, done=run_pb.Done(status=run_pb.RUN_STATUS_COMPLETED)),
    ]


async def test_answer_comes_as_events_and_as_pieces_with_their_citations(live: Live, world: World) -> None:
    world.orchestrator.log = run_of_sentences()
    async with live() as client, opened(client) as socket:
        assert (await heard(socket, "ready"))[0]["data"] == {"audio": {"input": False, "output": False}}
        await say(socket, **MESSAGE, thread_id="0123456789ab", tools=["search"])
        events = await heard(socket, "spoken")
    (request,) = world.orchestrator.requests
    assert (request.mode, request.style, request.thread_id) == (run_pb.RUN_MODE_CHAT, "spoken", "0123456789ab")
    assert [each["id"] for each in events if each["id"]] == [str(seq) for seq in range(1, 9)]
    first, second, third, sources = pieces(events)
    assert (first["spoken"], first["text"]) == ("You have twenty-eight days.", "You have **28 days** [1].")
    cited = {"number": 1, "document_id": "d0000001", "document_name": "staff_handbook.pdf", "chunk_id": "c1", "page": 3}
    assert (first["citations"], second["citations"]) == ([cited], [])
    assert second["spoken"] == "Ask before November twenty-seventh, twenty twenty-six."
    assert (third["spoken"], sources["kind"], sources["spoken"]) == (
        "That is all.",
        "sources",
        "Source: staff handbook.",
    )
    kinds = [each["event"] for each in events]
    assert kinds.index("speakable") < kinds.index("answer"), "the first sentence is said while the second is written"
    ending = events[-1]["data"]
    assert (ending["withdrawn"], ending["pieces"], ending["status"]) == ([1], 4, "completed")
    assert ending["citations"] == {"0": [cited], "2": []}


async def test_new_message_breaks_off_what_is_said_and_cancels_its_run(live: Live, world: World) -> None:
    world.orchestrator.log, world.orchestrator.pause_after = answered_run(), 4
    async with live() as client, opened(client) as socket:
        await say(socket, **MESSAGE)
        await heard(socket, "token")
        world.orchestrator.pause_after = None
        began = asyncio.get_running_loop().time()
        await say(socket, **MESSAGE)
        broken, *_ = (await heard(socket, "interrupted"))[-1:]
        took_s = asyncio.get_running_loop().time() - began
        events = await heard(socket, "spoken")
        await asyncio.wait_for(world.orchestrator.was_cancelled.wait(), TIMEOUT_S)
    assert broken["data"] == {"run_id": RUN_ID, "reason": "message"}
    assert took_s < TIMEOUT_S
    assert [each["id"] for each in events if each["id"]] == [str(seq) for seq in range(1, 9)], "the second run alone"
    assert world.orchestrator.cancelled == [RUN_ID]


@pytest.mark.parametrize("hangs_up", [False, True])
async def test_run_that_has_not_said_its_id_is_cancelled_too(live: Live, world: World, hangs_up: bool) -> None:
    world.orchestrator.pause_after = 0
    async with live() as client, opened(client) as socket:
        await say(socket, **MESSAGE)
        while not world.orchestrator.requests:
            await asyncio.sleep(0)
        await say(socket, type="cancel")
        assert (await heard(socket, "interrupted"))[-1]["data"] == {"run_id": None, "reason": "cancel"}
        if hangs_up:
            await socket.close()
        world.orchestrator.resume.set()
        await asyncio.wait_for(world.orchestrator.was_cancelled.wait(), TIMEOUT_S)
    assert world.orchestrator.cancelled == [RUN_ID]


async def test_client_comes_back_for_each_event_and_piece_it_lacks(live: Live, world: World) -> None:
    world.orchestrator.log, world.orchestrator.pause_after = run_of_sentences(), 5
    async with live() as client:
        async with opened(client) as socket:
            await say(socket, **MESSAGE)
            first = await heard(socket, "speakable")
            while not (first[-1]["event"] == "token" and first[-1]["id"] == "5"):
                first.append(json.loads(await socket.recv()))
        assert not world.orchestrator.cancelled, "hanging up stops no run"
        world.orchestrator.resume.set()
        async with opened(client) as socket:
            last = pieces(first)[-1]["index"]
            await say(socket, type="resume", run_id=RUN_ID, after=5, after_piece=last, language="en")
            second = await heard(socket, "spoken")
    assert [each["id"] for each in [*first, *second] if each["id"]] == [str(seq) for seq in range(1, 9)]
    assert [each["index"] for each in pieces([*first, *second])] == [0, 1, 2, 3]
    assert pieces(second)[-1]["kind"] == "sources"


async def test_run_that_waits_says_so(live: Live, world: World) -> None:
    world.orchestrator.log, world.orchestrator.pause_after = run_with_tools(), 5
    async with live() as client, opened(client) as socket:
        await say(socket, **{**MESSAGE, "language": "de"})
        events = await heard(socket, "parked")
    (notice,) = pieces(events)
    assert (notice["kind"], notice["seq"]) == ("notice", 5)
    assert notice["spoken"].startswith("Ich brauche deine Entscheidung")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("not json", "MALFORMED_MESSAGE"),
        ('{"type": "shout"}', "MALFORMED_MESSAGE"),
        ('{"type": "message", "message": " "}', "MALFORMED_MESSAGE"),
        ('{"type": "message", "message": "Hi", "colour": 1}', "MALFORMED_MESSAGE"),
        ('{"type": "resume", "run_id": "x"}', "MALFORMED_MESSAGE"),
        (b"\0\0", "SOUND_NOT_UNDERSTOOD"),
        (json.dumps({"type": "resume", "run_id": "f" * 32}), "RUN_NOT_FOUND"),
        (json.dumps({**MESSAGE, "collection_ids": ["nope"]}), "COLLECTION_NOT_FOUND"),
    ],
)
async def test_what_is_not_understood_is_told_and_the_conversation_goes_on(
    live: Live, world: World, message: str | bytes, reason: str
) -> None:
    async with live() as client, opened(client) as socket:
        await socket.send(message)
        assert (await heard(socket, "error"))[-1]["data"]["reason"] == reason
        assert not world.orchestrator.requests
        await say(socket, **MESSAGE)
        assert (await heard(socket, "spoken"))[-1]["data"]["status"] == "completed"


async def test_run_that_cannot_begin_is_told(live: Live, world: World) -> None:
    world.orchestrator.start_failure = ResourceExhausted("a limit is reached", reason="LIMIT_REACHED")
    async with live() as client, opened(client) as socket:
        await say(socket, **MESSAGE)
        told = (await heard(socket, "error"))[-1]["data"]
    assert (told["reason"], told["status"], told["run_id"]) == ("LIMIT_REACHED", 429, None)


async def refused(client: httpx.AsyncClient, **options: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        async with opened(client, **options):
            pass
    answer = caught.value.response
    return answer.status_code, json.loads(answer.body)["reason"]


async def place_is_free(client: httpx.AsyncClient) -> None:
    """Returns once a client may connect."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                async with opened(client):
                    return
            except InvalidStatus:
                await asyncio.sleep(0)


async def test_handshake_passes_the_checks_of_a_request(live: Live) -> None:
    async with live(max_event_streams=1) as client:
        assert await refused(client, origin="https://evil.example") == (403, "CROSS_ORIGIN")
        assert await refused(client, path="/ws/else") == (400, "WEBSOCKET_NOT_SERVED")
        own = f"http://{client.base_url.host}:{client.base_url.port}"
        async with opened(client, origin=own) as socket:
            await heard(socket, "ready")
            assert await refused(client) == (429, "TOO_MANY_EVENT_STREAMS")
        await place_is_free(client)


async def test_caller_needs_a_key_with_scope_query_and_is_audited(
    settings: Settings, nats_url: str, jetstream: Nats, logs: list[MutableMapping[str, Any]], world: World
) -> None:
    desk = await KeyDesk.open(jetstream)
    reader = await desk.issue(QUERY, subject="anna", tenant_id="acme")
    writer = await desk.issue(INGEST, subject="bert", tenant_id="acme")
    async with over_http(settings(auth="api_keys", nats_url=nats_url)) as client:
        assert await refused(client) == (401, "API_KEY_MISSING")
        assert await refused(client, additional_headers=bearer(writer)) == (403, "SCOPE_MISSING")
        in_page: list[Any] = ["groundwork", f"openai-insecure-api-key.{reader}"]
        async with opened(client, subprotocols=in_page) as socket:
            assert socket.subprotocol == "groundwork"
            await say(socket, **MESSAGE)
            await heard(socket, "spoken")
            await desk.store.change("acme", id_of(reader), lambda each: each.revoked(datetime.now(UTC)))
            told = (await heard(socket, "error"))[-1]["data"]
            assert told["reason"] in {"API_KEY_REVOKED", "API_KEY_INVALID"}
            await closed(socket)
            assert socket.close_code == 1008
    audited = [each for each in logs if each["event"] == "audit" and each["method"] == "WEBSOCKET"]
    assert [(each["action"], each["status"]) for each in audited if each.get("key_id") != id_of(reader)] == [
        ("refused", 401),
        ("refused", 403),
    ]
    assert ("request", 200, PATH) in [(each["action"], each["status"], each["route"]) for each in audited]


async def test_gateway_that_stops_sends_its_clients_elsewhere(live: Live, world: World) -> None:
    closing = asyncio.Event()
    world.orchestrator.pause_after = 4
    async with live(closing) as client, opened(client) as socket:
        await say(socket, **MESSAGE)
        await heard(socket, "token")
        closing.set()
        await closed(socket)
        assert socket.close_code == 1012
    assert not world.orchestrator.cancelled


async def test_client_that_says_nothing_is_sent_away(live: Live) -> None:
    async with live(voice_idle_timeout_s=0.01) as client, opened(client) as socket:
        await closed(socket)
        assert socket.close_code == 1000
