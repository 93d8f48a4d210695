"""Events of the Realtime API as they come, and errors in its shape."""

import base64
import binascii
import json

from kit.errors import Code, GroundworkError
from services.gateway.errors import MalformedMessage, SoundNotUnderstood
from services.gateway.models import Json
from services.gateway.voice.realtime.conversation import new_id


def read_event(heard: str | bytes) -> Json:
    """The event that a client has sent. Raises MalformedMessage."""
    try:
        event = json.loads(heard)
    except ValueError:
        raise MalformedMessage("this message is no JSON; send an event of the Realtime API") from None
    if not isinstance(event, dict):
        raise MalformedMessage("this message is no JSON object; send an event of the Realtime API")
    return event


def sound_of(audio: object) -> bytes:
    """The sound in an event. Raises SoundNotUnderstood."""
    try:
        return base64.b64decode(audio if isinstance(audio, str) else "", validate=True)
    except binascii.Error:
        raise SoundNotUnderstood("`audio` is no base64; send PCM of 16 bits at 24 kHz in it", field="audio") from None


def realtime_error(error: GroundworkError, event_id: object = None) -> Json:
    """The error as clients of the Realtime API read it. `event_id` names the client's event that caused it."""
    kind = "server_error" if error.code in (Code.UNAVAILABLE, Code.INTERNAL) else "invalid_request_error"
    return error_shape(error.reason.lower(), error.message, kind, error.metadata.get("field"), event_id)


def closing_event(error: GroundworkError) -> Json:
    """The last event that a client gets before its connection is closed."""
    return {"type": "error", "event_id": new_id("event"), "error": realtime_error(error)}


def error_shape(
    code: str,
    message: str,
    kind: str = "invalid_request_error",
    param: str | None = None,
    event_id: object = None,
) -> Json:
    """What is in `error` of an event."""
    named = event_id if isinstance(event_id, str) else None
    return {"type": kind, "code": code, "message": message, "param": param, "event_id": named}
