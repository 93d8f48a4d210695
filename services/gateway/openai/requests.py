"""Requests in the shape of OpenAI's API. Each parameter is honoured, refused with a reason, or ignored and named."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.errors import UnsupportedParameter
from services.gateway.schemas.conversations.runs import VERIFY, Verify
from services.gateway.schemas.fields import GUARD, WHOLE, CollectionId, Guard, ThreadId

MOST_HISTORY, MOST_HISTORY_CHARACTERS = 100, 100_000
"""Messages before the last one that are read, the latest of them."""

_ANSWER_TOKENS = Annotated[int, Field(ge=1, le=1_000_000), WHOLE]


class OpenAiBody(BaseModel):
    """A body in which what is not known is no error: clients send members of their own."""

    model_config = ConfigDict(extra="allow", strict=True)

    def ignored(self) -> list[str]:
        """Names of the members that were given and change nothing."""
        return sorted(self.model_extra or ())


class ContentPart(OpenAiBody):
    """A piece of a message."""

    type: str = Field(max_length=40, description="`text`, or in requests of Responses `input_text` or `output_text`.")
    text: str = Field(default="", max_length=100_000, description="The words.")


class ChatMessage(OpenAiBody):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"] = Field(
        description="Who wrote it. What `system` and `developer` say is not used, and named in X-Groundwork-Ignored."
    )
    content: Annotated[str, Field(max_length=100_000)] | list[ContentPart] | None = Field(
        default=None, description="Text, or pieces of text."
    )

    def words(self) -> str:
        """The text of the message. Raises UnsupportedParameter for a piece that is no text."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        for part in self.content:
            if part.type not in ("text", "input_text", "output_text"):
                raise UnsupportedParameter(
                    f"a message has a part of type {part.type!r}; only text is read. Upload files with POST "
                    "/v1/documents instead",
                    field="messages",
                )
        return "\n".join(part.text for part in self.content)


class StreamOptions(OpenAiBody):
    """How a stream ends."""

    include_usage: bool = Field(default=False, description="Whether a last chunk has the tokens that were used.")


class ResponseFormat(OpenAiBody):
    """The form of the answer."""

    type: str = Field(max_length=40, description="`text`; others are refused.")


class CommonParameters(OpenAiBody):
    """What requests of both kinds have, and Groundwork's own parameters beside them."""

    model: str = Field(
        min_length=1,
        max_length=200,
        description="`groundwork`, `groundwork/<agent>` or `groundwork/research`; with `@` and a collection's id behind it, that "
        "collection is searched: `groundwork@handbook`.",
    )
    stream: bool | None = Field(default=None, description="Whether the answer comes in pieces.")
    collection_ids: list[CollectionId] | None = Field(
        default=None, min_length=1, max_length=64, description="Groundwork's own: where to look."
    )
    thread_id: ThreadId | None = Field(default=None, description="Groundwork's own: thread to continue.")
    verify: Verify | None = Field(default=None, description=f"Groundwork's own. {VERIFY}")
    guard: Guard | None = Field(default=None, description=f"Groundwork's own. {GUARD}")
    tools: list[dict[str, Any]] | None = Field(
        default=None, max_length=128, description="Functions of the caller's are refused; an empty list is none."
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="Not used: the operator sets it.")
    top_p: float | None = Field(default=None, ge=0, le=1, description="Not used: the operator sets it.")

    def ignored(self) -> list[str]:
        """Names of the members that were given and change nothing."""
        unused = [name for name in ("temperature", "top_p") if getattr(self, name) is not None]
        return sorted([*super().ignored(), *unused])

    def check(self) -> None:
        """Raises UnsupportedParameter for what would silently be another answer than was asked for."""
        if self.tools:
            raise UnsupportedParameter(
                "functions of the caller's cannot be called yet; leave `tools` out. The tools of this installation are used by "
                "POST /v1/chat",
                field="tools",
            )


class ChatCompletionRequest(CommonParameters):
    """A conversation whose last message is to be answered."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"model": "groundwork", "messages": [{"role": "user", "content": "How long is the notice?"}]}
        }
    )

    messages: list[ChatMessage] = Field(min_length=1, max_length=1000, description="The last one is the user's.")
    stream_options: StreamOptions | None = Field(default=None, description="How a stream ends.")
    max_tokens: _ANSWER_TOKENS | None = Field(default=None, description="Tokens of the answer.")
    max_completion_tokens: _ANSWER_TOKENS | None = Field(default=None, description="Tokens of the answer.")
    n: Annotated[int, Field(ge=1, le=128), WHOLE] | None = Field(default=None, description="1; more are refused.")
    response_format: ResponseFormat | None = Field(default=None, description="The form of the answer.")
    reasoning_effort: str | None = Field(
        default=None, max_length=20, description="`low`, `medium` or `high` effort of `groundwork/research`."
    )

    @property
    def answer_tokens(self) -> int:
        """Most tokens of the answer; 0 for as many as the operator allows."""
        return self.max_completion_tokens or self.max_tokens or 0

    def ignored(self) -> list[str]:
        """Names of the members that were given and change nothing."""
        roles = {f"messages.{each.role}" for each in self.messages if each.role not in ("user", "assistant")}
        return sorted([*super().ignored(), *roles])

    def check(self) -> None:
        """Raises UnsupportedParameter."""
        super().check()
        if (self.n or 1) > 1:
            raise UnsupportedParameter("one answer is given to a request; leave `n` out and ask again", field="n")
        if self.response_format is not None and self.response_format.type != "text":
            raise UnsupportedParameter(
                "answers are text with citations; leave `response_format` out", field="response_format"
            )


class ResponseInputItem(OpenAiBody):
    """An item of the conversation in a request of Responses."""

    type: str | None = Field(default=None, max_length=40, description="`message`; others are refused.")
    role: Literal["system", "developer", "user", "assistant"] | None = Field(default=None, description="Who wrote it.")
    content: Annotated[str, Field(max_length=100_000)] | list[ContentPart] | None = Field(
        default=None, description="Text, or pieces of text."
    )

    def message(self) -> ChatMessage:
        """The same as a message of a conversation. Raises UnsupportedParameter for what is none."""
        if self.type not in (None, "message") or self.role is None:
            raise UnsupportedParameter(
                f"`input` has an item of type {self.type!r}; only messages with a role are read", field="input"
            )
        return ChatMessage(role=self.role, content=self.content)


class ResponseTool(OpenAiBody):
    """A tool of a request of Responses."""

    type: str = Field(max_length=40, description="`file_search`; others are refused.")
    vector_store_ids: list[CollectionId] = Field(default_factory=list, max_length=64, description="Where to look.")


class Reasoning(OpenAiBody):
    """How hard to think."""

    effort: str | None = Field(default=None, max_length=20, description="`low`, `medium` or `high`, as of research.")


class ResponsesRequest(OpenAiBody):
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

    model: str = Field(min_length=1, max_length=200, description="As of chat completions.")
    input: (
        Annotated[str, Field(min_length=1, max_length=100_000)]
        | Annotated[list[ResponseInputItem], Field(min_length=1, max_length=1000)]
    ) = Field(description="A question, or a conversation whose last message is the user's.")
    stream: bool | None = Field(default=None, description="Whether the answer comes as events.")
    tools: list[ResponseTool] | None = Field(
        default=None, max_length=128, description="`file_search` says where to look."
    )
    max_output_tokens: _ANSWER_TOKENS | None = Field(default=None, description="Tokens of the answer.")
    reasoning: Reasoning | None = Field(default=None, description="Effort of `groundwork/research`.")
    thread_id: ThreadId | None = Field(default=None, description="Groundwork's own: thread to continue.")
    verify: Verify | None = Field(default=None, description=f"Groundwork's own. {VERIFY}")
    guard: Guard | None = Field(default=None, description=f"Groundwork's own. {GUARD}")

    def as_chat(self) -> ChatCompletionRequest:
        """The same as a chat completion. Raises UnsupportedParameter."""
        places: list[str] = []
        for tool in self.tools or ():
            if tool.type != "file_search":
                raise UnsupportedParameter(
                    f"tools of type {tool.type!r} are not offered; use file_search with vector_store_ids", field="tools"
                )
            places += tool.vector_store_ids
        asked = (
            [ChatMessage(role="user", content=self.input)]
            if isinstance(self.input, str)
            else [item.message() for item in self.input]
        )
        return ChatCompletionRequest(
            model=self.model,
            messages=asked,
            collection_ids=list(dict.fromkeys(places)) or None,
            max_completion_tokens=self.max_output_tokens,
            reasoning_effort=self.reasoning.effort if self.reasoning else None,
            thread_id=self.thread_id,
            verify=self.verify,
            guard=self.guard,
        )
