"""`/v1/realtime`: clients of OpenAI's Realtime API, with the official client and with its types."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent, RealtimeSessionCreateRequestParam
from openai.types.realtime.realtime_response_create_params_param import RealtimeResponseCreateParamsParam
from pydantic import TypeAdapter
from typing_extensions import get_type_hints

from kit.errors import ResourceExhausted
from tests.doubles.speech import SOUND_OF_A_PIECE, SpeechService
from tests.service.gateway.conftest import Live, World
from tests.service.gateway.fakes import answered_run, event
from tests.service.gateway.test_voice_chat import TIMEOUT_S, opened, refused, run_of_sentences
from tests.service.gateway.test_voice_sound import QUESTION, service, speaking, speech
from tests.speaking import at_rate

__all__ = ["service", "speech"]

SERVER_EVENT: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
ASKED = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}


FUNCTION = {
    "type": "function",
    "name": "weather",
    "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = run_pb.FunctionCall(call_id="call1", name="weather", arguments='{"city": "Emden"}')


def run_with_call(text: str = "") -> list[Any]:
    """The log of a run that ends with a call of a function of the client's."""
    log = answered_run()
    answer = run_pb.Answer(text=text, function_calls=[CALL])
    return [log[0], event(2, answer=answer), event(3, done=run_pb.Done(status=run_pb.RUN_STATUS_COMPLETED))]


def check_items(received: list[Any]) -> None:
    """Each item keeps its id, its place and what stands before it; each event of a response names its response."""
    responses = {each.response.id for each in received if each.type in ("response.created", "response.done")}
    before: dict[str, str | None] = {}
    places: dict[str, int] = {}
    for each in received:
        if each.type in ("conversation.item.added", "conversation.item.done"):
            assert before.setdefault(each.item.id, each.previous_item_id) == each.previous_item_id
            assert each.previous_item_id != each.item.id
        if responses and hasattr(each, "response_id"):
            assert each.response_id in responses
        if hasattr(each, "output_index"):
            item_id = each.item.id if hasattr(each, "item") else each.item_id
            assert places.setdefault(item_id, each.output_index) == each.output_index
        if each.type == "response.done":
            own = [item.id for item in each.response.output]
            assert own == [item_id for item_id in own if item_id in before or not places]
    assert len({each.event_id for each in received}) == len(received)


@asynccontextmanager
async def talking(
    client: httpx.AsyncClient, model: str = "groundwork@handbook"
) -> AsyncIterator[AsyncRealtimeConnection]:
    async with (
        AsyncOpenAI(base_url=f"{str(client.base_url).rstrip('/')}/v1", api_key="any") as openai,
        openai.realtime.connect(model=model) as connection,
    ):
        yield connection


async def events(connection: AsyncRealtimeConnection, until: str) -> list[Any]:
    """Up to the first of that type, each as the official types have it."""
    received: list[Any] = []
    async with asyncio.timeout(TIMEOUT_S):
        while not received or received[-1].type != until:
            raw = await connection.recv_bytes()
            received.append(SERVER_EVENT.validate_json(raw, strict=True))
            assert received[-1].type == json.loads(raw)["type"]
    check_items(received)
    return received


async def test_official_client_gets_text_sentence_by_sentence_with_citations(live: Live, world: World) -> None:
    world.orchestrator.log = run_of_sentences()
    async with live() as client, talking(client) as connection:
        (created,) = await events(connection, "session.created")
        assert created.session.output_modalities == ["text"]
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        await connection.response.create()
        received = await events(connection, "response.done")
        done = received[-1].response
        deltas = [each for each in received if each.type == "response.output_text.delta"]
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        await connection.response.create()
        await events(connection, "response.done")
    first, second = world.orchestrator.requests
    assert (first.question, list(first.collection_ids), first.style, len(first.history)) == (
        QUESTION,
        ["handbook"],
        "spoken",
        0,
    )
    assert [each.role for each in second.history] == ["user", "assistant"]
    assert deltas[0].delta == "You have **28 days** [1]."
    assert deltas[0].groundwork["citations"][0]["document_id"] == "d0000001"
    assert (done.status, done.output[0].content[0].text) == ("completed", "".join(each.delta for each in deltas))
    assert done.groundwork["withdrawn"] == [1]


async def test_speech_is_heard_and_answered_with_sound(
    live: Live, world: World, service: SpeechService, speech: bytes
) -> None:
    world.orchestrator.log, service.texts = run_of_sentences(), [QUESTION]
    async with live(**speaking(service)) as client, talking(client) as connection:
        await events(connection, "session.created")
        await connection.input_audio_buffer.append(
            audio=base64.b64encode(bytes(20_000) + at_rate(speech, 24_000) + bytes(48_000)).decode()
        )
        received = await events(connection, "response.done")
    kinds = [each.type for each in received]
    for kind in (
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio.done",
    ):
        assert kind in kinds
    of_item = {
        each.item_id for each in received if each.type.startswith(("input_audio_buffer.", "conversation.item.input"))
    }
    assert len(of_item) == 1
    said = [each.delta for each in received if each.type == "response.output_audio_transcript.delta"]
    assert said[0] == "You have twenty-eight days."
    sound = b"".join(base64.b64decode(each.delta) for each in received if each.type == "response.output_audio.delta")
    assert len(sound) == len(said) * service.pieces * len(SOUND_OF_A_PIECE)


async def test_sound_that_is_not_heard_is_told_of(live: Live, service: SpeechService) -> None:
    service.status = 500
    push = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}
    async with live(**speaking(service)) as client, talking(client) as connection:
        await connection.session.update(session=push)  # type: ignore[arg-type]
        await connection.input_audio_buffer.append(audio="-")
        assert (await events(connection, "error"))[-1].error.code == "sound_not_understood"
        await connection.input_audio_buffer.append(audio=base64.b64encode(bytes(48_000)).decode())
        await connection.input_audio_buffer.commit()
        committed = (await events(connection, "input_audio_buffer.committed"))[-1]
        failed = (await events(connection, "conversation.item.input_audio_transcription.failed"))[-1]
    assert (failed.item_id, failed.error.code) == (committed.item_id, "speech_unavailable")


async def test_response_is_cancelled(live: Live, world: World) -> None:
    world.orchestrator.log, world.orchestrator.pause_after = run_of_sentences(), 4
    async with live() as client, talking(client) as connection:
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        await connection.response.create()
        await events(connection, "response.output_text.delta")
        await connection.response.cancel()
        done = (await events(connection, "response.done"))[-1].response
        await asyncio.wait_for(world.orchestrator.was_cancelled.wait(), TIMEOUT_S)
    assert (done.status, done.status_details.reason) == ("cancelled", "client_cancelled")


async def test_function_of_the_client_is_called_and_the_answer_goes_on(live: Live, world: World) -> None:
    session = {"type": "realtime", "instructions": "Be kind.", "tools": [FUNCTION], "max_output_tokens": 200}
    async with live() as client, talking(client) as connection:
        await connection.session.update(session=session)  # type: ignore[arg-type]
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        world.orchestrator.log = run_with_call("Let me look.")
        await connection.response.create()
        received = await events(connection, "response.done")
        message, call = received[-1].response.output
        assert (message.content[0].text, call.name, call.arguments) == ("Let me look.", "weather", CALL.arguments)
        (arguments,) = [each for each in received if each.type == "response.function_call_arguments.done"]
        assert (arguments.item_id, arguments.call_id, arguments.output_index) == (call.id, "call1", 1)
        deltas = [each.delta for each in received if each.type == "response.function_call_arguments.delta"]
        assert "".join(deltas) == call.arguments

        await connection.response.create()
        error = (await events(connection, "error"))[-1].error
        assert "the result of call call1 is missing" in error.message
        result = {"type": "function_call_output", "call_id": "call1", "output": "Rain."}
        await connection.conversation.item.create(item=result)  # type: ignore[arg-type]
        world.orchestrator.log = run_of_sentences()
        await connection.response.create()
        assert (await events(connection, "response.done"))[-1].response.status == "completed"
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        await connection.response.create(response={"tools": [], "instructions": "Be brief."})
        await events(connection, "response.done")
    first, second, third = world.orchestrator.requests
    assert (first.mode, first.style, first.instructions) == (run_pb.RUN_MODE_GROUNDED, "spoken", "Be kind.")
    assert ([each.name for each in first.functions], first.budgets.answer_tokens) == (["weather"], 200)
    assert (second.question, len(second.history)) == (QUESTION, 0)
    assert [(each.role, each.text, each.call_id) for each in second.called] == [
        ("assistant", "Let me look.", ""),
        ("tool", "Rain.", "call1"),
    ]
    assert (third.mode, third.instructions, len(third.functions)) == (run_pb.RUN_MODE_CHAT, "Be brief.", 0)
    assert [each.role for each in third.history] == ["user", "assistant", "tool", "assistant"]


async def test_call_that_the_user_talks_over_is_left_out_until_its_result_comes(live: Live, world: World) -> None:
    async with live() as client, talking(client) as connection:
        await connection.session.update(session={"type": "realtime", "tools": [FUNCTION]})  # type: ignore[arg-type]
        for log in (run_with_call(), run_of_sentences()):
            world.orchestrator.log = log
            await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
            await connection.response.create()
            await events(connection, "response.done")
        late = {"type": "function_call_output", "call_id": "call1", "output": "Rain."}
        for item in (late, ASKED):
            await connection.conversation.item.create(item=item)  # type: ignore[arg-type]
        await connection.response.create()
        await events(connection, "response.done")
    _, second, third = world.orchestrator.requests
    assert [each.role for each in second.history] == ["user"]
    assert [each.role for each in third.history] == ["user", "assistant", "tool", "user", "assistant"]


async def test_items_are_put_where_the_client_says(live: Live, world: World) -> None:
    async with live() as client, talking(client) as connection:
        for name, after in (("b", None), ("c", None), ("a", "root"), ("b2", "b")):
            item = {**ASKED, "id": name, "content": [{"type": "input_text", "text": name}]}
            before: Any = {} if after is None else {"previous_item_id": after}
            await connection.conversation.item.create(item=item, **before)  # type: ignore[arg-type]
            await events(connection, "conversation.item.done")
        await connection.conversation.item.create(item={**ASKED, "id": "a"})  # type: ignore[arg-type]
        assert "already" in (await events(connection, "error"))[-1].error.message
        await connection.response.create()
        await events(connection, "response.done")
    (request,) = world.orchestrator.requests
    assert ([each.text for each in request.history], request.question) == (["a", "b", "b2"], "c")


async def test_items_are_shown_and_deleted(live: Live, world: World) -> None:
    async with live() as client, talking(client) as connection:
        await connection.conversation.item.create(item={**ASKED, "id": "a"})  # type: ignore[arg-type]
        await connection.response.create()
        said = (await events(connection, "response.done"))[-1].response.output[0]
        await connection.conversation.item.retrieve(item_id=said.id)
        assert (await events(connection, "conversation.item.retrieved"))[-1].item == said
        await connection.conversation.item.delete(item_id=said.id)
        assert (await events(connection, "conversation.item.deleted"))[-1].item_id == said.id
        await connection.conversation.item.truncate(item_id="a", content_index=0, audio_end_ms=1)
        assert "only the last answer in sound" in (await events(connection, "error"))[-1].error.message
        await connection.response.create()
        await events(connection, "response.done")
    assert [len(each.history) for each in world.orchestrator.requests] == [0, 0]


async def test_what_was_not_heard_of_an_answer_is_forgotten(live: Live, world: World, service: SpeechService) -> None:
    world.orchestrator.log = run_of_sentences()
    piece_ms = service.pieces * len(SOUND_OF_A_PIECE) // 48
    async with live(**speaking(service)) as client, talking(client) as connection:
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        await connection.response.create()
        received = await events(connection, "response.done")
        first = next(each.delta for each in received if each.type == "response.output_audio_transcript.delta")
        (said,) = received[-1].response.output
        await connection.conversation.item.truncate(item_id=said.id, content_index=0, audio_end_ms=piece_ms - 1)
        assert (await events(connection, "conversation.item.truncated"))[-1].audio_end_ms == piece_ms - 1
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        await connection.response.create()
        await events(connection, "response.done")
    assert [each.text for each in world.orchestrator.requests[1].history] == [QUESTION, first]
    assert said.content[0].transcript != first


async def test_response_waits_for_the_words_of_what_was_said_before_it(
    live: Live, world: World, service: SpeechService
) -> None:
    service.texts, service.hangs = [QUESTION], asyncio.Event()
    push = {"type": "realtime", "output_modalities": ["text"], "audio": {"input": {"turn_detection": None}}}
    async with live(**speaking(service)) as client, talking(client) as connection:
        await connection.session.update(session=push)  # type: ignore[arg-type]
        await connection.input_audio_buffer.append(audio=base64.b64encode(bytes(48_000)).decode())
        await connection.input_audio_buffer.commit()
        await connection.response.create(response={"metadata": {"turn": "1"}})
        await connection.response.cancel(response_id="resp_other")
        refused_ = (await events(connection, "error"))[-1].error
        assert (refused_.code, world.orchestrator.requests) == ("response_cancel_not_active", [])
        service.hangs.set()
        received = await events(connection, "response.done")
    assert received[-1].response.metadata == {"turn": "1"}
    assert world.orchestrator.requests[0].question == QUESTION


async def test_run_ends_with_its_websocket(live: Live, world: World) -> None:
    world.orchestrator.log, world.orchestrator.pause_after = run_of_sentences(), 4
    async with live() as client:
        async with talking(client) as connection:
            await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
            await connection.response.create()
            await events(connection, "response.output_text.delta")
        await asyncio.wait_for(world.orchestrator.was_cancelled.wait(), TIMEOUT_S)


async def test_sound_that_is_not_taken_is_told_of_by_its_item(
    live: Live, service: SpeechService, speech: bytes
) -> None:
    service.hangs = asyncio.Event()
    async with live(**speaking(service)) as client, talking(client) as connection:
        sound = base64.b64encode(speech + bytes(48_000)).decode()
        for _ in range(6):
            await connection.input_audio_buffer.append(audio=sound)
        received = await events(connection, "conversation.item.input_audio_transcription.failed")
        committed = [each.item_id for each in received if each.type == "input_audio_buffer.committed"]
        assert (received[-1].item_id, received[-1].error.code) == (committed[-1], "sound_not_taken")
        service.hangs.set()
        first = await events(connection, "conversation.item.input_audio_transcription.completed")
        assert first[-1].item_id == committed[0]


async def test_session_is_updated_as_far_as_it_is_offered(live: Live, service: SpeechService) -> None:
    wanted = {
        "type": "realtime",
        "output_modalities": ["text"],
        "instructions": "Be kind.",
        "tools": [FUNCTION],
        "tool_choice": {"type": "function", "name": "weather"},
        "max_output_tokens": 200,
        "audio": {"input": {"turn_detection": None, "format": {"type": "audio/pcm", "rate": 24_000}}},
    }
    async with live(**speaking(service)) as client, talking(client) as connection:
        (created,) = await events(connection, "session.created")
        assert created.session.output_modalities == ["audio"]
        await connection.session.update(session=wanted)  # type: ignore[arg-type]
        session = (await events(connection, "session.updated"))[-1].session
        assert (session.output_modalities, session.audio.input.turn_detection, session.instructions) == (
            ["text"],
            None,
            "Be kind.",
        )
        assert (session.tools[0].name, session.tool_choice.name, session.max_output_tokens) == (
            "weather",
            "weather",
            200,
        )
        await connection.session.update(session={"type": "realtime", "tools": [], "tool_choice": "auto"})  # type: ignore[arg-type]
        session = (await events(connection, "session.updated"))[-1].session
        assert (session.tools, session.tool_choice, session.instructions) == ([], "auto", "Be kind.")


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"type": "session.dance"}, "malformed_message"),
        ({"type": "response.create"}, "malformed_message"),
        ({"type": "response.create", "response": {"output_modalities": ["audio"]}}, "speech_not_offered"),
        ({"type": "session.update", "session": 1}, "malformed_message"),
        (
            {"type": "session.update", "session": {"audio": {"output": {"format": {"type": "audio/pcmu"}}}}},
            "malformed_message",
        ),
        ({"type": "conversation.item.create", "item": {"type": "function_call"}}, "malformed_message"),
        (
            {
                "type": "conversation.item.create",
                "item": {"type": "function_call_output", "call_id": "call9", "output": "9"},
            },
            "malformed_message",
        ),
        ({"type": "conversation.item.create", "item": ASKED, "previous_item_id": "item9"}, "malformed_message"),
        ({"type": "session.update", "session": {"tools": [{"type": "mcp"}]}}, "unsupported_parameter"),
        ({"type": "session.update", "session": {"tools": "weather"}}, "malformed_message"),
        ({"type": "session.update", "session": {"max_output_tokens": 0}}, "malformed_message"),
        ({"type": "response.create", "response": {"conversation": "none"}}, "malformed_message"),
        ({"type": "response.cancel"}, "response_cancel_not_active"),
        ({"type": "conversation.item.create", "item": {**ASKED, "content": []}}, "malformed_message"),
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "speech_not_offered"),
        ({"type": "input_audio_buffer.commit"}, "sound_not_understood"),
    ],
)
async def test_wrong_event_is_told_and_the_conversation_goes_on(live: Live, event: dict[str, Any], code: str) -> None:
    async with live() as client, talking(client) as connection:
        await connection.send({**event, "event_id": "mine"})  # type: ignore[arg-type]
        error = (await events(connection, "error"))[-1].error
        assert (error.code, error.event_id) == (code, "mine")
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        await connection.response.create()
        assert (await events(connection, "response.done"))[-1].response.status == "completed"


async def test_run_that_cannot_begin_is_a_failed_response(live: Live, world: World) -> None:
    world.orchestrator.start_failure = ResourceExhausted("a limit is reached", reason="LIMIT_REACHED")
    async with live() as client, talking(client) as connection:
        await connection.conversation.item.create(item=ASKED)  # type: ignore[arg-type]
        await connection.response.create()
        assert (await events(connection, "response.done"))[-1].response.status == "failed"
        assert (await events(connection, "error"))[-1].error.code == "limit_reached"


async def test_handshake_is_checked(live: Live) -> None:
    async with live() as client:
        assert await refused(client, path="/v1/realtime", origin="https://evil.example") == (403, "CROSS_ORIGIN")
        async with opened(client, "/v1/realtime?model=gpt-realtime") as socket:
            assert json.loads(await socket.recv())["error"]["code"] == "model_not_offered"
        page: list[Any] = ["realtime", "openai-insecure-api-key.any"]
        async with opened(client, "/v1/realtime", subprotocols=page) as socket:
            assert socket.subprotocol == "realtime"


SECTION = (
    (Path(__file__).parents[3] / "docs" / "voice.md").read_text().split("\n## Clients of OpenAI's Realtime API\n")[1]
)
NAMED = set(re.findall(r"`([a-z_.]+)`", SECTION.split("\n## ")[0]))
CLIENT_EVENTS = {
    get_args(each.model_fields["type"].annotation)[0] for each in get_args(get_args(RealtimeClientEvent)[0])
}
REFUSED_EVENTS = {"output_audio_buffer.clear"}
IGNORED = {"include", "model", "parallel_tool_calls", "prompt", "reasoning", "tracing", "truncation"}


def test_page_has_each_event_and_each_member_that_the_official_client_may_send() -> None:
    families = {each.rpartition(".")[0] for each in NAMED if each in CLIENT_EVENTS}
    described = NAMED | {f"{family}{suffix}" for family in families for suffix in NAMED if suffix.startswith(".")}
    assert described >= CLIENT_EVENTS
    members = {*get_type_hints(RealtimeSessionCreateRequestParam), *get_type_hints(RealtimeResponseCreateParamsParam)}
    whole = {each.partition(".")[0] for each in NAMED}
    assert members - {"type"} <= whole


async def test_events_that_are_not_offered_are_refused_and_other_members_ignored(live: Live) -> None:
    async with live() as client, talking(client) as connection:
        (created,) = await events(connection, "session.created")
        for name in REFUSED_EVENTS:
            await connection.send({"type": name})  # type: ignore[arg-type]
            assert "docs/voice.md" in (await events(connection, "error"))[-1].error.message
        session: Any = {"type": "realtime", **dict.fromkeys(IGNORED, "other")}
        await connection.session.update(session=session)
        assert (await events(connection, "session.updated"))[-1].session == created.session
        for name in CLIENT_EVENTS - REFUSED_EVENTS:
            await connection.send({"type": name})  # type: ignore[arg-type]
            answer = json.loads(await connection.recv_bytes())
            assert "is no event" not in answer.get("error", {}).get("message", ""), name
