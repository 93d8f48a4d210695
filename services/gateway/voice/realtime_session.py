"""What a client of the Realtime API may set, and the items that it may add."""

import secrets
from typing import Any

from services.gateway.adapters.speech import SpeechApi
from services.gateway.errors import MalformedMessage, SpeechNotOffered
from services.gateway.models import Json

_RATE = 24_000
_LONGEST_TEXT = 8_000
_TEXTS = ("input_text", "output_text", "text")


class RealtimeSession:
    """The settings of one conversation. Members that change nothing here are not shown."""

    def __init__(self, model: str, speech: SpeechApi) -> None:
        self._model = model
        self._speech = speech
        self._id = f"sess_{secrets.token_hex(12)}"
        self._speaks = speech.speaks
        self.detects = self.answers = self.interrupts = True
        self.voice = self.language = ""

    def update(self, wanted: object) -> None:
        """Takes over what is set. Raises MalformedMessage, SpeechNotOffered."""
        session = _object(wanted, "session")
        if session.get("type", "realtime") != "realtime":
            raise MalformedMessage("session.type is another one; use realtime")
        if "output_modalities" in session:
            self._speaks = self.speaks_in(session)
        audio = _object(session.get("audio"), "session.audio")
        heard, said = _object(audio.get("input"), "audio.input"), _object(audio.get("output"), "audio.output")
        for form in (heard.get("format"), said.get("format")):
            _check_format(form)
        if "turn_detection" in heard:
            self._set_detection(heard["turn_detection"])
        transcription = _object(heard.get("transcription"), "audio.input.transcription")
        self.language = str(transcription.get("language") or self.language)[:3]
        self.voice = str(said.get("voice") or self.voice)[:100]

    def speaks_in(self, wanted: object) -> bool:
        """Whether a response that is asked for so comes as sound. Raises MalformedMessage, SpeechNotOffered."""
        modalities = _object(wanted, "response").get("output_modalities")
        if modalities is None:
            return self._speaks
        if modalities not in (["text"], ["audio"]):
            raise MalformedMessage('output_modalities is another one; use ["text"] or ["audio"]')
        if modalities == ["audio"] and not self._speech.speaks:
            raise SpeechNotOffered("no speech endpoint is set up; ask for text")
        return bool(modalities == ["audio"])

    def shown(self) -> Json:
        """As the client reads it."""
        form = {"type": "audio/pcm", "rate": _RATE}
        detection = {
            "type": "server_vad",
            "create_response": self.answers,
            "interrupt_response": self.interrupts,
            "threshold": 0.5,
            "silence_duration_ms": 600,
            "prefix_padding_ms": 300,
        }
        return {
            "id": self._id,
            "object": "realtime.session",
            "type": "realtime",
            "model": self._model,
            "output_modalities": ["audio" if self._speaks else "text"],
            "audio": {
                "input": {"format": form, "turn_detection": detection if self.detects else None},
                "output": {"format": form, "voice": self.voice or "default"},
            },
        }

    def _set_detection(self, wanted: object) -> None:
        self.detects = wanted is not None
        detection = _object(wanted, "turn_detection")
        if detection.get("type", "server_vad") != "server_vad":
            raise MalformedMessage("turn_detection.type is another one; use server_vad, or null")
        self.answers = detection.get("create_response") is not False
        self.interrupts = detection.get("interrupt_response") is not False


def read_item(wanted: object) -> Json:
    """An item that the client adds. Raises MalformedMessage."""
    item = _object(wanted, "item")
    if item.get("type") != "message" or item.get("role") not in ("user", "assistant", "system"):
        raise MalformedMessage("this item is not understood; send a message of role user, assistant or system")
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    if not parts or any(_object(part, "content").get("type") not in _TEXTS for part in parts):
        raise MalformedMessage("the content of an item is text only; send sound with input_audio_buffer.append")
    read = {**item, "id": str(item.get("id") or f"item_{secrets.token_hex(12)}")[:100], "status": "completed"}
    if not item_text(read).strip() or len(item_text(read)) > _LONGEST_TEXT:
        raise MalformedMessage(f"the text of an item has 1 to {_LONGEST_TEXT} characters; send such a one")
    return read


def item_text(item: Json) -> str:
    """The words of an item."""
    return "".join(str(part.get("text") or "") for part in item["content"])


def _check_format(form: Any) -> None:
    if form is not None and (_object(form, "format").get("type") != "audio/pcm" or form.get("rate", _RATE) != _RATE):
        raise MalformedMessage("this format of sound is not understood; use audio/pcm with rate 24000")


def _object(value: object, name: str) -> Json:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedMessage(f"{name} is no object; see OpenAI's Realtime API")
    return value
