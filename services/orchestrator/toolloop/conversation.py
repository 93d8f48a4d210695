"""The messages of a run with tools: what the caller gave, then rounds of calls and observations."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from kit.llm import ChatMessage, ToolCall, ToolSpec
from services.orchestrator.models import Tool


class Conversation:
    """The messages so far."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self._given = list(messages)
        self._rounds: list[ChatMessage] = []

    def add_round(self, text: str, calls: Sequence[ToolCall], observations: Sequence[str]) -> None:
        """What the model said and called, and what came of each call."""
        self._rounds.append(ChatMessage("assistant", text, tuple(calls)))
        self._rounds += [
            ChatMessage("tool", observation, tool_call_id=call.call_id)
            for call, observation in zip(calls, observations, strict=True)
        ]

    @property
    def messages(self) -> Sequence[ChatMessage]:
        return [*self._given, *self._rounds]

    @property
    def observations(self) -> Sequence[str]:
        return [message.content for message in self._rounds if message.role == "tool"]

    @property
    def call_ids(self) -> Collection[str]:
        return {call.call_id for message in self.messages for call in message.tool_calls}

    def ordered(self, order: str) -> Sequence[ChatMessage]:
        """The messages with an order behind the system prompt and behind the last observation. It is no message of its own: many
        chat templates take a system message only in front, and no user's message after a tool's."""
        messages = list(self.messages)
        if messages and messages[0].role == "system":
            messages[0] = replace(messages[0], content=f"{messages[0].content}\n\n{order}")
        if messages[-1].role in ("tool", "user"):
            messages[-1] = replace(messages[-1], content=f"{messages[-1].content}\n\n({order})")
        return messages


def spec_of(tool: Tool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, tool.parameters)
