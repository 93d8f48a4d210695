"""What a client does with the items of its conversation: it adds, reads and deletes them, and truncates what was not heard."""

from collections.abc import Awaitable
from typing import Any, Protocol

from services.gateway.errors import MalformedMessage
from services.gateway.models import Json
from services.gateway.voice.realtime.conversation import Conversation, ConversationItem, read_item
from services.gateway.voice.realtime.response import RealtimeResponse


class Tell(Protocol):
    """Sends an event to the client."""

    def __call__(self, kind: str, **members: Any) -> Awaitable[None]: ...


class ItemEvents:
    """Serves the events `conversation.item.*` of one client."""

    def __init__(self, conversation: Conversation, tell: Tell) -> None:
        self._conversation = conversation
        self._tell = tell
        self._calls: set[str] = set()
        """Calls that the client may send results of."""
        self._spoken: RealtimeResponse | None = None
        """The last response, where it came as sound."""

    def note_response(self, response: RealtimeResponse) -> None:
        """Takes in a response that has ended: its calls may be answered, and its sound truncated."""
        self._calls |= response.call_ids
        self._spoken = response if response.speaks else None

    async def handle(self, event: Json) -> None:
        """Raises MalformedMessage."""
        item_id = event.get("item_id")
        match event["type"]:
            case "conversation.item.create":
                item = read_item(event.get("item"), self._calls)
                await self.tell_added(item, self._conversation.add(item, event.get("previous_item_id")))
            case "conversation.item.retrieve":
                await self._tell("conversation.item.retrieved", item=self._conversation.item(item_id).shown)
            case "conversation.item.delete":
                self._conversation.remove(item_id)
                await self._tell("conversation.item.deleted", item_id=item_id)
            case "conversation.item.truncate":
                await self._truncate(self._conversation.item(item_id).id, event.get("audio_end_ms"))

    async def tell_added(self, item: ConversationItem, previous: str | None) -> None:
        """Tells of an item that stands in the conversation now."""
        for kind in ("added", "done"):
            await self._tell(f"conversation.item.{kind}", item=item.shown, previous_item_id=previous)

    async def _truncate(self, item_id: str, end_ms: object) -> None:
        """Forgets what of the last answer was not heard."""
        if self._spoken is None or self._spoken.item_id != item_id or not isinstance(end_ms, int) or end_ms < 0:
            raise MalformedMessage(
                "only the last answer in sound is truncated; give its item_id, and audio_end_ms of 0 or more"
            )
        self._spoken.truncate(end_ms)
        await self._tell("conversation.item.truncated", item_id=item_id, content_index=0, audio_end_ms=end_ms)
