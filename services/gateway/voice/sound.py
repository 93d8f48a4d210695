"""Sound as numbers: PCM of 16 bits, one channel."""

import io
import wave
from typing import Literal

import numpy as np

SoundFormat = Literal["pcm16", "opus"]
DETECTED_RATE = 16_000
"""Samples a second that speech is found in."""
_SAMPLE_BYTES = 2


def resampled(pcm: bytes, rate: int) -> bytes:
    """The sound at DETECTED_RATE, by linear interpolation: enough to find speech in, and for a recogniser."""
    if rate == DETECTED_RATE:
        return pcm
    samples = np.frombuffer(pcm, dtype="<i2")
    count = len(samples) * DETECTED_RATE // rate
    places = np.arange(count) * (rate / DETECTED_RATE)
    result: bytes = np.interp(places, np.arange(len(samples)), samples).astype("<i2").tobytes()
    return result


def wav_file(pcm: bytes) -> bytes:
    """A WAV file of sound at DETECTED_RATE."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(_SAMPLE_BYTES)
        written.setframerate(DETECTED_RATE)
        written.writeframes(pcm)
    return file.getvalue()


def seconds(pcm: bytes | bytearray) -> float:
    """How long sound at DETECTED_RATE lasts."""
    return len(pcm) / (DETECTED_RATE * _SAMPLE_BYTES)
