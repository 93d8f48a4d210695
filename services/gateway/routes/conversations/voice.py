"""Voice: conversations over WebSockets."""

from fastapi import APIRouter, WebSocket

from services.gateway.backends import Services
from services.gateway.voice.chat import VoiceChat, error_event
from services.gateway.voice.languages import SpokenLanguages
from services.gateway.voice.realtime.client import Realtime
from services.gateway.voice.realtime.wire import closing_event
from services.gateway.voice.socket import ClientSocket, serve

router = APIRouter()


@router.websocket("/ws/voice-chat")
async def voice_chat(socket: WebSocket, services: Services) -> None:
    """A conversation that is spoken: the events of a chat, and the answer in pieces to be said."""
    languages: SpokenLanguages = socket.app.state.spoken_languages
    await serve(
        socket, services, "groundwork", lambda client: VoiceChat(client, services, languages).converse(), error_event
    )


@router.websocket("/v1/realtime")
async def realtime(socket: WebSocket, services: Services) -> None:
    """A conversation with a client of OpenAI's Realtime API."""
    languages: SpokenLanguages = socket.app.state.spoken_languages
    model = socket.query_params.get("model", "")

    async def converse(client: ClientSocket) -> None:
        await Realtime(client, services, languages, model).converse()

    await serve(socket, services, "realtime", converse, closing_event)
