"""Tool calls of a model that was not trained to make them, or whose server has no words for them: the model is made to choose by a
JSON Schema, which servers hold it to by grammar. A choice of no tool costs a second completion, the answer itself."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from kit.llm.endpoint.shapes import shape_of
from kit.llm.messages import (
    ChatMessage,
    Delta,
    Finish,
    FinishReason,
    LanguageModel,
    ModelInfo,
    Operation,
    Request,
    Restart,
    Retraction,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    ToolSpec,
)

NO_TOOL = "none"
_CHOICE_TOKENS = 400
"""What a choice may take: a name and arguments. An answer is not part of it."""


class SchemaCalls:
    """A LanguageModel that makes one call at a time, over one that can follow a schema."""

    def __init__(self, model: LanguageModel, new_id: Callable[[], str] = lambda: uuid4().hex) -> None:
        self._model = model
        self._new_id = new_id

    def info(self, operation: Operation) -> ModelInfo:
        return self._model.info(operation)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return await self._model.count_tokens(texts, operation)

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        """See LanguageModel."""
        plain = replace(request, messages=as_text(request.messages), tools=(), tool_choice="auto")
        used = TokenUsage()
        if request.tools and request.tool_choice != "none":
            choice = _Choice()
            async with aclosing(self._model.complete(_asking_for_a_choice(request, plain))) as deltas:
                async for delta in deltas:
                    if choice.take(delta):
                        yield delta
            called = choice.called({tool.name for tool in request.tools})
            assert choice.finish is not None
            used = choice.finish.usage
            if called is not None:
                name, arguments = called
                yield ToolCallDelta(0, arguments, self._new_id(), name)
                yield replace(choice.finish, reason=FinishReason.TOOL_CALLS)
                return
        async with aclosing(self._model.complete(plain)) as deltas:
            async for delta in deltas:
                yield replace(delta, usage=delta.usage + used) if isinstance(delta, Finish) else delta


@dataclass
class _Choice:
    """What the model chooses, as it comes."""

    text: str = ""
    finish: Finish | None = field(default=None)

    def take(self, delta: Delta) -> bool:
        """Whether the delta is for the caller."""
        match delta:
            case TextDelta(text):
                self.text += text
            case Finish():
                self.finish = delta
            case Restart() | Retraction():
                self.text = ""
                return True
            case _:
                return True
        return False

    def called(self, names: set[str]) -> tuple[str, str] | None:
        """Name and arguments; None for no tool, and for what is no choice: the model then answers in words."""
        try:
            said = json.loads(self.text)
            name, arguments = said["tool"], said.get("arguments", {})
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return (name, json.dumps(arguments, ensure_ascii=False)) if isinstance(name, str) and name in names else None


def as_text(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages for a template that knows system, user and assistant in turn: calls and their results in words."""
    names = {call.call_id: call.name for message in messages for call in message.tool_calls}
    texts: list[ChatMessage] = []
    for message in messages:
        each = _as_text(message, names)
        if texts and texts[-1].role == each.role:
            texts[-1] = replace(texts[-1], content=f"{texts[-1].content}\n\n{each.content}")
        else:
            texts.append(each)
    return texts


def _as_text(message: ChatMessage, names: dict[str, str]) -> ChatMessage:
    if message.role == "tool":
        return ChatMessage("user", f"Result of {names.get(message.tool_call_id, 'the tool')}:\n{message.content}")
    calls = [f"I use {call.name} with {call.arguments}" for call in message.tool_calls]
    return ChatMessage(message.role, "\n".join([message.content, *calls]).strip())


def _asking_for_a_choice(request: Request, plain: Request) -> Request:
    offered = [tool for tool in request.tools if request.tool_choice in {"auto", "required", tool.name}]
    kinds = [_call_schema(tool) for tool in offered]
    lines = [f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.parameters)}" for tool in offered]
    if request.tool_choice == "auto":
        kinds.append(_object({"tool": {"const": NO_TOOL}}))
        lines.append(f"- {NO_TOOL}: answer without a tool.")
    said = "Choose what to do next. Reply with JSON that names the tool and its arguments.\nTools:\n" + "\n".join(lines)
    return replace(
        plain,
        messages=as_text([ChatMessage("system", said), *plain.messages]),
        schema={"anyOf": kinds} if len(kinds) > 1 else kinds[0],
        max_tokens=min(request.max_tokens, _CHOICE_TOKENS),
    )


def _call_schema(tool: ToolSpec) -> dict[str, Any]:
    return _object({"tool": {"const": tool.name}, "arguments": shape_of(tool.parameters)})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
