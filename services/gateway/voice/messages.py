"""What a client says over `/ws/voice-chat`: JSON objects with a `type`."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from kit.stores.idempotency import KEY_PATTERN
from kit.validation import expectation
from services.gateway.errors import MalformedMessage
from services.gateway.schemas.chat import ToolChatRequest
from services.gateway.schemas.fields import Pattern, RequestBody, RunId

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


ClientMessage = Annotated[SpokenMessage | Cancel | Resume, Field(discriminator="type")]
_adapter: TypeAdapter[SpokenMessage | Cancel | Resume] = TypeAdapter(ClientMessage)


def read_message(text: str) -> SpokenMessage | Cancel | Resume:
    """Raises MalformedMessage, which says what is wrong."""
    try:
        return _adapter.validate_json(text)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'][1:]) or 'type'}: {expectation(each)}"
            for each in error.errors()[:_MOST_TOLD]
        )
        raise MalformedMessage(f"this message is not understood: {told}. docs/voice.md shows the messages") from None
