"""What a client of the Realtime API may set, for its session and for one response."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from kit.validation import expectation
from services.gateway.adapters.speech import SpeechApi
from services.gateway.errors import MalformedMessage, SpeechNotOffered
from services.gateway.models import Json
from services.gateway.openai.messages import FunctionDefinition, OpenAiBody
from services.gateway.openai.requests import Choice
from services.gateway.openai.response_requests import ResponseTool
from services.gateway.voice.realtime.conversation import checked_object, new_id

_RATE = 24_000
_Tokens = Annotated[int, Field(ge=1, le=1_000_000)] | Literal["inf"]


class _Wanted(OpenAiBody):
    """Members of a session and of a response that say what its answer is made from."""

    instructions: Annotated[str, Field(max_length=32_000)] | None = None
    tools: Annotated[list[ResponseTool], Field(max_length=128)] | None = None
    tool_choice: Choice | None = None
    max_output_tokens: _Tokens | None = None
    metadata: dict[str, str] | None = None


@dataclass(frozen=True)
class ResponseOptions:
    """How a response is made."""

    speaks: bool
    instructions: str = ""
    functions: tuple[FunctionDefinition, ...] = ()
    """Functions of the client's."""
    function_choice: str = "auto"
    max_output_tokens: int = 0
    """0: as many as the operator allows."""
    metadata: dict[str, str] | None = None

    def changed(self, wanted: Json, of: str) -> "ResponseOptions":
        """With what is set in a session or a response. Raises MalformedMessage, UnsupportedParameter."""
        try:
            read = _Wanted.model_validate(wanted)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(each) for each in (of, *first["loc"]))
            raise MalformedMessage(f"{place} is not understood: {expectation(first)}", field=place) from None
        changes: dict[str, Any] = {}
        if read.instructions is not None:
            changes["instructions"] = read.instructions
        if read.tools is not None:
            changes["functions"] = tuple(each.as_chat().definition() for each in read.tools)
        if read.tool_choice is not None:
            choice = read.tool_choice
            changes["function_choice"] = choice if isinstance(choice, str) else choice.choice()
        if read.max_output_tokens is not None:
            changes["max_output_tokens"] = 0 if read.max_output_tokens == "inf" else read.max_output_tokens
        return replace(self, **changes, metadata=read.metadata)


class RealtimeSession:
    """The settings of one conversation. Members that change nothing here are not shown."""

    def __init__(self, model: str, speech: SpeechApi) -> None:
        self._model = model
        self._speech = speech
        self._id = new_id("sess")
        self._options = ResponseOptions(speech.speaks)
        self.detects = self.answers = self.interrupts = True
        self.voice = self.language = ""

    def update(self, wanted: object) -> None:
        """Takes over what is set, all of it or nothing. Raises MalformedMessage, SpeechNotOffered, UnsupportedParameter."""
        session = checked_object(wanted, "session")
        if session.get("type", "realtime") != "realtime":
            raise MalformedMessage("session.type is another one; use realtime", field="session.type")
        options = self._changed(session, "session")
        audio = checked_object(session.get("audio"), "session.audio")
        heard, said = (
            checked_object(audio.get("input"), "audio.input"),
            checked_object(audio.get("output"), "audio.output"),
        )
        for form in (heard.get("format"), said.get("format")):
            _check_format(form)
        transcription = checked_object(heard.get("transcription"), "audio.input.transcription")
        if "turn_detection" in heard:
            self._set_detection(heard["turn_detection"])
        self._options = replace(options, metadata=None)
        self.language = str(transcription.get("language") or self.language)[:3]
        self.voice = str(said.get("voice") or self.voice)[:100]

    def options(self, wanted: object) -> ResponseOptions:
        """How a response is made that is asked for so. Raises MalformedMessage, SpeechNotOffered, UnsupportedParameter."""
        response = checked_object(wanted, "response")
        if response.get("conversation", "auto") != "auto" or response.get("input") is not None:
            raise MalformedMessage(
                "a response answers the conversation; leave `input` and `conversation` out of it",
                field="response.conversation",
            )
        return self._changed(response, "response")

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
        options = self._options
        choice = options.function_choice
        is_named = choice not in ("auto", "none", "required")
        return {
            "id": self._id,
            "object": "realtime.session",
            "type": "realtime",
            "model": self._model,
            "output_modalities": ["audio" if options.speaks else "text"],
            "instructions": options.instructions,
            "tools": [_shown_function(each) for each in options.functions],
            "tool_choice": {"type": "function", "name": choice} if is_named else choice,
            "max_output_tokens": options.max_output_tokens or "inf",
            "audio": {
                "input": {"format": form, "turn_detection": detection if self.detects else None},
                "output": {"format": form, "voice": self.voice or "default"},
            },
        }

    def _changed(self, wanted: Json, of: str) -> ResponseOptions:
        return replace(self._options.changed(wanted, of), speaks=self._speaks_in(wanted))

    def _speaks_in(self, wanted: Json) -> bool:
        modalities = wanted.get("output_modalities")
        if modalities is None:
            return self._options.speaks
        if modalities not in (["text"], ["audio"]):
            raise MalformedMessage('output_modalities is another one; use ["text"] or ["audio"]')
        if modalities == ["audio"] and not self._speech.speaks:
            raise SpeechNotOffered("no speech endpoint is set up; ask for text")
        return bool(modalities == ["audio"])

    def _set_detection(self, wanted: object) -> None:
        detection = checked_object(wanted, "turn_detection")
        if detection.get("type", "server_vad") != "server_vad":
            raise MalformedMessage("turn_detection.type is another one; use server_vad, or null")
        self.detects = wanted is not None
        self.answers = detection.get("create_response") is not False
        self.interrupts = detection.get("interrupt_response") is not False


def _shown_function(function: FunctionDefinition) -> Json:
    return {
        "type": "function",
        "name": function.name,
        "description": function.description or "",
        "parameters": function.parameters or {"type": "object", "properties": {}},
    }


def _check_format(form: Any) -> None:
    if form is None:
        return
    if checked_object(form, "format").get("type") != "audio/pcm" or form.get("rate", _RATE) != _RATE:
        raise MalformedMessage("this format of sound is not understood; use audio/pcm with rate 24000")
