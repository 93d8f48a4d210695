"""Voice: conversations over WebSockets."""

from fastapi import APIRouter, WebSocket

from services.gateway.backends import Services
from services.gateway.voice.chat import VoiceChat
from services.gateway.voice.languages import SpokenLanguages
from services.gateway.voice.socket import serve

router = APIRouter()


@router.websocket("/ws/voice-chat")
async def voice_chat(socket: WebSocket, services: Services) -> None:
    """A conversation that is spoken: the events of a chat, and the answer in pieces to be said."""
    languages: SpokenLanguages = socket.app.state.spoken_languages
    await serve(socket, services, "groundwork", lambda client: VoiceChat(client, services, languages).converse())
