"""The conversation at `/ws/voice-chat`."""

import asyncio
from collections.abc import Mapping
from functools import partial

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.errors import GroundworkError
from services.gateway.access.existence import require_existing
from services.gateway.access.own_default import all_meant
from services.gateway.backends import Backends
from services.gateway.errors import MalformedMessage
from services.gateway.models import Json, RunEvent
from services.gateway.problems import problem
from services.gateway.routes.chat import run_request
from services.gateway.voice.languages import SpokenLanguages
from services.gateway.voice.messages import Cancel, Resume, SpokenMessage, read_message
from services.gateway.voice.pieces import Speakable
from services.gateway.voice.socket import ClientSocket
from services.gateway.voice.turns import Heard, Turns

SPOKEN = "spoken"


class VoiceChat:
    """One client. Each of its messages is answered by a run, whose events it gets as over HTTP, and by pieces to be said."""

    def __init__(self, socket: ClientSocket, services: Backends, languages: SpokenLanguages) -> None:
        self._socket = socket
        self._services = services
        self._languages = languages
        self._turns = Turns(services, self)

    async def converse(self) -> None:
        """Serves the client until it goes, or has been silent for too long. Raises WebSocketDisconnect."""
        await self._event("ready", {"audio": None})
        try:
            while (heard := await self._next()) is not None:
                try:
                    await self._heed(heard)
                except GroundworkError as error:
                    body = problem(error)
                    await self._event("error", {**body, "message": body["detail"]})
        finally:
            await self._turns.close()

    async def _next(self) -> str | bytes | None:
        """The next message; None when the client was silent for too long while nothing went on."""
        while True:
            try:
                async with asyncio.timeout(self._services.settings.voice_idle_timeout_s):
                    return await self._socket.receive()
            except TimeoutError:
                if not self._turns.is_busy:
                    return None

    async def _heed(self, heard: str | bytes) -> None:
        if isinstance(heard, bytes):
            raise MalformedMessage("sound is not understood here: no transcription is set up; send text")
        match read_message(heard):
            case SpokenMessage() as message:
                self._socket.note_turn()
                language = message.language or await self._languages.of(message.message)
                await self._turns.begin(partial(self._run_request, message), language)
            case Resume() as resume:
                question = await self._question(resume.run_id)
                language = resume.language or await self._languages.of(question)
                await self._turns.resume(resume.run_id, language, Heard(resume.after, resume.after_piece))
            case Cancel():
                await self._turns.interrupt("cancel")

    async def _run_request(self, message: SpokenMessage) -> pb.StartRunRequest:
        collection_ids = all_meant(self._services, message.collection_ids or [])
        await require_existing(self._services, collection_ids, message.thread_id or "")
        return run_request(message, collection_ids, message.idempotency_key or "", SPOKEN)

    async def _question(self, run_id: str) -> str:
        """What the run was asked. Raises NotFound for one that is not the caller's."""
        request = pb.GetRunRequest(run_id=run_id)
        answer = await self._services.orchestrator.GetRun(request, timeout=self._services.settings.rpc_timeout_s)
        question: str = answer.run.question
        return question

    async def said(self, piece: Speakable, run_id: str, seq: int) -> None:
        await self._event("speakable", piece.data(run_id, seq))

    async def happened(self, event: RunEvent) -> None:
        await self._event(event.kind, event.data, str(event.seq))

    async def ended(self, ending: Json) -> None:
        await self._event("spoken", ending)

    async def failed(self, data: Json) -> None:
        await self._event("error", data)

    async def interrupted(self, run_id: str, reason: str) -> None:
        await self._event("interrupted", {"run_id": run_id or None, "reason": reason})

    async def _event(self, event: str, data: Mapping[str, object], seq: str | None = None) -> None:
        await self._socket.tell({"event": event, "id": seq, "data": data})
