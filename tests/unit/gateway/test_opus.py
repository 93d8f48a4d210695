"""Opus in its containers, decoded while it comes."""

from pathlib import Path

import pytest

from services.gateway.errors import SoundNotUnderstood
from services.gateway.voice.opus import OggPages, OpusDecoder
from services.gateway.voice.sound import seconds
from tests.speaking import ogg_opus, silence

RECORDING = (Path(__file__).parents[2] / "data" / "sound" / "question.webm").read_bytes()
"""By Chromium, of 3.6 s: a spoken question in silence."""
EBML = RECORDING[:40]


def decoded(data: bytes, step: int) -> bytes:
    decoder = OpusDecoder()
    return b"".join(decoder.decode(data[at : at + step]) for at in range(0, len(data), step))


def test_recording_of_a_browser_sounds_the_same_in_pieces_of_any_size() -> None:
    whole = decoded(RECORDING, len(RECORDING))
    assert 3.5 < seconds(whole) < 3.7
    assert max(whole[1::2]) > 0, "there is sound in it"
    for step in (6, 101, 1_000):
        assert decoded(RECORDING, step) == whole


def test_ogg_sounds_as_long_as_it_was_spoken() -> None:
    pages = ogg_opus(silence(2.0))
    decoder = OpusDecoder()
    sound = [decoder.decode(each) for each in pages]
    assert abs(seconds(b"".join(sound)) - 2.0) < 0.1
    assert sum(map(bool, sound)) > len(pages) - 5, "each page is heard as it comes"


def test_recording_replaces_the_one_before() -> None:
    decoder = OpusDecoder()
    first = decoder.decode(RECORDING[:2_000])
    ogg = b"".join(ogg_opus(silence(1.0)))
    assert abs(seconds(decoder.decode(ogg)) - 1.0) < 0.1
    assert decoder.decode(RECORDING[:2_000]) == first


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"neither", "from its first byte"),
        (b"OggS\x00\x02" + b"garbage" * 20_000, "cannot be read"),
        (EBML + b"\x00" * 100, "cannot be read"),
        (b"\x1a\x45\xdf\xa3\x80\xa3\x10\x20\x00\x00" + bytes(2_000_000), "a block is too long"),
        (b"\x1a\x45\xdf\xa3\x80\xa3\x85\x81\x00\x00\x06\x00", "no single packet"),
    ],
)
def test_what_is_no_recording_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(SoundNotUnderstood, match=says):
        OpusDecoder().decode(data)


def test_hours_of_silence_in_a_small_message_are_refused() -> None:
    pages = OggPages()
    decoder = OpusDecoder()
    head, *_ = ogg_opus(silence(0.1))
    decoder.decode(head)
    pages.written, silent = 2, bytes([3 << 3])  # an empty frame of 60 ms
    with pytest.raises(SoundNotUnderstood, match="over 60 s of sound"):
        decoder.decode(b"".join(pages.page(silent) for _ in range(2_000)))
