"""What a client says over `/ws/voice-chat`: JSON objects with a `type`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from kit.stores.idempotency import KEY_PATTERN
from kit.validation import expectation
from services.gateway.errors import MalformedMessage
from services.gateway.schemas.conversations.chat import ToolChatRequest
from services.gateway.schemas.fields import Pattern, RequestBody, RunId
from services.gateway.voice.sound import SoundFormat

_MOST_TOLD = 5
Language = Annotated[str, Pattern("^[a-z]{2,3}$", "is no language; use its ISO 639 code, `en` for example")]


class SpokenMessage(ToolChatRequest):
    """The next message of a conversation: what POST /v1/chat takes. What is being said is broken off, and its run cancelled."""

    type: Literal["message"]
    language: Language | None = Field(
        default=None, description="Language of the answer; null means that of the message."
    )
    idempotency_key: (
        Annotated[str, Pattern(KEY_PATTERN, "is no idempotency key; use 1 to 255 visible ASCII characters")] | None
    ) = Field(default=None, description="As the header Idempotency-Key.")


class Cancel(RequestBody):
    """Breaks off what is being said, and cancels its run."""

    type: Literal["cancel"]


class Resume(RequestBody):
    """Goes on with a run after the connection was cut."""

    type: Literal["resume"]
    run_id: RunId = Field(description="The run.")
    after: int = Field(default=0, ge=0, lt=10**18, description="`id` of the last event that you have; 0 for all.")
    after_piece: int = Field(default=-1, ge=-1, lt=10**6, description="`index` of the last piece that you have.")
    language: Language | None = Field(default=None, description="As in the message.")


class Commit(RequestBody):
    """Ends an utterance whose sound was sent."""

    type: Literal["commit"]


class SoundInput(RequestBody):
    """What the binary messages of the client hold."""

    format: SoundFormat = Field(
        default="pcm16",
        description="`pcm16`: one channel, little-endian. `opus`: Ogg or WebM, as browsers record it.",
    )
    rate: int = Field(default=16_000, ge=8_000, le=48_000, description="Samples a second of `pcm16`.")
    turn_detection: bool | None = Field(
        default=None,
        description="Whether utterances are found in the sound; otherwise `commit` ends each, and of `opus` each is a whole file. "
        "null: those of `pcm16` are found.",
    )

    @property
    def detects(self) -> bool:
        return self.format == "pcm16" if self.turn_detection is None else self.turn_detection


class SoundSetUp(RequestBody):
    """Sets up sound in and out, for as long as the WebSocket is open."""

    type: Literal["audio"]
    input: SoundInput | None = Field(default=None, description="The sound that is sent; null means none.")
    output: bool = Field(default=False, description="Whether what is to be said comes as sound too.")
    voice: str = Field(default="", max_length=100, description="Voice of the speech endpoint; empty means as set.")
    answers: bool = Field(
        default=True, description="Whether what is heard is asked as a message; otherwise it is only told."
    )
    asks: dict[str, Any] = Field(
        default_factory=dict, description="Members of the messages that are heard, such as `thread_id`."
    )


Message = SpokenMessage | Cancel | Resume | Commit | SoundSetUp
_adapter: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


def read_message(text: str) -> Message:
    """Raises MalformedMessage, which says what is wrong."""
    try:
        return _adapter.validate_json(text)
    except ValidationError as error:
        raise _malformed(error, 1) from None


def heard_message(asks: Mapping[str, Any], text: str) -> SpokenMessage:
    """The message of an utterance. Raises MalformedMessage."""
    try:
        return SpokenMessage.model_validate({**asks, "type": "message", "message": text})
    except ValidationError as error:
        raise _malformed(error, 0) from None


def _malformed(error: ValidationError, skipped: int) -> MalformedMessage:
    problems = "; ".join(
        f"{'.'.join(str(part) for part in each['loc'][skipped:]) or 'type'}: {expectation(each)}"
        for each in error.errors()[:_MOST_TOLD]
    )
    return MalformedMessage(f"this message is not understood: {problems}. docs/voice.md shows the messages")
