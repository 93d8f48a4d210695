"""A double of a speech service: it takes sound for text and text for sound, over HTTP, as OpenAI's API has it."""

import asyncio
import io
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.doubles.http_double import LOOPBACK

SOUND_OF_A_PIECE = b"\x01\x02" * 4_800
"""A fifth of a second."""


@dataclass
class SpeechService:
    """What it was asked, and what it answers next."""

    url: str = ""
    texts: list[str] = field(default_factory=list)
    """What is understood, one after another; then nothing is."""
    files: list[tuple[str, bytes]] = field(default_factory=list)
    forms: list[dict[str, str]] = field(default_factory=list)
    spoken: list[dict[str, str]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    pieces: int = 2
    """Of sound for each text."""
    endless: bool = False
    """Whether sound goes on until the client hangs up."""
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    hangs: asyncio.Event | None = None
    """What is heard waits for it."""
    status: int = 200

    async def transcribe(self, request: web.Request) -> web.Response:
        self.keys.add(request.headers.get("Authorization", ""))
        form = await request.post()
        sound = form["file"]
        assert isinstance(sound, web.FileField)
        self.files.append((sound.filename, sound.file.read()))
        self.forms.append({name: value for name, value in form.items() if isinstance(value, str)})
        if self.hangs is not None:
            await self.hangs.wait()
        if self.status != 200:
            return web.json_response({"error": {"message": "it is broken"}}, status=self.status)
        return web.json_response({"text": self.texts.pop(0) if self.texts else ""})

    async def speak(self, request: web.Request) -> web.StreamResponse:
        self.keys.add(request.headers.get("Authorization", ""))
        self.spoken.append(await request.json())
        if self.status != 200:
            return web.json_response({"error": {"message": "it is broken"}}, status=self.status)
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            count = 0
            while self.endless or count < self.pieces:
                await answer.write(SOUND_OF_A_PIECE)
                count += 1
                if self.endless:
                    await asyncio.sleep(0.005)  # as fast as a voice that is quicker than speech
        except (ConnectionError, asyncio.CancelledError):
            self.hung_up.set()
            raise
        return answer


def seconds_of(wav: bytes) -> float:
    with wave.open(io.BytesIO(wav)) as file:
        return file.getnframes() / file.getframerate()


@asynccontextmanager
async def speech_service() -> AsyncIterator[SpeechService]:
    service = SpeechService()
    app = web.Application()
    app.router.add_post("/v1/audio/transcriptions", service.transcribe)
    app.router.add_post("/v1/audio/speech", service.speak)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0)
    await site.start()
    service.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}/v1"
    try:
        yield service
    finally:
        await runner.cleanup()
