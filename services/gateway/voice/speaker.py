"""Pieces as sound, one after another, beside the events that go on."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from starlette.websockets import WebSocketDisconnect

from kit.errors import GroundworkError
from services.gateway.adapters.speech import SpeechApi
from services.gateway.problems import logged
from services.gateway.voice.pieces import Speakable

SOUND_RATE = 24_000
"""Samples a second of what is said: PCM of 16 bits, one channel."""
_WAITING = 32
"""Pieces that wait to be said. Then the run is read no further."""


class SoundListener(Protocol):
    """Receives what is said. Each call waits until the client takes it."""

    async def sound_begins(self, run_id: str, piece: Speakable) -> None: ...
    async def sound(self, pcm: bytes) -> None: ...
    async def sound_ends(self, run_id: str, piece: Speakable) -> None: ...
    async def sound_failed(self, run_id: str, error: GroundworkError) -> None: ...


@dataclass(frozen=True)
class _Line:
    run_id: str
    piece: Speakable


class Speaker:
    """Says pieces to one client. Its task ends with `stop`."""

    def __init__(self, speech: SpeechApi, listener: SoundListener) -> None:
        self._speech = speech
        self._listener = listener
        self.voice = ""
        """The endpoint's voice; empty means as set."""
        self._lines: asyncio.Queue[_Line] = asyncio.Queue(_WAITING)
        self._saying: asyncio.Task[None] | None = None
        self._speech_failed = False
        """The endpoint has failed in this turn: the rest comes as text."""

    async def say(self, run_id: str, piece: Speakable) -> None:
        """Has the piece said after those before it."""
        if self._speech_failed:
            return
        if self._saying is None:
            self._saying = asyncio.create_task(self._say_all())
        await self._lines.put(_Line(run_id, piece))

    async def finish(self) -> None:
        """Returns once all was said, and forgets what failed."""
        await self._lines.join()
        self._speech_failed = False

    async def stop(self) -> None:
        """Says nothing more of what waits. No sound comes once this has returned."""
        saying, self._saying = self._saying, None
        if saying is not None:
            saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)
        self._lines, self._speech_failed = asyncio.Queue(_WAITING), False

    async def _say_all(self) -> None:
        while True:
            line = await self._lines.get()
            try:
                if not self._speech_failed:
                    await self._say(line)
            except WebSocketDisconnect:
                raise
            except Exception as error:
                self._speech_failed = True
                failure = error if isinstance(error, GroundworkError) else logged("speech_failed", error)
                await self._listener.sound_failed(line.run_id, failure)
            finally:
                self._lines.task_done()

    async def _say(self, line: _Line) -> None:
        begun = False
        async with aclosing(self._speech.synthesise(line.piece.spoken, self.voice)) as sound:
            async for pcm in sound:
                if not begun:
                    await self._listener.sound_begins(line.run_id, line.piece)
                    begun = True
                await self._listener.sound(pcm)
        if begun:
            await self._listener.sound_ends(line.run_id, line.piece)
