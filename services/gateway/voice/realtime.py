"""A subset of OpenAI's Realtime API at `/v1/realtime`, so that its clients speak with documents. Responses are runs. Their text and
sound come sentence by sentence, and `groundwork` beside OpenAI's members holds the citations."""

import base64
import binascii
import json
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.errors import Code, GroundworkError
from services.gateway.access.existence import require_existing
from services.gateway.access.memory_modes import memory_mode
from services.gateway.access.own_default import resolve_collection_ids
from services.gateway.backends import Backends
from services.gateway.errors import MalformedMessage, ModelNotOffered, SoundNotUnderstood, SpeechNotOffered
from services.gateway.models import Json, RunEvent
from services.gateway.voice.languages import SpokenLanguages
from services.gateway.voice.pieces import Speakable
from services.gateway.voice.realtime_response import RealtimeResponse, new_id
from services.gateway.voice.realtime_session import RealtimeSession, item_text, read_item
from services.gateway.voice.socket import ClientSocket, next_message
from services.gateway.voice.speaker import SOUND_RATE, Speaker
from services.gateway.voice.transcriber import Transcriber
from services.gateway.voice.turns import Turns

MODEL = "groundwork"
_MOST_HISTORY = 100
_MOST_HISTORY_CHARACTERS = 100_000
_WHY_CANCELLED = {"speech": "turn_detected"}


class Realtime:
    """One client. It keeps the conversation, which ends with the WebSocket."""

    def __init__(self, socket: ClientSocket, services: Backends, languages: SpokenLanguages, model: str) -> None:
        self._socket = socket
        self._services = services
        self._languages = languages
        name, _, collection = model.partition("@")
        self._is_offered = name in ("", MODEL)
        self._collections = [collection] if collection else []
        self._turns = Turns(services, self)
        self._speaker = Speaker(services.speech, self)
        self._session = RealtimeSession(model or MODEL, services.speech)
        self._transcriber = Transcriber(
            services.speech,
            started=self._speech_started,
            stopped=self._speech_stopped,
            understood=self._understood,
            failed=self._not_heard,
            refused=self._not_taken,
        )
        self._said: list[pb.HistoryMessage] = []
        self._last_item: str | None = None
        self._response: RealtimeResponse | None = None
        self._is_listening = False
        self._speaking = ""
        """Id of the item that is being said."""
        self._unheard: deque[str] = deque()
        """Ids of the items whose sound is committed and whose words are not known."""

    async def converse(self) -> None:
        """Serves the client until it goes, or has been silent for too long. Raises WebSocketDisconnect, ModelNotOffered."""
        if not self._is_offered:
            await self._fail(ModelNotOffered(f"this model is not offered; use {MODEL}, or {MODEL}@ and a collection"))
            return
        await self._tell("session.created", session=self._session.shown())
        idle_s = self._services.settings.voice_idle_timeout_s
        try:
            while (heard := await next_message(self._socket, idle_s, lambda: self._turns.is_busy)) is not None:
                event: Json = {}
                try:
                    event = _read(heard)
                    await self._handle_event(event)
                except GroundworkError as error:
                    await self._fail(error, event.get("event_id"))
        finally:
            await self._transcriber.close()
            await self._turns.close(cancels=True)  # nobody can come back for it
            await self._speaker.stop()

    async def _handle_event(self, event: Json) -> None:
        match event.get("type"):
            case "session.update":
                self._session.update(event.get("session"))
                self._speaker.voice = self._session.voice
                self._is_listening = False
                await self._tell("session.updated", session=self._session.shown())
            case "input_audio_buffer.append":
                await self._listen()
                await self._transcriber.hear(_sound(event.get("audio")))
            case "input_audio_buffer.commit":
                await self._transcriber.commit()
                if not self._session.detects:
                    await self._committed(new_id("item"))
            case "input_audio_buffer.clear":
                self._transcriber.clear()
                await self._tell("input_audio_buffer.cleared")
            case "conversation.item.create":
                item = read_item(event.get("item"))
                await self._add(item, item_text(item), item["role"])
            case "response.create":
                await self._respond(event.get("response"))
            case "response.cancel":
                await self._turns.interrupt("cancel")
            case other:
                raise MalformedMessage(
                    f"{str(other)[:80]!r} is no event that is understood here; docs/voice.md lists them"
                )

    async def _listen(self) -> None:
        """Begins to listen as the session says, with the first sound. Raises SpeechNotOffered."""
        if self._is_listening:
            return
        if not self._services.speech.hears:
            raise SpeechNotOffered("no transcription endpoint is set up; send messages of text")
        await self._transcriber.set_up(
            "pcm16", SOUND_RATE, detects=self._session.detects, language=self._session.language
        )
        self._is_listening = True

    async def _speech_started(self, at_s: float) -> None:
        self._speaking = new_id("item")
        await self._tell("input_audio_buffer.speech_started", audio_start_ms=round(at_s * 1000), item_id=self._speaking)
        if self._session.interrupts:
            await self._turns.interrupt("speech")

    async def _speech_stopped(self, at_s: float) -> None:
        await self._tell("input_audio_buffer.speech_stopped", audio_end_ms=round(at_s * 1000), item_id=self._speaking)
        await self._committed(self._speaking)

    async def _committed(self, item_id: str) -> None:
        self._unheard.append(item_id)
        await self._tell("input_audio_buffer.committed", item_id=item_id, previous_item_id=self._last_item)

    async def _understood(self, text: str) -> None:
        item_id = self._unheard.popleft() if self._unheard else new_id("item")
        part = {"type": "input_audio", "transcript": text}
        item = {"id": item_id, "type": "message", "role": "user", "status": "completed", "content": [part]}
        await self._add(item, text, "user")
        heard = {
            "item_id": item_id,
            "content_index": 0,
            "transcript": text,
            "usage": {"type": "duration", "seconds": 0},
        }
        await self._tell("conversation.item.input_audio_transcription.completed", **heard)
        if text and self._session.detects and self._session.answers:
            await self._respond(None)

    async def _not_heard(self, error: GroundworkError) -> None:
        await self._tell_unheard(self._unheard.popleft() if self._unheard else new_id("item"), error)

    async def _not_taken(self, error: GroundworkError) -> None:
        await self._tell_unheard(self._unheard.pop(), error)

    async def _tell_unheard(self, item_id: str, error: GroundworkError) -> None:
        told = {"type": "server_error", "code": error.reason.lower(), "message": error.message, "param": None}
        kind = "conversation.item.input_audio_transcription.failed"
        await self._tell(kind, item_id=item_id, content_index=0, error=told)

    async def _add(self, item: Json, text: str, role: str) -> None:
        previous, self._last_item = self._last_item, item["id"]
        if text and role in ("user", "assistant"):
            self._said.append(pb.HistoryMessage(role=role, text=text))
            del self._said[:-_MOST_HISTORY]
        for kind in ("added", "done"):
            await self._tell(f"conversation.item.{kind}", item=item, previous_item_id=previous)

    async def _respond(self, wanted: object) -> None:
        """Answers the last message. Raises MalformedMessage where it is not the user's."""
        speaks = self._session.speaks_in(wanted)
        if not self._said or self._said[-1].role != "user":
            raise MalformedMessage("there is nothing to answer: the last item of the conversation is not the user's")
        question = self._said[-1].text
        self._socket.note_turn()
        language = self._session.language or await self._languages.of(question)

        async def created() -> None:
            self._response = RealtimeResponse(speaks=speaks)
            await self._tell("response.created", response=self._response.shown("in_progress"))

        await self._turns.begin(partial(self._run_request, question, self._history()), language, created)

    def _history(self) -> list[pb.HistoryMessage]:
        """What was said before the last message, as far back as fits."""
        kept: list[pb.HistoryMessage] = []
        left = _MOST_HISTORY_CHARACTERS
        for message in reversed(self._said[:-1]):
            left -= len(message.text)
            if left < 0:
                break
            kept.append(message)
        return kept[::-1]

    async def _run_request(self, question: str, history: list[pb.HistoryMessage]) -> pb.StartRunRequest:
        collection_ids = resolve_collection_ids(self._services, self._collections)
        found = await require_existing(self._services, collection_ids)
        return pb.StartRunRequest(
            mode=pb.RUN_MODE_CHAT,
            question=question,
            history=history,
            collection_ids=collection_ids,
            style="spoken",
            memory=memory_mode("", found),
        )

    async def happened(self, event: RunEvent) -> None:
        """Clients of this API know no events of a run."""

    async def said(self, piece: Speakable, run_id: str, seq: int) -> None:  # noqa: ARG002 - the listener's contract
        response = self._response
        if response is None:
            return
        response.run_id = run_id
        if not response.text:
            await self._tell("response.output_item.added", **response.place("item"), item=response.item("in_progress"))
            await self._tell(
                "conversation.item.added", item=response.item("in_progress"), previous_item_id=self._last_item
            )
            await self._tell("response.content_part.added", **response.place(), part=response.part())
        delta = response.add(piece)
        kind = "output_audio_transcript" if response.speaks else "output_text"
        beside = {"citations": piece.citations}
        await self._tell(f"response.{kind}.delta", **response.place(), delta=delta, groundwork=beside)
        if response.speaks:
            await self._speaker.say(run_id, piece)

    async def ended(self, ending: Json) -> None:
        await self._speaker.finish()
        status = "completed" if ending["status"] in ("completed", "refused") else "incomplete"
        await self._finish(status, ending)

    async def failed(self, data: Json) -> None:
        await self._finish("failed", details={"error": {"type": "server_error", "code": data["reason"]}})
        await self._tell("error", error=_error(data["reason"], data["message"], "server_error"))

    async def interrupted(self, run_id: str, reason: str) -> None:  # noqa: ARG002 - the listener's contract
        await self._speaker.stop()
        await self._finish("cancelled", details={"reason": _WHY_CANCELLED.get(reason, "client_cancelled")})

    async def _finish(self, status: str, ending: Json | None = None, details: Json | None = None) -> None:
        response, self._response = self._response, None
        if response is None:
            return
        if response.text:
            if response.speaks:
                await self._tell("response.output_audio.done", **response.place())
                await self._tell("response.output_audio_transcript.done", **response.place(), transcript=response.text)
            else:
                await self._tell("response.output_text.done", **response.place(), text=response.text)
            await self._tell("response.content_part.done", **response.place(), part=response.part())
            await self._tell("response.output_item.done", **response.place("item"), item=response.item(status))
            self._said.append(pb.HistoryMessage(role="assistant", text=response.text))
            self._last_item = response.item_id
        told = {"type": status, **(details or {})} if status != "completed" else None
        await self._tell("response.done", response=response.shown(status, ending, told))

    async def sound_begins(self, run_id: str, piece: Speakable) -> None: ...

    async def sound(self, pcm: bytes) -> None:
        if self._response is not None:
            delta = base64.b64encode(pcm).decode()
            await self._tell("response.output_audio.delta", **self._response.place(), delta=delta)

    async def sound_ends(self, run_id: str, piece: Speakable) -> None: ...

    async def sound_failed(self, run_id: str, error: GroundworkError) -> None:  # noqa: ARG002 - the listener's contract
        await self._fail(error)

    async def _fail(self, error: GroundworkError, event_id: object = None) -> None:
        kind = "server_error" if error.code in (Code.UNAVAILABLE, Code.INTERNAL) else "invalid_request_error"
        await self._tell("error", error={**_error(error.reason, error.message, kind), "event_id": event_id})

    async def _tell(self, kind: str, **members: Any) -> None:
        await self._socket.tell({"type": kind, "event_id": new_id("event"), **members})


def _read(heard: str | bytes) -> Json:
    try:
        event = json.loads(heard)
    except ValueError:
        raise MalformedMessage("this message is no JSON; send an event of the Realtime API") from None
    if not isinstance(event, dict):
        raise MalformedMessage("this message is no JSON object; send an event of the Realtime API")
    return event


def _sound(audio: object) -> bytes:
    try:
        return base64.b64decode(audio if isinstance(audio, str) else "", validate=True)
    except binascii.Error:
        raise SoundNotUnderstood("`audio` is no base64; send PCM of 16 bits at 24 kHz in it") from None


def _error(reason: str, message: str, kind: str) -> Mapping[str, object]:
    return {"type": kind, "code": reason.lower(), "message": message, "param": None, "event_id": None}
