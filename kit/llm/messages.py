"""What is said to a language model and what comes back. The words are those of the OpenAI chat API, which every provider that
Groundwork speaks to offers; nothing in here knows a provider."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol


class Operation(Enum):
    """What a model is asked for. Each has its own model and its own fallbacks in the settings."""

    PLAN = "plan"
    ANSWER = "answer"
    VERIFY = "verify"
    SUMMARISE = "summarise"
    FACTS = "facts"


@dataclass(frozen=True)
class ToolCall:
    """A call that a model wants made. `arguments` is the text that it wrote: JSON, if it kept to its schema."""

    call_id: str
    name: str
    arguments: str
    signature: str = ""
    """What the provider wants back with the call, unread (Gemini's thought signature)."""


@dataclass(frozen=True)
class ChatMessage:
    """One message of the conversation. Calls are an assistant's; a tool's message answers the call of its id."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str = ""


@dataclass(frozen=True)
class ToolSpec:
    """A tool that the model may call; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class TokenUsage:
    """Tokens as the endpoint counted them, or our estimate of what was sent and received where it does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = field(default=False, compare=False)

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True)
class Spent:
    """What one attempt at one endpoint has cost."""

    provider: str
    model: str
    usage: TokenUsage


@dataclass
class Meter:
    """Counts the tokens of completions on every way out: a caller that leaves a stream early, or is thrown out of it, reads here
    what was used. Attempts at several providers each add their own entry."""

    spent: list[Spent] = field(default_factory=list)

    def add(self, spent: Spent) -> None:
        self.spent.append(spent)

    @property
    def total(self) -> TokenUsage:
        return sum((each.usage for each in self.spent), TokenUsage())


@dataclass(frozen=True)
class Request:
    """One completion."""

    messages: Sequence[ChatMessage]
    max_tokens: int
    """Tokens that the model may write, its reasoning included."""

    operation: Operation = Operation.ANSWER
    tools: Sequence[ToolSpec] = ()
    tool_choice: str = "auto"
    """"auto", "none", "required", or the name of the tool that must be called."""

    schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer has to follow, by grammar where the provider has one."""

    temperature: float = 0.0
    top_p: float | None = None
    seed: int | None = None
    stop: Sequence[str] = ()
    """Texts before which the model stops. This and the two before it are left out for a provider that does not have them."""

    meter: "Meter | None" = field(default=None, compare=False, repr=False)
    """Where the tokens of every attempt are noted, however it ends."""


class FinishReason(Enum):
    """Why a model stopped. Only STOP and TOOL_CALLS are whole answers."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    """The tokens it may write were used up."""
    CONTENT_FILTER = "content_filter"
    INCOMPLETE = "incomplete"
    """The stream ended without saying why."""
    CUT_OFF = "cut_off"
    """By us: it took longer or wrote more than it may."""
    WITHHELD = "withheld"
    """By us: what came next must not leave."""

    @property
    def is_whole(self) -> bool:
        return self in (FinishReason.STOP, FinishReason.TOOL_CALLS)


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """A piece of what a reasoning model thinks. Never a part of the answer."""

    text: str


@dataclass(frozen=True)
class Retraction:
    """All text so far was thinking: the model closed a block that it had never opened. The answer begins anew behind this."""


@dataclass(frozen=True)
class ToolCallDelta:
    """A piece of the call at `index`. Id and name come with its first piece; arguments are to be appended."""

    index: int
    arguments: str
    call_id: str = ""
    name: str = ""
    signature: str = ""
    is_written: bool = field(default=False, compare=False)
    """Whether the call was text of the answer: the model may only have quoted it. Said with the first piece."""


@dataclass(frozen=True)
class Finish:
    """The last delta of a completion, exactly one."""

    reason: FinishReason
    usage: TokenUsage = TokenUsage()
    provider: str = ""
    """Name of the provider that answered: with fallbacks it need not be the first."""
    model: str = ""


@dataclass(frozen=True)
class Restart:
    """A model failed, and the next of the chain begins. All deltas that came before are void, text that was shown included; there
    may have been none."""

    provider: str
    """Who failed, and with what model."""
    model: str
    reason: str
    """UPPER_SNAKE, as of an error."""
    message: str
    """What happened, for a person."""
    next_provider: str = ""
    """Who is asked next."""


Delta = TextDelta | ReasoningDelta | Retraction | ToolCallDelta | Restart | Finish


@dataclass(frozen=True)
class ModelInfo:
    """The model that an operation gets now."""

    provider: str
    model: str
    context_tokens: int
    """Tokens of prompt and answer together. Where the server has to be asked, known once `count_tokens` has been called."""

    reasoning_tokens: int = 0
    """Tokens that the model may think before it answers, to be allowed on top of the answer's."""


class LanguageModel(Protocol):
    """A language model, or several that stand in for each other."""

    def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Deltas as they come; the last is Finish. After a Restart everything before it is void. Closing the iterator stops the
        endpoint's work. Each attempt is noted in the request's meter, however it ends.

        Raises ModelUnavailable or ModelRejected, possibly after some deltas.
        """
        ...

    def info(self, operation: Operation) -> ModelInfo: ...

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        """Tokens of each text for the operation's model: counted where it has a tokenizer, else an estimate from above. Never
        fails."""
        ...
