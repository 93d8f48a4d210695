"""What the scripted model says in chats with tools."""

import json
from collections.abc import Mapping
from typing import Any

from kit.testing.openai import Reply
from tests.integration.api import Event, Json


def calling(*calls: tuple[str, Mapping[str, Any] | str]) -> Reply:
    """Calls of tools in one completion: name, and arguments as an object or as the model writes them."""
    deltas = [
        {
            "tool_calls": [
                {"index": index, "id": f"call{index}", "function": {"name": name, "arguments": _text(arguments)}}
            ]
        }
        for index, (name, arguments) in enumerate(calls)
    ]
    return Reply(deltas, finish_reason="tool_calls")


def _text(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def question_in(request: Json) -> str:
    """What the user said last."""
    *_, question = (message["content"] for message in request["messages"] if message["role"] == "user")
    return str(question)


def rounds_in(request: Json) -> int:
    """Completions with calls so far."""
    return sum(bool(message.get("tool_calls")) for message in request["messages"])


def observations_in(request: Json) -> list[str]:
    """What the model is told of its calls."""
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


def kinds(events: list[Event]) -> list[str]:
    """Without what may come any number of times."""
    return [event.kind for event in events if event.kind not in {"thinking", "token"}]


def data_of(events: list[Event], kind: str) -> list[Json]:
    """Of all events of that kind."""
    return [event.data for event in events if event.kind == kind]
