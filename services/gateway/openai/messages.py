"""What requests in the shape of OpenAI's API are made of: messages, functions of the caller's, the form of the answer."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.errors import UnsupportedParameter

_CallId = Annotated[str, Field(min_length=1, max_length=200)]
_FunctionName = Annotated[str, Field(min_length=1, max_length=64)]
_ANY_OBJECT = {"type": "object"}


class OpenAiBody(BaseModel):
    """A body in which what is not known is no error: clients send members of their own."""

    model_config = ConfigDict(extra="allow", strict=True)

    def ignored(self) -> list[str]:
        """Names of the members that were given and change nothing, those of members with their path."""
        names = set(self.model_extra or ())
        for name in self.model_fields_set.difference(names):
            value = getattr(self, name)
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, OpenAiBody):
                    names.update(f"{name}.{inner}" for inner in each.ignored())
        return sorted(names)


class ContentPart(OpenAiBody):
    """A piece of a message."""

    type: str = Field(max_length=40, description="`text`, or in requests of Responses `input_text` or `output_text`.")
    text: str = Field(default="", max_length=100_000, description="The words.")


Words = Annotated[str, Field(max_length=100_000)] | list[ContentPart] | None


def words_of(content: Words) -> str:
    """The text. Raises UnsupportedParameter for a piece that is no text."""
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in ("text", "input_text", "output_text", "refusal"):
            raise UnsupportedParameter(
                f"a message has a part of type {part.type!r}; only text is read. Upload files with POST /v1/documents instead",
                field="messages",
            )
    return "\n".join(part.text for part in content)


class CalledFunction(OpenAiBody):
    """The function of a call."""

    name: _FunctionName = Field(description="Its name.")
    arguments: str = Field(default="", max_length=100_000, description="Its arguments, as JSON text.")


class MessageCall(OpenAiBody):
    """A call that the assistant wanted."""

    id: _CallId = Field(description="Names the call for its result.")
    type: Literal["function"] = Field(default="function", description="`function`.")
    function: CalledFunction = Field(description="What was called.")


class ChatMessage(OpenAiBody):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"] = Field(
        description="Who wrote it. The model reads the messages of `system` and `developer` below our own rules; "
        "`function`, which OpenAI has given up, is not used and named in X-Groundwork-Ignored."
    )
    content: Words = Field(default=None, description="Text, or pieces of text.")
    tool_calls: list[MessageCall] | None = Field(
        default=None, max_length=128, description="Functions that the assistant called."
    )
    tool_call_id: _CallId | None = Field(default=None, description="Of a `tool`: the call that it answers.")

    def words(self) -> str:
        """The text of the message. Raises UnsupportedParameter for a piece that is no text."""
        return words_of(self.content)


class FunctionDefinition(OpenAiBody):
    """A function of the caller's."""

    name: _FunctionName = Field(description="1 to 64 letters, digits, `-` and `_`.")
    description: str | None = Field(default=None, max_length=20_000, description="What it does, for the model.")
    parameters: dict[str, Any] | None = Field(default=None, description="JSON Schema of its arguments, an object.")
    strict: bool | None = Field(default=None, description="Arguments follow their schema in any case.")

    @property
    def schema_text(self) -> str:
        """The schema of its arguments, in the order in which it was written."""
        return json.dumps(self.parameters or {**_ANY_OBJECT, "properties": {}}, ensure_ascii=False)


class ChatTool(OpenAiBody):
    """A tool of a chat completion."""

    type: str = Field(max_length=40, description="`function`; others are refused.")
    function: FunctionDefinition | None = Field(default=None, description="The function.")

    def definition(self) -> FunctionDefinition:
        """Raises UnsupportedParameter for a tool that is no function."""
        if self.type != "function" or self.function is None:
            raise UnsupportedParameter(
                f"tools of type {self.type!r} are not offered here; give functions, as {{'type': 'function', 'function': …}}",
                field="tools",
            )
        return self.function


class NamedFunction(OpenAiBody):
    """The name of a function."""

    name: _FunctionName = Field(description="Its name.")


class ToolChoice(OpenAiBody):
    """The tool that must be called."""

    type: str = Field(max_length=40, description="`function`.")
    function: NamedFunction | None = Field(default=None, description="Which, in a chat completion.")
    name: _FunctionName | None = Field(default=None, description="Which, in Responses.")

    def choice(self) -> str:
        """The name of the function; `auto` for the search, which every answer begins with. Raises UnsupportedParameter."""
        name = self.name or (self.function.name if self.function else "")
        if self.type == "file_search":
            return "auto"
        if self.type != "function" or not name:
            raise UnsupportedParameter(
                f"tool_choice of type {self.type!r} is not offered; use auto, none, required or a function",
                field="tool_choice",
            )
        return name


class AnswerSchema(OpenAiBody):
    """A schema that the answer follows."""

    definition: dict[str, Any] | None = Field(default=None, alias="schema", description="JSON Schema of an object.")
    name: str | None = Field(default=None, max_length=64, description="A label.")
    strict: bool | None = Field(default=None, description="The answer follows its schema in any case.")


class AnswerFormat(OpenAiBody):
    """The form of the answer."""

    type: str = Field(max_length=40, description="`text`, `json_object` or `json_schema`.")
    json_schema: AnswerSchema | None = Field(default=None, description="The schema, in a chat completion.")
    definition: dict[str, Any] | None = Field(default=None, alias="schema", description="The schema, in Responses.")
    name: str | None = Field(default=None, max_length=64, description="A label of the schema, in Responses.")
    strict: bool | None = Field(default=None, description="The answer follows its schema in any case.")

    def schema_text(self, field: str) -> str:
        """The schema as JSON text; empty for an answer that is text. Raises UnsupportedParameter."""
        given = self.json_schema.definition if self.json_schema else self.definition
        match self.type:
            case "text":
                return ""
            case "json_object":
                return json.dumps(_ANY_OBJECT)
            case "json_schema" if given is not None and given.get("type") == "object":
                return json.dumps(given, ensure_ascii=False)
            case "json_schema":
                raise UnsupportedParameter(
                    f"{field} has no schema of an object; begin it with {{'type': 'object'}}", field=field
                )
            case _:
                raise UnsupportedParameter(
                    f"{field} of type {self.type!r} is not offered; use text, json_object or json_schema", field=field
                )


def texts(stop: str | Sequence[str] | None) -> list[str]:
    """What the answer stops before."""
    return [stop] if isinstance(stop, str) else list(stop or ())
