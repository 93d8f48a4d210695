"""The items of a conversation of the Realtime API, in their order, and what a response answers of them."""

import secrets
from dataclasses import dataclass
from typing import Any

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.errors import MalformedMessage
from services.gateway.models import Json
from services.gateway.openai.asking import latest_messages

_MOST_ITEMS = 1_000
_LONGEST_TEXT = 8_000
_LONGEST_OUTPUT = 100_000
_TEXTS = ("input_text", "output_text", "text")
_ROOT = "root"


def new_id(kind: str) -> str:
    """An id that nothing else has: `item_…`."""
    return f"{kind}_{secrets.token_hex(12)}"


@dataclass(frozen=True)
class ConversationItem:
    """An item as clients read it, and as a model does."""

    shown: Json
    message: pb.HistoryMessage

    @property
    def id(self) -> str:
        item_id: str = self.shown["id"]
        return item_id


@dataclass(frozen=True)
class AskedTurn:
    """What a response answers."""

    question: str
    history: list[pb.HistoryMessage]
    called: list[pb.HistoryMessage]
    """Functions that were called for the question, and what they returned."""
    instructions: str
    """What messages of the role `system` say."""


class Conversation:
    """The items of one client. It ends with the WebSocket."""

    def __init__(self) -> None:
        self.id = new_id("conv")
        self._items: list[ConversationItem] = []

    def add(self, item: ConversationItem, after: object = None) -> str | None:
        """Adds an item at the end, or behind the item `after` (`root`: before all). Returns the id of the item before it. Raises
        MalformedMessage."""
        ids = [each.id for each in self._items]
        if item.id in ids:
            raise MalformedMessage(f"there is an item {item.id} already; give the new item another id, or none")
        if after not in (None, _ROOT, *ids):
            raise MalformedMessage(
                f"there is no item {str(after)[:100]!r} to insert behind; leave previous_item_id out"
            )
        place = len(ids) if after is None else 0 if after == _ROOT else ids.index(str(after)) + 1
        self._items.insert(place, item)
        del self._items[:-_MOST_ITEMS]
        return ids[place - 1] if place else None

    def note_words(self, item_id: str, text: str) -> None:
        """Writes down what was said in an item of sound."""
        for each in self._items:
            if each.id == item_id:
                each.message.text = text
                each.shown["content"] = [{"type": "input_audio", "transcript": text}]

    def item(self, item_id: object) -> ConversationItem:
        """The item of that id. Raises MalformedMessage."""
        for each in self._items:
            if each.id == item_id:
                return each
        raise MalformedMessage(
            f"there is no item {str(item_id)[:100]!r} in this conversation; use the id of an item event"
        )

    def remove(self, item_id: object) -> None:
        """Takes an item out. Raises MalformedMessage."""
        self._items.remove(self.item(item_id))

    def asked(self) -> AskedTurn:
        """What is to be answered next. Raises MalformedMessage where nothing is."""
        said = [each.message for each in self._items if each.message.role != "system"]
        instructions = [each.message.text for each in self._items if each.message.role == "system"]
        messages = _with_results(said)
        place = max((at for at, each in enumerate(messages) if each.role == "user"), default=-1)
        called = messages[place + 1 :]
        if place < 0 or (called and called[-1].role != "tool"):
            raise MalformedMessage(
                "there is nothing to answer: the last item of the conversation is not the user's, nor what a function returned"
            )
        return AskedTurn(messages[place].text, latest_messages(messages[:place]), called, "\n\n".join(instructions))


def _with_results(said: list[pb.HistoryMessage]) -> list[pb.HistoryMessage]:
    """The messages that say something, each call with its result right behind. A call of an earlier question that has no result is
    left out. Raises MalformedMessage for one of the last question."""
    results = {each.call_id: each for each in said if each.role == "tool"}
    last = max((at for at, each in enumerate(said) if each.role == "user"), default=-1)
    missing = [call.call_id for each in said[last + 1 :] for call in each.calls if call.call_id not in results]
    if missing:
        raise MalformedMessage(
            f"the result of call {missing[0]} is missing; create an item of type function_call_output for it, then ask again"
        )
    messages: list[pb.HistoryMessage] = []
    for each in said:
        calls = [call for call in each.calls if call.call_id in results]
        if each.role == "tool" or not (each.text.strip() or calls):
            continue
        before = messages[-1] if messages else None
        if calls and before and before.role == "assistant" and not before.calls:
            messages[-1] = pb.HistoryMessage(role="assistant", text=before.text, calls=calls)
        else:
            messages.append(pb.HistoryMessage(role=each.role, text=each.text, calls=calls))
        messages += [results[call.call_id] for call in calls]
    return messages


def read_item(wanted: object, calls: set[str]) -> ConversationItem:
    """An item that the client adds. `calls` are those that may be answered. Raises MalformedMessage."""
    item = checked_object(wanted, "item")
    head = {"id": str(item.get("id") or new_id("item"))[:100], "object": "realtime.item", "status": "completed"}
    match item.get("type"):
        case "message":
            return _read_message(item, head)
        case "function_call":
            call_id, name = _text(item, "call_id", 200), _text(item, "name", 64)
            calls.add(call_id)
            return call_item(
                {"call_id": call_id, "name": name, "arguments": _text(item, "arguments", _LONGEST_OUTPUT)}, head
            )
        case "function_call_output":
            call_id, output = _text(item, "call_id", 200), _text(item, "output", _LONGEST_OUTPUT, least=0)
            if call_id not in calls:
                raise MalformedMessage(
                    f"no function was called with the call_id {call_id!r}; use the call_id of a function_call item"
                )
            shown = {**head, "type": "function_call_output", "call_id": call_id, "output": output}
            return ConversationItem(shown, pb.HistoryMessage(role="tool", text=output, call_id=call_id))
    raise MalformedMessage("this item is not understood; send a message, a function_call or a function_call_output")


def call_item(call: Json, head: Json) -> ConversationItem:
    """A call of a function of the client's, as an item."""
    shown = {**head, "type": "function_call", **{name: call[name] for name in ("call_id", "name", "arguments")}}
    called = pb.FunctionCall(call_id=call["call_id"], name=call["name"], arguments=call["arguments"])
    return ConversationItem(shown, pb.HistoryMessage(role="assistant", calls=[called]))


def sound_item(item_id: str) -> ConversationItem:
    """A message of the user's whose words are not known yet."""
    content = [{"type": "input_audio", "transcript": None}]
    shown = {"id": item_id, "object": "realtime.item", "type": "message", "role": "user", "status": "completed"}
    return ConversationItem({**shown, "content": content}, pb.HistoryMessage(role="user"))


def _read_message(item: Json, head: Json) -> ConversationItem:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system"):
        raise MalformedMessage("the role of a message is another one; use user, assistant or system")
    parts = content if isinstance(content, list) else []
    if not parts or any(checked_object(part, "content").get("type") not in _TEXTS for part in parts):
        raise MalformedMessage("the content of an item is text only; send sound with input_audio_buffer.append")
    text = "".join(str(part.get("text") or "") for part in parts)
    if not text.strip() or len(text) > _LONGEST_TEXT:
        raise MalformedMessage(f"the text of an item has 1 to {_LONGEST_TEXT} characters; send such a text")
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": str(part.get("text") or "")} for part in parts]
    shown = {**head, "type": "message", "role": role, "content": content}
    return ConversationItem(shown, pb.HistoryMessage(role=role, text=text))


def _text(item: Json, name: str, most: int, least: int = 1) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise MalformedMessage(f"item.{name} is missing or no text of {least} to {most} characters")
    return value


def checked_object(value: Any, name: str) -> Json:
    """The value, empty for null. Raises MalformedMessage where it is no object."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedMessage(f"{name} is no object; see OpenAI's Realtime API")
    return value
