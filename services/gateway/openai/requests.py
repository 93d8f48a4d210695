"""Requests of chat completions. Each parameter is honoured, refused with a reason, or ignored and named."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from services.gateway.errors import UnsupportedParameter
from services.gateway.openai.messages import AnswerFormat, ChatMessage, ChatTool, OpenAiBody, ToolChoice
from services.gateway.schemas.conversations.runs import VERIFY, Verify
from services.gateway.schemas.fields import GUARD, WHOLE, CollectionId, Guard, ThreadId

AnswerTokens = Annotated[int, Field(ge=1, le=1_000_000), WHOLE]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63), WHOLE]
StopText = Annotated[str, Field(min_length=1, max_length=200)]
Choice = Literal["auto", "none", "required"] | ToolChoice


class StreamOptions(OpenAiBody):
    """How a stream ends."""

    include_usage: bool = Field(default=False, description="Whether a last chunk has the tokens that were used.")


class Sampled(OpenAiBody):
    """How the model chooses its words, and Groundwork's own parameters."""

    model: str = Field(
        min_length=1,
        max_length=200,
        description="`groundwork`, `groundwork/<agent>` or `groundwork/research`; with `@` and a collection's id behind it, that "
        "collection is searched: `groundwork@handbook`.",
    )
    stream: bool | None = Field(default=None, description="Whether the answer comes in pieces.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Of the model; else the operator's.")
    top_p: float | None = Field(default=None, gt=0, le=1, description="Of the model; else the operator's.")
    tool_choice: Choice | None = Field(default=None, description="Whether functions may, must or must not be called.")
    parallel_tool_calls: bool | None = Field(
        default=None, description="Whether several functions may be called at once; true unless said."
    )
    thread_id: ThreadId | None = Field(default=None, description="Groundwork's own: thread to continue.")
    verify: Verify | None = Field(default=None, description=f"Groundwork's own. {VERIFY}")
    guard: Guard | None = Field(default=None, description=f"Groundwork's own. {GUARD}")

    @property
    def function_choice(self) -> str:
        """`auto`, `none`, `required`, or the name of a function. Raises UnsupportedParameter."""
        if isinstance(self.tool_choice, ToolChoice):
            return self.tool_choice.choice()
        return self.tool_choice or ""


class ChatCompletionRequest(Sampled):
    """A conversation whose last message is to be answered."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"model": "groundwork", "messages": [{"role": "user", "content": "How long is the notice?"}]}
        }
    )

    messages: list[ChatMessage] = Field(
        min_length=1, max_length=1000, description="The last one is the user's, or a `tool`'s."
    )
    collection_ids: list[CollectionId] | None = Field(
        default=None, min_length=1, max_length=64, description="Groundwork's own: where to look."
    )
    tools: list[ChatTool] | None = Field(default=None, max_length=128, description="Functions of the caller's.")
    stream_options: StreamOptions | None = Field(default=None, description="How a stream ends.")
    max_tokens: AnswerTokens | None = Field(default=None, description="Tokens of the answer.")
    max_completion_tokens: AnswerTokens | None = Field(default=None, description="Tokens of the answer.")
    seed: Seed | None = Field(default=None, description="Of the model, where its provider has one.")
    stop: StopText | Annotated[list[StopText], Field(max_length=4)] | None = Field(
        default=None, description="Texts before which the model stops."
    )
    n: Annotated[int, Field(ge=1, le=128), WHOLE] | None = Field(default=None, description="1; more are refused.")
    response_format: AnswerFormat | None = Field(default=None, description="The form of the answer.")
    reasoning_effort: str | None = Field(
        default=None, max_length=20, description="`low`, `medium` or `high` effort of `groundwork/research`."
    )
    modalities: list[Annotated[str, Field(max_length=40)]] | None = Field(
        default=None, max_length=8, description="`text`; others are refused."
    )
    audio: Any = Field(default=None, description="Refused: voice has sockets of its own.")
    functions: Any = Field(default=None, description="Refused: use `tools`.")
    function_call: Any = Field(default=None, description="Refused: use `tool_choice`.")

    @property
    def answer_tokens(self) -> int:
        """Most tokens of the answer; 0 for as many as the operator allows."""
        return self.max_completion_tokens or self.max_tokens or 0

    @property
    def answer_schema(self) -> str:
        """The schema of the answer; empty for text. Raises UnsupportedParameter."""
        return self.response_format.schema_text("response_format") if self.response_format else ""

    def ignored(self) -> list[str]:
        """Names of the members that were given and change nothing."""
        names = {*super().ignored(), *unused_roles("messages", self.model, (each.role for each in self.messages))}
        if self.reasoning_effort and not is_research(self.model):
            names.add("reasoning_effort")
        return sorted(names)

    def check(self) -> None:
        """Raises UnsupportedParameter for what would silently be another answer than was asked for."""
        if (self.n or 1) > 1:
            raise UnsupportedParameter("one answer is given to a request; leave `n` out and ask again", field="n")
        for field, instead in (("functions", "tools"), ("function_call", "tool_choice")):
            if getattr(self, field):
                raise UnsupportedParameter(f"`{field}` has been given up by OpenAI; use `{instead}`", field=field)
        if self.audio or set(self.modalities or ()) - {"text"}:
            raise UnsupportedParameter(
                "answers are text here; leave `audio` and `modalities` out, or speak over /v1/realtime or /ws/voice-chat",
                field="audio" if self.audio else "modalities",
            )
        if is_research(self.model) and (self.tools or self.answer_schema):
            field = "tools" if self.tools else "response_format"
            raise UnsupportedParameter(
                f"`groundwork/research` writes text and calls no functions; leave `{field}` out, or ask `groundwork`",
                field=field,
            )


def unused_roles(field: str, model: str, roles: Iterable[str | None]) -> set[str]:
    """Roles whose messages change nothing, as members of `field`."""
    unused = {"function"} | ({"system", "developer"} if is_research(model) else set())
    return {f"{field}.{role}" for role in roles if role in unused}


def is_research(model: str) -> bool:
    """Whether the name is that of the research agent."""
    return model.partition("@")[0] == "groundwork/research"
