"""Speech to text and text to speech, over endpoints that speak OpenAI's API."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from pydantic import SecretStr

from services.gateway.errors import SpeechUnavailable
from services.gateway.settings import GatewaySettings

_CONNECT_TIMEOUT_S = 5.0
_PIECE_BYTES = 9_600
"""A fifth of a second of sound: small enough that little is under way when somebody interrupts."""
_MOST_SHOWN = 200


class SpeechApi:
    """Speech over HTTP. What is not set up is not offered."""

    def __init__(
        self, listening: httpx.AsyncClient | None, speaking: httpx.AsyncClient | None, settings: GatewaySettings
    ) -> None:
        self._listening = listening
        self._speaking = speaking
        self._settings = settings

    @property
    def hears(self) -> bool:
        """Whether speech becomes text."""
        return self._listening is not None

    @property
    def speaks(self) -> bool:
        """Whether text becomes speech."""
        return self._speaking is not None

    async def transcribe(self, sound: bytes, file_name: str, language: str = "") -> str:
        """What is said in a file of sound; empty where nothing is. Raises SpeechUnavailable."""
        assert self._listening is not None
        form = {"model": self._settings.speech_transcription_model, "response_format": "json"}
        if language:
            form["language"] = language
        try:
            answer = await self._listening.post("audio/transcriptions", data=form, files={"file": (file_name, sound)})
        except httpx.HTTPError as error:
            raise _unreachable("transcription", error) from error
        _require_ok("transcription", answer)
        try:
            text: Any = answer.json()["text"]
        except (ValueError, KeyError, TypeError) as error:
            raise SpeechUnavailable("the transcription endpoint answers without a text; check its address") from error
        return str(text).strip()

    async def synthesise(self, text: str, voice: str = "") -> AsyncGenerator[bytes, None]:
        """PCM of 16 bits at 24 kHz, one channel, in whole samples, as it comes. Raises SpeechUnavailable."""
        assert self._speaking is not None
        body = {
            "model": self._settings.speech_model,
            "voice": voice or self._settings.speech_voice,
            "input": text,
            "response_format": "pcm",
        }
        odd = b""
        try:
            async with self._speaking.stream("POST", "audio/speech", json=body) as answer:
                if not answer.is_success:
                    await answer.aread()
                _require_ok("speech", answer)
                async for data in answer.aiter_bytes(_PIECE_BYTES):
                    whole = odd + data
                    end = len(whole) - len(whole) % 2
                    odd = whole[end:]
                    if end:
                        yield whole[:end]
        except httpx.HTTPError as error:
            raise _unreachable("speech", error) from error


@asynccontextmanager
async def open_speech(settings: GatewaySettings) -> AsyncIterator[SpeechApi]:
    """Connections to the endpoints that are set. The environment's proxies are not used: an address is a setting here."""
    hears = bool(settings.speech_base_url and settings.speech_transcription_model)
    output_url = settings.speech_output_base_url or settings.speech_base_url
    speaks = bool(output_url and settings.speech_model)
    async with (
        _client(settings.speech_base_url, settings.speech_api_key, settings) as listening,
        _client(output_url, _output_key(output_url, settings), settings) as speaking,
    ):
        yield SpeechApi(listening if hears else None, speaking if speaks else None, settings)


def _output_key(output_url: str, settings: GatewaySettings) -> SecretStr | None:
    """Key of the endpoint that speaks. The other endpoint's key is not shown to another vendor."""
    if settings.speech_output_api_key is not None:
        return settings.speech_output_api_key
    is_same = not settings.speech_base_url or _origin(output_url) == _origin(settings.speech_base_url)
    return settings.speech_api_key if is_same else None


def _origin(url: str) -> tuple[str, str, int | None]:
    parsed = httpx.URL(url)
    return parsed.scheme, parsed.host, parsed.port


def _client(base_url: str, api_key: SecretStr | None, settings: GatewaySettings) -> httpx.AsyncClient:
    key = api_key.get_secret_value() if api_key else ""
    return httpx.AsyncClient(
        base_url=f"{base_url.rstrip('/')}/" if base_url else "",
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=httpx.Timeout(settings.speech_timeout_s, connect=_CONNECT_TIMEOUT_S),
        trust_env=False,
    )


def _require_ok(what: str, answer: httpx.Response) -> None:
    if not answer.is_success:
        said = " ".join(answer.text.split())[:_MOST_SHOWN]
        raise SpeechUnavailable(f"the {what} endpoint answers with HTTP {answer.status_code}: {said}")


def _unreachable(what: str, error: httpx.HTTPError) -> SpeechUnavailable:
    return SpeechUnavailable(
        f"the {what} endpoint cannot be reached ({type(error).__name__}); text goes on without sound"
    )
