"""The conversation at `/ws/voice-chat`."""

from collections.abc import Mapping
from functools import partial

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.errors import GroundworkError
from services.gateway.access.existence import require_existing
from services.gateway.access.memory_modes import memory_mode
from services.gateway.access.own_default import resolve_collection_ids
from services.gateway.backends import Backends
from services.gateway.errors import SoundNotUnderstood, SpeechNotOffered
from services.gateway.models import Json, RunEvent
from services.gateway.problems import problem
from services.gateway.routes.conversations.chat import run_request
from services.gateway.voice.languages import SpokenLanguages
from services.gateway.voice.messages import (
    Cancel,
    Commit,
    Resume,
    SoundSetUp,
    SpokenMessage,
    heard_message,
    read_message,
)
from services.gateway.voice.pieces import Speakable
from services.gateway.voice.socket import ClientSocket, next_message
from services.gateway.voice.speaker import SOUND_RATE, Speaker
from services.gateway.voice.transcriber import Transcriber
from services.gateway.voice.turns import Heard, Turns

SPOKEN = "spoken"


class VoiceChat:
    """One client. Each of its messages is answered by a run, whose events it gets as over HTTP, and by pieces to be said."""

    def __init__(self, socket: ClientSocket, services: Backends, languages: SpokenLanguages) -> None:
        self._socket = socket
        self._services = services
        self._languages = languages
        self._turns = Turns(services, self)
        self._speaker = Speaker(services.speech, self)
        self._says = False
        """Whether the client wants sound."""
        self._answers = True
        """Whether what is heard is asked."""
        self._transcriber: Transcriber | None = None
        self._asks: Json = {}
        """Members of the messages that are heard."""

    async def converse(self) -> None:
        """Serves the client until it goes, or has been silent for too long. Raises WebSocketDisconnect."""
        speech = self._services.speech
        await self._event("ready", {"audio": {"input": speech.hears, "output": speech.speaks}})
        idle_s = self._services.settings.voice_idle_timeout_s
        try:
            while (heard := await next_message(self._socket, idle_s, lambda: self._turns.is_busy)) is not None:
                try:
                    await self._handle_message(heard)
                except GroundworkError as error:
                    await self.not_understood(error)
        finally:
            if self._transcriber is not None:
                await self._transcriber.close()
            await self._turns.close(cancels=False)
            await self._speaker.stop()

    async def _handle_message(self, heard: str | bytes) -> None:
        if isinstance(heard, bytes):
            await self._listening().hear(heard)
            return
        match read_message(heard):
            case SpokenMessage() as message:
                await self._ask(message)
            case Resume() as resume:
                question = await self._question(resume.run_id)
                language = resume.language or await self._languages.of(question)
                heard_before = Heard(resume.after, resume.after_piece)
                await self._turns.resume(resume.run_id, language, heard_before, self._speaker.stop)
            case Cancel():
                await self._turns.interrupt("cancel")
            case Commit():
                await self._listening().commit()
            case SoundSetUp() as wanted:
                await self._set_up(wanted)

    async def _ask(self, message: SpokenMessage) -> None:
        self._socket.note_turn()
        language = message.language or await self._languages.of(message.message)
        await self._turns.begin(partial(self._run_request, message), language)

    def _listening(self) -> Transcriber:
        """Raises SoundNotUnderstood where no sound was set up."""
        if self._transcriber is None:
            raise SoundNotUnderstood("no sound was set up; send a message of type audio first, or send text")
        return self._transcriber

    async def _set_up(self, wanted: SoundSetUp) -> None:
        speech = self._services.speech
        if (wanted.input and not speech.hears) or (wanted.output and not speech.speaks):
            raise SpeechNotOffered(
                "no speech endpoint is set up for this; docs/voice.md says how, or send and read text"
            )
        heard_message({**wanted.asks}, "?")
        self._asks, self._says, self._speaker.voice = wanted.asks, wanted.output, wanted.voice
        self._answers = wanted.answers
        if self._transcriber is not None:
            await self._transcriber.close()
            self._transcriber = None
        if sound := wanted.input:
            self._transcriber = Transcriber(
                speech,
                started=self._speech_started,
                stopped=self._speech_stopped,
                understood=self._understood,
                failed=self.not_understood,
                refused=self.not_understood,
            )
            language = str(wanted.asks.get("language") or "")
            await self._transcriber.set_up(sound.format, sound.rate, detects=sound.detects, language=language)
        await self._event("audio_ready", {"input": bool(wanted.input), "output": wanted.output})

    async def _speech_started(self, at_s: float) -> None:
        await self._event("speech_started", {"at_s": round(at_s, 3)})
        await self._turns.interrupt("speech")

    async def _speech_stopped(self, at_s: float) -> None:
        await self._event("speech_stopped", {"at_s": round(at_s, 3)})

    async def _understood(self, text: str) -> None:
        await self._event("transcript", {"text": text})
        if text and self._answers:
            await self._ask(heard_message(self._asks, text))

    async def not_understood(self, error: GroundworkError) -> None:
        """Tells what is wrong; the conversation goes on."""
        await self._socket.tell(error_event(error))

    async def _run_request(self, message: SpokenMessage) -> pb.StartRunRequest:
        collection_ids = resolve_collection_ids(self._services, message.collection_ids or [])
        found = await require_existing(self._services, collection_ids, message.thread_id or "")
        run = run_request(message, collection_ids, message.idempotency_key or "", SPOKEN)
        run.memory = memory_mode(run.memory, found)
        return run

    async def _question(self, run_id: str) -> str:
        """What the run was asked. Raises NotFound for one that is not the caller's."""
        request = pb.GetRunRequest(run_id=run_id)
        answer = await self._services.orchestrator.GetRun(request, timeout=self._services.settings.rpc_timeout_s)
        question: str = answer.run.question
        return question

    async def said(self, piece: Speakable, run_id: str, seq: int) -> None:
        await self._event("speakable", piece.data(run_id, seq))
        if self._says:
            await self._speaker.say(run_id, piece)

    async def happened(self, event: RunEvent) -> None:
        await self._event(event.kind, event.data, str(event.seq))

    async def ended(self, ending: Json) -> None:
        await self._speaker.finish()
        await self._event("spoken", ending)

    async def failed(self, data: Json) -> None:
        await self._event("error", data)

    async def interrupted(self, run_id: str, reason: str) -> None:
        await self._speaker.stop()
        await self._event("interrupted", {"run_id": run_id or None, "reason": reason})

    async def sound_begins(self, run_id: str, piece: Speakable) -> None:
        await self._event("audio", {"run_id": run_id, "index": piece.index, "format": "pcm16", "rate": SOUND_RATE})

    async def sound(self, pcm: bytes) -> None:
        await self._socket.send(pcm)

    async def sound_ends(self, run_id: str, piece: Speakable) -> None:
        await self._event("audio_end", {"run_id": run_id, "index": piece.index})

    async def sound_failed(self, run_id: str, error: GroundworkError) -> None:
        await self._event(
            "degraded", {"run_id": run_id, "part": "speech", "reason": error.reason, "message": error.message}
        )

    async def _event(self, event: str, data: Mapping[str, object], seq: str | None = None) -> None:
        await self._socket.tell({"event": event, "id": seq, "data": data})


def error_event(error: GroundworkError) -> Json:
    """The error as a message to the client."""
    body = problem(error)
    return {"event": "error", "id": None, "data": {**body, "message": body["detail"]}}
