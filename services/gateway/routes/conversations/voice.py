"""Voice: conversations over WebSockets."""

from fastapi import APIRouter, WebSocket

from services.gateway.backends import Services
from services.gateway.voice.chat import VoiceChat
from services.gateway.voice.languages import SpokenLanguages
from services.gateway.voice.realtime import Realtime
from services.gateway.voice.socket import serve

router = APIRouter()


@router.websocket("/ws/voice-chat")
async def voice_chat(socket: WebSocket, services: Services) -> None:
    """A conversation that is spoken: the events of a chat, and the answer in pieces to be said."""
    languages: SpokenLanguages = socket.app.state.spoken_languages
    await serve(socket, services, "groundwork", lambda client: VoiceChat(client, services, languages).converse())


@router.websocket("/v1/realtime")
async def realtime(socket: WebSocket, services: Services) -> None:
    """A conversation with a client of OpenAI's Realtime API."""
    languages: SpokenLanguages = socket.app.state.spoken_languages
    model = socket.query_params.get("model", "")
    await serve(socket, services, "realtime", lambda client: Realtime(client, services, languages, model).converse())
