"""What a client says as sound, as utterances and then as text, in the order in which they were said."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.websockets import WebSocketDisconnect

from kit.errors import GroundworkError
from services.gateway.adapters.speech import SpeechApi
from services.gateway.errors import SoundNotTaken, SoundNotUnderstood
from services.gateway.problems import logged
from services.gateway.voice.activity import SpeechFinder, SpeechStarted, SpeechStopped, speech_finder
from services.gateway.voice.opus import OGG, WEBM, OpusDecoder
from services.gateway.voice.sound import DETECTED_RATE, SoundFormat, resampled, wav_file

_MOST_BYTES = 4 * 1024 * 1024
"""Of one utterance whose end the client says: two minutes of PCM at 16 kHz, and hours of Opus."""
_WAITING = 4
"""Utterances that wait for their text. More are refused: a client that is read no further seems dead to its WebSocket."""
_LEAST_BYTES = DETECTED_RATE // 10 * 2
"""A tenth of a second: recognisers refuse less."""


class Transcriber:
    """Listens to one client. Its task ends with `close`."""

    def __init__(
        self,
        speech: SpeechApi,
        *,
        started: Callable[[float], Awaitable[None]],
        stopped: Callable[[float], Awaitable[None]],
        understood: Callable[[str], Awaitable[None]],
        failed: Callable[[GroundworkError], Awaitable[None]],
        refused: Callable[[GroundworkError], Awaitable[None]],
    ) -> None:
        """`started` and `stopped` get the seconds of sound before. Each utterance is then `understood` or `failed`, in order,
        unless it was `refused` as soon as it had `stopped`."""
        self._speech = speech
        self._started, self._stopped, self._understood = started, stopped, understood
        self._failed, self._refused = failed, refused
        self._form: SoundFormat = "pcm16"
        self._rate = DETECTED_RATE
        self._language = ""
        self._finder: SpeechFinder | None = None
        self._decoder: OpusDecoder | None = None
        """Of Opus that speech is found in. Otherwise recordings are handed on as they are."""
        self._heard = bytearray()
        self._utterances: asyncio.Queue[tuple[bytes, str]] = asyncio.Queue(_WAITING)
        self._working: asyncio.Task[None] | None = None

    async def set_up(self, form: SoundFormat, rate: int, *, detects: bool, language: str) -> None:
        """Says what the sound is. With `detects` utterances are found in it; otherwise the client says where one ends."""
        self._form, self._rate, self._language = form, rate, language
        self._heard.clear()
        self._finder = await asyncio.to_thread(speech_finder) if detects else None
        self._decoder = OpusDecoder() if detects and form == "opus" else None

    async def hear(self, data: bytes) -> None:
        """Takes the next sound. Raises SoundNotUnderstood."""
        if self._form == "pcm16" and len(data) % 2:
            raise SoundNotUnderstood("this is no PCM of 16 bits: it has half a sample; send whole samples")
        if self._finder is None:
            if len(self._heard) + len(data) > _MOST_BYTES:
                self._heard.clear()
                raise SoundNotUnderstood(f"an utterance is over {_MOST_BYTES} bytes; commit it earlier")
            self._heard += data
            return
        for each in await asyncio.to_thread(self._find, self._finder, data):
            await self._note(each)

    async def commit(self) -> None:
        """The utterance ends here. Raises SoundNotUnderstood where nothing was said, SoundNotTaken where too much waits."""
        if self._finder is not None:
            for each in self._finder.finish():
                await self._note(each)
            return
        sound = bytes(self._heard)
        self._heard.clear()
        if self._form == "opus":
            self._queue(sound, _file_name(sound))
        elif len(pcm := await asyncio.to_thread(resampled, sound, self._rate)) < _LEAST_BYTES:
            raise SoundNotUnderstood("this utterance is shorter than a tenth of a second; send its sound before commit")
        else:
            self._queue(wav_file(pcm), "speech.wav")

    def clear(self) -> None:
        """Forgets what was not committed."""
        self._heard.clear()
        if self._finder is not None:
            self._finder.finish()

    async def close(self) -> None:
        """Ends the task."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    def _find(self, finder: SpeechFinder, data: bytes) -> list[SpeechStarted | SpeechStopped]:
        return finder.hear(self._decoder.decode(data) if self._decoder else resampled(data, self._rate))

    async def _note(self, found: SpeechStarted | SpeechStopped) -> None:
        if isinstance(found, SpeechStarted):
            await self._started(found.at_s)
        else:
            await self._stopped(found.at_s)
            try:
                self._queue(wav_file(found.pcm), "speech.wav")
            except SoundNotTaken as error:
                await self._refused(error)

    def _queue(self, sound: bytes, file_name: str) -> None:
        """Raises SoundNotTaken, and WebSocketDisconnect where an earlier error could not be sent to the client."""
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        elif self._working.done():
            self._working.result()
        try:
            self._utterances.put_nowait((sound, file_name))
        except asyncio.QueueFull:
            raise SoundNotTaken(
                f"{_WAITING} utterances wait for their text, and this one was thrown away; say it again once they came"
            ) from None

    async def _work(self) -> None:
        while True:
            sound, file_name = await self._utterances.get()
            try:
                await self._understood(await self._speech.transcribe(sound, file_name, self._language))
            except GroundworkError as error:
                await self._failed(error)
            except WebSocketDisconnect:
                raise
            except Exception as error:
                await self._failed(logged("utterance_failed", error))


def _file_name(sound: bytes) -> str:
    """With the ending by which a recogniser knows the container. Raises SoundNotUnderstood."""
    if sound.startswith(OGG):
        return "speech.ogg"
    if sound.startswith(WEBM):
        return "speech.webm"
    raise SoundNotUnderstood("this is no Opus in Ogg or WebM; send one whole file from its first byte, then commit")
