"""Turns and their sound where calls come at once, and where something fails that nobody expected."""

import asyncio
from collections.abc import AsyncGenerator, MutableMapping
from typing import Any

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from structlog.testing import capture_logs

from kit.errors import GroundworkError
from services.gateway.adapters.speech import SpeechApi
from services.gateway.backends import Backends
from services.gateway.models import Json, RunEvent
from services.gateway.voice.pieces import Speakable
from services.gateway.voice.speaker import Speaker
from services.gateway.voice.transcriber import Transcriber
from services.gateway.voice.turns import Turns

NO_SERVICES: Backends = None  # type: ignore[assignment] # none is reached


class Listener:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.failures: list[Json] = []
        self.errors: list[GroundworkError] = []
        self.has_failed = asyncio.Event()

    async def said(self, piece: Speakable, run_id: str, seq: int) -> None: ...
    async def happened(self, event: RunEvent) -> None: ...
    async def ended(self, ending: Json) -> None: ...
    async def failed(self, data: Json) -> None:
        self.failures.append(data)
        self.has_failed.set()

    async def interrupted(self, run_id: str, reason: str) -> None:
        await asyncio.sleep(0)  # a client takes a moment for it

    async def sound_begins(self, run_id: str, piece: Speakable) -> None: ...
    async def sound(self, pcm: bytes) -> None: ...
    async def sound_ends(self, run_id: str, piece: Speakable) -> None: ...
    async def sound_failed(self, run_id: str, error: GroundworkError) -> None:
        await self.not_heard(error)

    async def not_heard(self, error: GroundworkError) -> None:
        self.errors.append(error)
        self.has_failed.set()


class BrokenSpeech(SpeechApi):
    """Fails as no endpoint does."""

    def __init__(self) -> None: ...

    async def transcribe(self, sound: bytes, file_name: str, language: str = "") -> str:
        raise ValueError("a defect")

    async def synthesise(self, text: str, voice: str = "") -> AsyncGenerator[bytes, None]:
        raise ValueError("a defect")
        yield b""


@pytest.fixture
def listener() -> Listener:
    return Listener()


async def test_of_two_messages_at_once_one_is_answered(listener: Listener) -> None:
    going_on: set[str] = set()

    async def request(name: str) -> pb.StartRunRequest:
        going_on.add(name)
        try:
            await asyncio.Event().wait()
        finally:
            going_on.remove(name)
        return pb.StartRunRequest()

    turns = Turns(NO_SERVICES, listener)
    await turns.begin(lambda: request("first"), "en")
    await asyncio.sleep(0)
    assert going_on == {"first"}
    await asyncio.gather(turns.begin(lambda: request("typed"), "en"), turns.begin(lambda: request("heard"), "en"))
    await asyncio.sleep(0)
    assert going_on == {"heard"}
    await turns.close(cancels=True)
    assert going_on == set()


async def test_unexpected_error_of_a_turn_is_logged_once_and_told(listener: Listener) -> None:
    async def request() -> pb.StartRunRequest:
        raise ValueError("a defect")

    with capture_logs() as logs:
        await Turns(NO_SERVICES, listener).begin(request, "en")
        await listener.has_failed.wait()
    (told,) = listener.failures
    assert (told["reason"], told["status"], told["run_id"]) == ("INTERNAL", 500, None)
    assert_logged(logs, "turn_failed", told["trace_id"])


async def test_unexpected_error_of_the_voice_is_logged_once_and_told(listener: Listener) -> None:
    speaker = Speaker(BrokenSpeech(), listener)
    with capture_logs() as logs:
        for index in range(3):
            await speaker.say("run", Speakable(index, "sentence", "Hello.", "Hello.", "en"))
        await speaker.finish()
    (error,) = listener.errors
    assert error.reason == "INTERNAL"
    assert_logged(logs, "speech_failed", error.metadata["trace_id"])
    await speaker.stop()


async def test_unexpected_error_of_an_utterance_is_logged_once_and_told(listener: Listener) -> None:
    async def ignored(_: object) -> None: ...

    transcriber = Transcriber(
        BrokenSpeech(),
        started=ignored,
        stopped=ignored,
        understood=ignored,
        failed=listener.not_heard,
        refused=ignored,
    )
    await transcriber.set_up("opus", 16_000, detects=False, language="")
    await transcriber.hear(b"OggS")
    with capture_logs() as logs:
        await transcriber.commit()
        await listener.has_failed.wait()
    assert listener.errors[0].reason == "INTERNAL"
    assert_logged(logs, "utterance_failed", listener.errors[0].metadata["trace_id"])
    await transcriber.close()


def assert_logged(logs: list[MutableMapping[str, Any]], event: str, trace_id: str) -> None:
    assert [(each["event"], each["trace_id"]) for each in logs] == [(event, trace_id)]
