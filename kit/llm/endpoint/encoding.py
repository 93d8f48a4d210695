"""A request as the body of a chat completion, in the way of one provider."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from kit.llm.endpoint.presets import Preset, Schemas
from kit.llm.endpoint.shapes import shape_of
from kit.llm.endpoint.streaming.unicode import well_formed
from kit.llm.messages import ChatMessage, Request, ToolSpec

_OTHER_LIMIT = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_SAMPLING = ("top_p", "seed", "stop")


def encode(request: Request, model: str, preset: Preset, refused: Set[str] = frozenset()) -> dict[str, Any]:
    """The body. `refused` are fields that this server does not take: they are left out, or called by their other name."""
    limit = preset.max_tokens_field
    body: dict[str, Any] = {
        "model": model,
        "messages": _messages(request, preset),
        _OTHER_LIMIT[limit] if limit in refused else limit: request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": min(request.temperature, preset.highest_temperature),
    }
    if preset.thinking_models.search(model) and not preset.thinkers_take_temperature:
        del body["temperature"]
    body |= {name: value for name in _SAMPLING if (value := getattr(request, name)) not in (None, (), [])}
    tools = [spec for spec in request.tools if not _is_left_out(spec, request, preset)]
    if tools:
        body["tools"] = [_strict_tool(spec) if preset.strict_tools else _tool(spec) for spec in tools]
        body["tool_choice"] = _tool_choice(request.tool_choice)
    if request.schema is not None and preset.schemas is Schemas.RESPONSE_FORMAT:
        body["response_format"] = _response_format(request.schema)
    return {name: value for name, value in body.items() if name not in refused or name in _OTHER_LIMIT}


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """What the tools look like in a prompt, near enough to count their tokens."""
    return json.dumps([_tool(spec) for spec in tools], ensure_ascii=False)


def _messages(request: Request, preset: Preset) -> list[dict[str, Any]]:
    messages = [_message(message) for message in request.messages]
    if request.schema is not None and preset.schemas is Schemas.PROMPT:
        messages.append(
            {
                "role": "system",
                "content": "Answer with one JSON value and nothing around it. It must follow this JSON Schema: "
                + json.dumps(request.schema, ensure_ascii=False),
            }
        )
    return messages


def _message(message: ChatMessage) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": well_formed(message.content)}
    if message.tool_calls:
        body["content"] = body["content"] or None  # some refuse empty text beside calls
        body["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
                **({"extra_content": {"google": {"thought_signature": call.signature}}} if call.signature else {}),
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        body["tool_call_id"] = message.tool_call_id
    return body


def _arguments(text: str) -> str:
    """Arguments that are no JSON are refused by servers whose templates parse them, and with them the whole request."""
    try:
        json.loads(text)
    except ValueError:
        return "{}"
    return well_formed(text)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
    }


def _strict_tool(spec: ToolSpec) -> dict[str, Any]:
    tool = _tool(replace(spec, parameters=shape_of(spec.parameters)))
    tool["function"]["strict"] = True
    return tool


def _tool_choice(choice: str) -> str | dict[str, Any]:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}


def _is_left_out(spec: ToolSpec, request: Request, preset: Preset) -> bool:
    if preset.obeys_tool_choice or request.tool_choice in {"auto", "required"}:
        return False
    return spec.name != request.tool_choice  # "none" leaves out all of them


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    # OpenAI enforces a schema only when strict, and refuses strict for schemas with optional fields.
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": _may_be_strict(schema)},
    }


def _may_be_strict(schema: Any) -> bool:
    """Whether every object in it is closed and requires all its properties."""
    if isinstance(schema, list):
        return all(map(_may_be_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        names = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or names != set(schema.get("required", ())):
            return False
    return all(map(_may_be_strict, schema.values()))
