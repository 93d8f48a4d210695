"""Voice of a running system over real WebSockets: speech of espeak-ng comes in, and a double of the endpoints hears and speaks."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from kit.testing.openai import Reply
from tests.integration.api import Api, Json
from tests.integration.conftest import Model, Voices
from tests.integration.scripting import calling, question_in, rounds_in
from tests.integration.system import Groundwork
from tests.speaking import RATE, ogg_opus, silence, spoken_sentence

pytestmark = pytest.mark.integration

QUESTION = "How many days of leave do I have?"
FACT = "Every employee has 28 days of leave a year. Leave is taken until 31 March of the next year."
SENTENCES = ["Every employee has 28 days of leave a year [1]. Leave ", "is taken until 31 March of the next year [1]."]
SEARCH = calling(("search", {"queries": [QUESTION]}))
TIMEOUT_S = 120
STEP_BYTES = RATE // 50 * 2
"""20 ms of sound."""


@pytest.fixture(scope="module")
def speech() -> bytes:
    return spoken_sentence(QUESTION)


@pytest.fixture(scope="module")
def collection_id(model_system: Groundwork) -> str:
    with Api.open(model_system.base_url) as api:
        collection_id = api.new_collection()
        assert api.ingest(collection_id, "leave.txt", FACT.encode())["status"] == "ready"
    return collection_id


class Talk:
    """One WebSocket: what was heard of it, in order; sound is bytes."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.heard: list[Any] = []

    async def say(self, **message: Any) -> None:
        await self._socket.send(json.dumps(message))

    async def speak(self, *sound: bytes) -> None:
        for each in sound:
            await self._socket.send(each)

    async def until(self, event: str) -> Any:
        """The data of the next event of that name."""
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                message = await self._socket.recv()
                self.heard.append(message if isinstance(message, bytes) else json.loads(message))
                if not isinstance(message, bytes) and self.heard[-1]["event"] == event:
                    return self.heard[-1]["data"]

    async def sound(self) -> bytes:
        """The next sound."""
        async with asyncio.timeout(TIMEOUT_S):
            while not isinstance(message := await self._socket.recv(), bytes):
                self.heard.append(json.loads(message))
        self.heard.append(message)
        return message

    @property
    def events(self) -> list[dict[str, Any]]:
        return [each for each in self.heard if not isinstance(each, bytes)]

    def named(self, event: str) -> list[Any]:
        return [each["data"] for each in self.events if each["event"] == event]


@asynccontextmanager
async def talking(system: Groundwork) -> AsyncIterator[Talk]:
    async with connect(f"ws://127.0.0.1:{system.port}/ws/voice-chat", proxy=None, max_size=None) as socket:
        talk = Talk(socket)
        assert (await talk.until("ready"))["audio"] == {"input": True, "output": True}
        yield talk


def in_steps(sound: bytes) -> list[bytes]:
    return [sound[at : at + STEP_BYTES] for at in range(0, len(sound), STEP_BYTES)]


@pytest.mark.parametrize("form", ["pcm16", "opus"])
async def test_first_sentence_is_heard_while_the_second_is_written(
    model_system: Groundwork, scripted: Model, voices: Voices, collection_id: str, speech: bytes, form: str
) -> None:
    gate = asyncio.Event()

    def searches_and_answers(request: Json) -> Reply:
        """The reply to the question; others may come of what tests before this one have said."""
        if "response_format" in request or QUESTION not in question_in(request):
            return Reply(["{}"])
        return Reply(SENTENCES, gate=gate, gate_at=1) if rounds_in(request) else SEARCH

    scripted.will_by_request(searches_and_answers)
    voices.will(QUESTION)
    whole = silence(0.5) + speech + silence(1.0)
    asks = {"collection_ids": [collection_id], "language": "en", "tools": ["search"]}
    async with talking(model_system) as talk:
        given = {"format": form, "turn_detection": True, **({"rate": RATE} if form == "pcm16" else {})}
        await talk.say(type="audio", input=given, output=True, asks=asks)
        await talk.until("audio_ready")
        await talk.speak(*(in_steps(whole) if form == "pcm16" else ogg_opus(whole)))
        await talk.sound()
        assert not gate.is_set()
        assert [each["spoken"] for each in talk.named("speakable")] == [
            "Every employee has twenty-eight days of leave a year."
        ]
        scripted.open(gate)
        ending = await talk.until("spoken")
    assert (talk.named("transcript"), ending["status"]) == ([{"text": QUESTION}], "completed")
    (started,) = talk.named("speech_started")
    assert 0.5 < started["at_s"] < 0.5 + 0.3, "speech is found within 300 ms of its first sound"
    said = [each["spoken"] for each in talk.named("speakable")]
    assert [each["input"] for each in voices.service.spoken] == said
    assert said[1] == "Leave is taken until thirty-first March of the next year."
    assert all(each["citations"][0]["document_name"] == "leave.txt" for each in talk.named("speakable")[:2])
    assert len([each for each in talk.heard if isinstance(each, bytes)]) >= len(said)


async def test_who_speaks_breaks_off_what_is_said(
    model_system: Groundwork, scripted: Model, voices: Voices, collection_id: str, speech: bytes
) -> None:
    scripted.will(Reply(SENTENCES))
    voices.will("", endless=True)
    asks = {"collection_ids": [collection_id], "language": "en", "tools": []}
    async with talking(model_system) as talk:
        await talk.say(type="audio", input={"rate": RATE}, output=True, asks=asks)
        await talk.say(type="message", message=QUESTION, **asks)
        await talk.sound()
        sent_s = 0.0
        for step in in_steps(speech):
            await talk.speak(step)
            sent_s += 0.02
            if sent_s > 0.3:
                break
        broken = await talk.until("interrupted")
        assert broken["reason"] == "speech", "300 ms of speech are enough"
        at = len(talk.heard)
        await talk.speak(*in_steps(speech), silence(1.0))
        await talk.until("transcript")
    assert not [each for each in talk.heard[at:] if isinstance(each, bytes)], "no sound comes after it"
    assert await asyncio.to_thread(voices.hung_up), "the voice is told to stop"
    with Api.open(model_system.base_url) as api:
        done = api.replay(broken["run_id"])[-1]
    assert (done.kind, done.data["status"]) in (("done", "cancelled"), ("done", "completed"))


async def test_client_that_comes_back_gets_each_event_and_each_piece_once(
    model_system: Groundwork, scripted: Model, collection_id: str
) -> None:
    gate = asyncio.Event()
    scripted.will(Reply(SENTENCES, gate=gate, gate_at=1))
    asked = {"message": QUESTION, "collection_ids": [collection_id], "language": "en", "tools": []}
    async with talking(model_system) as first:
        await first.say(type="message", **asked)
        run_id = (await first.until("run"))["run_id"]
        await first.until("speakable")
        await first.until("token")
    known = [each for each in first.events if each["id"]]
    async with talking(model_system) as second:
        await second.say(type="resume", run_id=run_id, after=int(known[-1]["id"]), after_piece=0, language="en")
        scripted.open(gate)
        ending = await second.until("spoken")
    then = [each for each in second.events if each["id"]]
    seqs = [int(each["id"]) for each in [*known, *then]]
    assert seqs == list(range(1, len(seqs) + 1))
    pieces = [*first.named("speakable"), *second.named("speakable")]
    assert [each["index"] for each in pieces] == list(range(ending["pieces"]))
    assert (ending["status"], len(scripted.scripted.requests)) == ("completed", 1)
