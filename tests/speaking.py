"""Speech that espeak-ng makes, for tests of voice."""

import io
import shutil
import subprocess
import wave

import numpy as np
import pytest

RATE = 22_050
"""Of espeak-ng."""


def spoken_sentence(text: str, voice: str = "en") -> bytes:
    """The sentence as PCM of 16 bits at RATE. Skips the test where there is no espeak-ng."""
    program = shutil.which("espeak-ng")
    if program is None:
        pytest.skip("install espeak-ng, which makes the speech of this test")
    made = subprocess.run([program, "-v", voice, "--stdout", text], check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(made)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        pcm: bytes = file.readframes(file.getnframes())
        return pcm


def silence(seconds: float, rate: int = RATE) -> bytes:
    return bytes(2 * round(rate * seconds))


def at_rate(pcm: bytes, rate: int) -> bytes:
    """Sound at RATE as sound at another rate."""
    samples = np.frombuffer(pcm, dtype="<i2")
    places = np.arange(len(samples) * rate // RATE) * (RATE / rate)
    converted: bytes = np.interp(places, np.arange(len(samples)), samples).astype("<i2").tobytes()
    return converted


def ogg_opus(pcm: bytes) -> list[bytes]:
    """Sound at RATE as Opus in Ogg, a page of 20 ms each, as it is recorded."""
    from sphn import OpusStreamWriter  # noqa: PLC0415 - of these tests alone

    samples = np.frombuffer(at_rate(pcm, 48_000), dtype="<i2").astype(np.float32) / 32_768
    writer = OpusStreamWriter(48_000)
    return [bytes(writer.append_pcm(samples[at : at + 960])) for at in range(0, len(samples) - 960, 960)]


def wav(pcm: bytes, rate: int = RATE) -> bytes:
    """Sound as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes(pcm)
    return file.getvalue()
