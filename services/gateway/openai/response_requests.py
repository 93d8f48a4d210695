"""Requests of Responses: the same questions as chat completions, whose conversation is made of items."""

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import ConfigDict, Field, ValidationError

from services.gateway.errors import UnsupportedParameter
from services.gateway.openai.messages import (
    AnswerFormat,
    CalledFunction,
    ChatMessage,
    ChatTool,
    FunctionDefinition,
    MessageCall,
    OpenAiBody,
    Words,
    words_of,
)
from services.gateway.openai.requests import (
    AnswerTokens,
    ChatCompletionRequest,
    Sampled,
    is_research,
    unused_roles,
)
from services.gateway.schemas.fields import CollectionId, Pattern

_RESPONSE_ID = Pattern("^resp_[0-9a-f]{32}$", "is no response id; it is resp_ and 32 of 0-9 and a-f")
ResponseId = Annotated[str, _RESPONSE_ID]
_ITEM_ID = Pattern(
    "^(msg|fc|fco)_[0-9a-f]{32}_in[0-9]{1,4}$", "is no id of an input item; take the `last_id` of a page"
)
AfterItem = Annotated[Annotated[str, _ITEM_ID] | None, Query(description="The last item of the page before.")]
_ECHOED = ("reasoning", "file_search_call")
"""Items of an answer that clients send back and that say nothing new."""


class ResponseInputItem(OpenAiBody):
    """An item of the conversation in a request of Responses."""

    type: str | None = Field(
        default=None,
        max_length=40,
        description="`message`, `function_call` or `function_call_output`; `reasoning` and `file_search_call` are passed over, "
        "others are refused.",
    )
    role: Literal["system", "developer", "user", "assistant"] | None = Field(default=None, description="Who wrote it.")
    content: Words = Field(default=None, description="Of a message: text, or pieces of text.")
    call_id: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="Of a call and of its output."
    )
    name: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        default=None, description="Of a call: the function."
    )
    arguments: Annotated[str, Field(max_length=100_000)] | None = Field(
        default=None, description="Of a call: its arguments, as JSON text."
    )
    output: Words = Field(default=None, description="Of an output: what the function returned.")

    def message(self) -> ChatMessage | None:
        """The same as a message of a conversation; None for what says nothing. Raises UnsupportedParameter for what is none."""
        if self.type in _ECHOED:
            return None
        if self.type == "function_call" and self.call_id and self.name:
            function = CalledFunction(name=self.name, arguments=self.arguments or "")
            return ChatMessage(role="assistant", tool_calls=[MessageCall(id=self.call_id, function=function)])
        if self.type == "function_call_output" and self.call_id:
            return ChatMessage(role="tool", content=words_of(self.output), tool_call_id=self.call_id)
        if self.type not in (None, "message") or self.role is None:
            raise UnsupportedParameter(
                f"`input` has an item of type {self.type!r} that is not read, or lacks what it needs; give messages with a role, "
                "function_call and function_call_output",
                field="input",
            )
        return ChatMessage(role=self.role, content=self.content)


class ResponseTool(OpenAiBody):
    """A tool of a request of Responses."""

    type: str = Field(max_length=40, description="`file_search` or `function`; others are refused.")
    vector_store_ids: list[CollectionId] = Field(
        default_factory=list, max_length=64, description="Of `file_search`: where to look."
    )
    name: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        default=None, description="Of a function: 1 to 64 letters, digits, `-` and `_`."
    )
    description: str | None = Field(
        default=None, max_length=20_000, description="Of a function: what it does, for the model."
    )
    parameters: dict[str, Any] | None = Field(
        default=None, description="Of a function: JSON Schema of its arguments, an object."
    )
    strict: bool | None = Field(default=None, description="Arguments follow their schema in any case.")

    def as_chat(self) -> ChatTool:
        """The function as a tool of a chat completion. Raises UnsupportedParameter."""
        if self.type != "function" or self.name is None:
            raise UnsupportedParameter(
                f"tools of type {self.type!r} are not offered; use file_search with vector_store_ids, and functions with a name",
                field="tools",
            )
        definition = FunctionDefinition(name=self.name, description=self.description, parameters=self.parameters)
        return ChatTool(type="function", function=definition)


class Reasoning(OpenAiBody):
    """How hard to think."""

    effort: str | None = Field(default=None, max_length=20, description="`low`, `medium` or `high`, as of research.")


class TextOptions(OpenAiBody):
    """How the answer is written."""

    format: AnswerFormat | None = Field(default=None, description="`text`, `json_object` or `json_schema`.")


class ResponsesRequest(Sampled):
    """A request of Responses."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "model": "groundwork",
                "input": "How long is the notice?",
                "tools": [{"type": "file_search", "vector_store_ids": ["default"]}],
            }
        }
    )

    input: (
        Annotated[str, Field(min_length=1, max_length=100_000)]
        | Annotated[list[ResponseInputItem], Field(min_length=1, max_length=1000)]
    ) = Field(description="A question, or a conversation whose last message is the user's or the output of a function.")
    instructions: Annotated[str, Field(max_length=32_000)] | None = Field(
        default=None, description="The model reads them below our own rules."
    )
    previous_response_id: ResponseId | None = Field(
        default=None, description="The response that this one goes on from. Not together with `thread_id`."
    )
    store: bool | None = Field(
        default=None, description="False: the response is deleted once it is answered. True unless said."
    )
    background: bool | None = Field(
        default=None, description="Whether the answer is fetched later, at GET /v1/responses/{response_id}."
    )
    tools: list[ResponseTool] | None = Field(
        default=None, max_length=128, description="`file_search` says where to look; functions are the caller's."
    )
    text: TextOptions | None = Field(default=None, description="The form of the answer.")
    max_output_tokens: AnswerTokens | None = Field(default=None, description="Tokens of the answer.")
    reasoning: Reasoning | None = Field(default=None, description="Effort of `groundwork/research`.")
    conversation: Any = Field(default=None, description="Refused: use `previous_response_id`.")
    prompt: Any = Field(default=None, description="Refused: write it into `instructions` and `input`.")

    @property
    def answer_schema(self) -> str:
        """The schema of the answer; empty for text. Raises UnsupportedParameter."""
        return self.text.format.schema_text("text.format") if self.text and self.text.format else ""

    def ignored(self) -> list[str]:
        """Names of the members that were given and change nothing."""
        roles = () if isinstance(self.input, str) else (each.role for each in self.input)
        names = {*super().ignored(), *unused_roles("input", self.model, roles)}
        if self.instructions and is_research(self.model):
            names.add("instructions")
        if self.reasoning and self.reasoning.effort and not is_research(self.model):
            names.add("reasoning.effort")
        return sorted(names)

    def as_chat(self) -> ChatCompletionRequest:
        """The same as a chat completion. Raises UnsupportedParameter."""
        if self.prompt is not None:
            raise UnsupportedParameter(
                "prompts are not kept here; write what it says into `instructions` and `input`", field="prompt"
            )
        if self.conversation is not None:
            raise UnsupportedParameter(
                "conversations are not kept here; go on from a response with `previous_response_id`",
                field="conversation",
            )
        if self.background and (self.stream or self.store is False):
            raise UnsupportedParameter(
                "a response in the background is fetched later; leave `stream` and `store: false` out",
                field="background",
            )
        try:
            return self._as_chat()
        except ValidationError:  # texts of pieces, and instructions, are only now together
            raise UnsupportedParameter(
                "`input` and `instructions` have more than 1000 items, or a text of more than 100 000 characters; send less",
                field="input",
            ) from None

    def _as_chat(self) -> ChatCompletionRequest:
        search = [each for each in self.tools or () if each.type == "file_search"]
        places = [store_id for each in search for store_id in each.vector_store_ids]
        return ChatCompletionRequest(
            model=self.model,
            messages=self._messages(),
            collection_ids=list(dict.fromkeys(places)) or None,
            tools=[each.as_chat() for each in self.tools or () if each.type != "file_search"] or None,
            tool_choice=self.tool_choice,
            parallel_tool_calls=self.parallel_tool_calls,
            response_format=self.text.format if self.text else None,
            temperature=self.temperature,
            top_p=self.top_p,
            max_completion_tokens=self.max_output_tokens,
            reasoning_effort=self.reasoning.effort if self.reasoning else None,
            thread_id=self.thread_id,
            verify=self.verify,
            guard=self.guard,
        )

    def _messages(self) -> list[ChatMessage]:
        instructions = [ChatMessage(role="developer", content=self.instructions)] if self.instructions else []
        if isinstance(self.input, str):
            return [*instructions, ChatMessage(role="user", content=self.input)]
        said: list[ChatMessage] = []
        for message in filter(None, (item.message() for item in self.input)):
            # Calls of one answer are items of their own here, and one message in a conversation.
            if message.tool_calls and said and said[-1].role == "assistant" and said[-1].tool_calls is not None:
                said[-1] = said[-1].model_copy(update={"tool_calls": [*said[-1].tool_calls, *message.tool_calls]})
            else:
                said.append(message)
        return [*instructions, *said]
