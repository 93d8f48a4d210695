"""A subset of OpenAI's Realtime API at `/v1/realtime`, so that its clients speak with documents. Responses are runs. Their text and
sound come sentence by sentence, and `groundwork` beside OpenAI's members holds the citations."""

import base64
from collections import deque
from functools import partial
from typing import Any

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.errors import GroundworkError
from services.gateway.access.existence import require_existing
from services.gateway.access.memory_modes import memory_mode
from services.gateway.access.own_default import resolve_collection_ids
from services.gateway.backends import Backends
from services.gateway.errors import MalformedMessage, ModelNotOffered, SpeechNotOffered
from services.gateway.models import Json, RunEvent
from services.gateway.voice.languages import SpokenLanguages
from services.gateway.voice.pieces import Speakable
from services.gateway.voice.realtime.conversation import (
    AskedTurn,
    Conversation,
    new_id,
    sound_item,
)
from services.gateway.voice.realtime.items import ItemEvents
from services.gateway.voice.realtime.response import Events, RealtimeResponse
from services.gateway.voice.realtime.session import RealtimeSession, ResponseOptions
from services.gateway.voice.realtime.wire import error_shape, read_event, realtime_error, sound_of
from services.gateway.voice.socket import ClientSocket, next_message
from services.gateway.voice.speaker import SOUND_RATE, Speaker
from services.gateway.voice.transcriber import Transcriber
from services.gateway.voice.turns import Turns

MODEL = "groundwork"
_WHY_CANCELLED = {"speech": "turn_detected"}
_NOTHING_TO_CANCEL = "response_cancel_not_active"


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
        self._conversation = Conversation()
        self._items = ItemEvents(self._conversation, self._tell)
        self._transcriber = Transcriber(
            services.speech,
            started=self._speech_started,
            stopped=self._speech_stopped,
            understood=self._understood,
            failed=self._not_heard,
            refused=self._not_taken,
        )
        self._response: RealtimeResponse | None = None
        self._is_listening = False
        self._speaking = ""
        """Id of the item that is being said."""
        self._unheard: deque[str] = deque()
        """Ids of the items whose sound is committed and whose words are not known."""
        self._waiting: ResponseOptions | None = None
        """A response that is asked for and waits for these words."""

    async def converse(self) -> None:
        """Serves the client until it goes, or has been silent for too long. Raises WebSocketDisconnect, ModelNotOffered."""
        if not self._is_offered:
            await self._tell_error(
                ModelNotOffered(f"this model is not offered; use {MODEL}, or {MODEL}@ and a collection")
            )
            return
        await self._tell("session.created", session=self._session.shown())
        idle_s = self._services.settings.voice_idle_timeout_s
        try:
            while (heard := await next_message(self._socket, idle_s, lambda: self._turns.is_busy)) is not None:
                event: Json = {}
                try:
                    event = read_event(heard)
                    await self._handle_event(event)
                except GroundworkError as error:
                    await self._tell_error(error, event.get("event_id"))
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
                await self._transcriber.hear(sound_of(event.get("audio")))
            case "input_audio_buffer.commit":
                await self._transcriber.commit()
                if not self._session.detects:
                    await self._committed(new_id("item"))
            case "input_audio_buffer.clear":
                self._transcriber.clear()
                await self._tell("input_audio_buffer.cleared")
            case (
                "conversation.item.create"
                | "conversation.item.retrieve"
                | "conversation.item.delete"
                | "conversation.item.truncate"
            ):
                await self._items.handle(event)
            case "response.create":
                await self._ask_for_response(self._session.options(event.get("response")))
            case "response.cancel":
                await self._cancel_response(event)
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
        item = sound_item(item_id)
        previous = self._conversation.add(item)
        self._unheard.append(item_id)
        await self._tell("input_audio_buffer.committed", item_id=item_id, previous_item_id=previous)
        await self._items.tell_added(item, previous)

    async def _understood(self, text: str) -> None:
        item_id = self._unheard.popleft()
        self._conversation.note_words(item_id, text)
        usage = {"type": "duration", "seconds": 0}
        heard = {"item_id": item_id, "content_index": 0, "transcript": text, "usage": usage}
        await self._tell("conversation.item.input_audio_transcription.completed", **heard)
        if text and self._session.detects and self._session.answers:
            self._waiting = self._waiting or self._session.options(None)
        await self._respond_when_heard()

    async def _not_heard(self, error: GroundworkError) -> None:
        await self._tell_unheard(self._unheard.popleft(), error)

    async def _not_taken(self, error: GroundworkError) -> None:
        await self._tell_unheard(self._unheard.pop(), error)

    async def _tell_unheard(self, item_id: str, error: GroundworkError) -> None:
        details = {name: value for name, value in realtime_error(error).items() if name != "event_id"}
        kind = "conversation.item.input_audio_transcription.failed"
        await self._tell(kind, item_id=item_id, content_index=0, error=details)
        await self._respond_when_heard()

    async def _ask_for_response(self, options: ResponseOptions) -> None:
        """Answers once all that was said is understood. Raises MalformedMessage where there is nothing to answer."""
        if self._unheard:
            self._waiting = options
        else:
            await self._respond(options)

    async def _respond_when_heard(self) -> None:
        if self._unheard or self._waiting is None:
            return
        options, self._waiting = self._waiting, None
        try:
            await self._respond(options)
        except GroundworkError as error:
            await self._tell_error(error)

    async def _respond(self, options: ResponseOptions) -> None:
        asked = self._conversation.asked()
        self._socket.note_turn()
        language = self._session.language or await self._languages.of(asked.question)

        async def created() -> None:
            self._response = RealtimeResponse(options, self._conversation)
            await self._tell("response.created", response=self._response.shown("in_progress"))

        await self._turns.begin(partial(self._run_request, asked, options), language, created)

    async def _cancel_response(self, event: Json) -> None:
        """Breaks off the response that is being made. Tells an error where there is none, or another one."""
        named = event.get("response_id")
        if self._response is None or named not in (None, self._response.id):
            message = (
                "no response is being made that could be cancelled; response.created and response.done say when one is"
            )
            error = error_shape(_NOTHING_TO_CANCEL, message, event_id=event.get("event_id"))
            await self._tell("error", error=error)
            return
        await self._turns.interrupt("cancel")

    async def _run_request(self, asked: AskedTurn, options: ResponseOptions) -> pb.StartRunRequest:
        collection_ids = resolve_collection_ids(self._services, self._collections)
        found = await require_existing(self._services, collection_ids)
        run = pb.StartRunRequest(
            mode=pb.RUN_MODE_GROUNDED if options.functions or asked.called else pb.RUN_MODE_CHAT,
            question=asked.question,
            history=asked.history,
            called=asked.called,
            collection_ids=collection_ids,
            instructions="\n\n".join(filter(None, (options.instructions, asked.instructions))),
            function_choice=options.function_choice if options.functions else "",
            budgets=pb.Budgets(answer_tokens=options.max_output_tokens) if options.max_output_tokens else None,
            style="spoken",
            memory=memory_mode("", found),
        )
        for each in options.functions:
            run.functions.add(name=each.name, description=each.description or "", parameters=each.schema_text)
        return run

    async def happened(self, event: RunEvent) -> None:
        """Clients of this API know no events of a run: what they say comes when the response is done."""
        if self._response is not None:
            self._response.follow(event)

    async def said(self, piece: Speakable, run_id: str, seq: int) -> None:  # noqa: ARG002 - the listener's contract
        response = self._response
        if response is None:
            return
        await self._tell_all(response.say(piece, run_id))
        if response.speaks:
            await self._speaker.say(run_id, piece)

    async def ended(self, ending: Json) -> None:
        await self._speaker.finish()
        status = "completed" if ending["status"] in ("completed", "refused") else "incomplete"
        await self._finish(status, ending["withdrawn"])

    async def failed(self, data: Json) -> None:
        error = {"type": "server_error", "code": data["reason"].lower(), "message": data["message"]}
        await self._finish("failed", details={"error": error})
        await self._tell("error", error=error_shape(error["code"], error["message"], "server_error"))

    async def interrupted(self, run_id: str, reason: str) -> None:  # noqa: ARG002 - the listener's contract
        await self._speaker.stop()
        await self._finish("cancelled", details={"reason": _WHY_CANCELLED.get(reason, "client_cancelled")})

    async def _finish(self, status: str, withdrawn: list[int] | None = None, details: Json | None = None) -> None:
        response, self._response = self._response, None
        if response is not None:
            events = response.finish(status, withdrawn or [], details)
            self._items.note_response(response)
            await self._tell_all(events)

    async def sound_begins(self, run_id: str, piece: Speakable) -> None:  # noqa: ARG002 - the listener's contract
        if self._response is not None:
            self._response.sound_begins(piece)

    async def sound(self, pcm: bytes) -> None:
        if self._response is not None:
            self._response.sound(pcm)
            delta = base64.b64encode(pcm).decode()
            await self._tell("response.output_audio.delta", **self._response.place, delta=delta)

    async def sound_ends(self, run_id: str, piece: Speakable) -> None: ...

    async def sound_failed(self, run_id: str, error: GroundworkError) -> None:  # noqa: ARG002 - the listener's contract
        await self._tell_error(error)

    async def _tell_error(self, error: GroundworkError, event_id: object = None) -> None:
        await self._tell("error", error=realtime_error(error, event_id))

    async def _tell_all(self, events: Events) -> None:
        for kind, members in events:
            await self._tell(kind, **members)

    async def _tell(self, kind: str, **members: Any) -> None:
        await self._socket.tell({"type": kind, "event_id": new_id("event"), **members})
