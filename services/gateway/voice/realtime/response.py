"""A response of the Realtime API as it grows, and the events that tell of it."""

from typing import Any

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.vocabulary.run_fold import RunFold
from services.gateway.models import Json, RunEvent
from services.gateway.voice.pieces import Speakable
from services.gateway.voice.realtime.conversation import Conversation, ConversationItem, call_item, new_id
from services.gateway.voice.realtime.session import ResponseOptions
from services.gateway.voice.speaker import SOUND_RATE

_BYTES_OF_MS = 2 * SOUND_RATE / 1000

Events = list[tuple[str, Json]]
"""Names of events with their members."""


class RealtimeResponse:
    """One response as it grows: a message, and behind it the functions that the client is to call."""

    def __init__(self, options: ResponseOptions, conversation: Conversation) -> None:
        self.speaks = options.speaks
        self.id, self.item_id = new_id("resp"), new_id("item")
        self._options = options
        self._conversation = conversation
        self._run = RunFold()
        self._message = pb.HistoryMessage(role="assistant")
        self._calls: list[ConversationItem] = []
        self._citations: list[Json] = []
        self._shown: Json = {}
        """The message as an item of the conversation."""
        self._previous: str | None = None
        """The item before the message."""
        self._sound_bytes = 0
        self._heard: list[tuple[float, str]] = []
        """How many milliseconds of sound stand before a piece, and its text."""

    def follow(self, event: RunEvent) -> None:
        """Takes in the next event of the run."""
        self._run.add(event.kind, event.data)

    def say(self, piece: Speakable, run_id: str) -> Events:
        """The text of a piece: as it is said where it is said, else as it is written."""
        self._run.run_id = run_id
        events = [] if self._message.text else self._begun()
        delta = f"{' ' if self._message.text else ''}{piece.spoken if self.speaks else piece.text}"
        self._message.text += delta
        self._citations += [each for each in piece.citations if each not in self._citations]
        kind = "output_audio_transcript" if self.speaks else "output_text"
        beside = {"citations": piece.citations}
        return [*events, (f"response.{kind}.delta", {**self.place, "delta": delta, "groundwork": beside})]

    def sound_begins(self, piece: Speakable) -> None:
        """The sound of a piece follows."""
        self._heard.append((self._sound_bytes / _BYTES_OF_MS, piece.spoken))

    def sound(self, pcm: bytes) -> None:
        """Counts sound that is sent."""
        self._sound_bytes += len(pcm)

    def truncate(self, audio_end_ms: float) -> None:
        """Leaves of the text what had begun to be heard by then, for the turns that follow."""
        heard = " ".join(text for start_ms, text in self._heard if start_ms < audio_end_ms)
        self._message.text = heard
        self._shown["content"] = [{"type": "output_audio", "transcript": heard}]

    def finish(self, status: str, withdrawn: list[int], details: Json | None = None) -> Events:
        """What ends the response."""
        events: Events = []
        if self._message.text:
            item = self._item(status)
            self._shown |= item
            events += self._text_done()
            events.append(("response.output_item.done", {**self._at(0), "item": item}))
            events.append(("conversation.item.done", {"item": item, "previous_item_id": self._previous}))
        calls = (self._run.answer or {}).get("function_calls") or () if status == "completed" else ()
        for call in calls:
            events += self._called(call)
        status_details = {"type": status, **(details or {})} if status != "completed" else None
        return [*events, ("response.done", {"response": self.shown(status, withdrawn, status_details)})]

    @property
    def place(self) -> Json:
        """Where the text stands."""
        return {**self._at(0), "item_id": self.item_id, "content_index": 0}

    @property
    def call_ids(self) -> set[str]:
        """Ids of the calls that the client is to make."""
        return {each.shown["call_id"] for each in self._calls}

    def shown(self, status: str, withdrawn: list[int] | None = None, details: Json | None = None) -> Json:
        """As clients read it."""
        usage = self._run.usage
        read, written = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
        message = [self._item(status)] if self._message.text else []
        return {
            "id": self.id,
            "object": "realtime.response",
            "conversation_id": self._conversation.id,
            "status": status,
            "status_details": details,
            "output": [*message, *(each.shown for each in self._calls)],
            "output_modalities": ["audio" if self.speaks else "text"],
            "max_output_tokens": self._options.max_output_tokens or "inf",
            "metadata": self._options.metadata,
            "usage": {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
            if usage
            else None,
            "groundwork": {
                "run_id": self._run.run_id or None,
                "citations": self._citations,
                "withdrawn": withdrawn or [],
            },
        }

    def _at(self, output_index: int) -> Json:
        return {"response_id": self.id, "output_index": output_index}

    def _begun(self) -> Events:
        item = self._item("in_progress")
        self._shown = {**item}
        self._previous = self._conversation.add(ConversationItem(self._shown, self._message))
        return [
            ("response.output_item.added", {**self._at(0), "item": item}),
            ("conversation.item.added", {"item": item, "previous_item_id": self._previous}),
            ("response.content_part.added", {**self.place, "part": self._part()}),
        ]

    def _text_done(self) -> Events:
        text = self._message.text
        part = ("response.content_part.done", {**self.place, "part": self._part()})
        if not self.speaks:
            return [("response.output_text.done", {**self.place, "text": text}), part]
        return [
            ("response.output_audio.done", self.place),
            ("response.output_audio_transcript.done", {**self.place, "transcript": text}),
            part,
        ]

    def _called(self, call: Json) -> Events:
        """The events of a call; it is an item of the conversation from now on."""
        head = {"id": new_id("item"), "object": "realtime.item", "status": "completed"}
        item = call_item(call, head)
        at = self._at(len(self._calls) + bool(self._message.text))
        self._calls.append(item)
        previous = self._conversation.add(item)
        begun = {**item.shown, "status": "in_progress", "arguments": ""}
        of_call = {**at, "item_id": item.id, "call_id": call["call_id"]}
        whole = {"arguments": call["arguments"], "name": call["name"]}
        return [
            ("response.output_item.added", {**at, "item": begun}),
            ("conversation.item.added", {"item": begun, "previous_item_id": previous}),
            ("response.function_call_arguments.delta", {**of_call, "delta": call["arguments"]}),
            ("response.function_call_arguments.done", {**of_call, **whole}),
            ("response.output_item.done", {**at, "item": item.shown}),
            ("conversation.item.done", {"item": item.shown, "previous_item_id": previous}),
        ]

    def _part(self) -> Json:
        text = self._message.text
        return {"type": "audio", "transcript": text} if self.speaks else {"type": "text", "text": text}

    def _item(self, status: str) -> Json:
        text = self._message.text
        part: dict[str, Any] = (
            {"type": "output_audio", "transcript": text} if self.speaks else {"type": "output_text", "text": text}
        )
        return {
            "id": self.item_id,
            "object": "realtime.item",
            "type": "message",
            "role": "assistant",
            "status": status if status in ("completed", "in_progress") else "incomplete",
            "content": [part] if text else [],
        }
