"""The messages of a run with tools: what the caller gave, then rounds of calls and observations. What does not fit the model's
context is shortened, the oldest observations first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kit.llm import ChatMessage, LanguageModel, Operation, ToolCall, ToolSpec, estimate_tokens, tools_text
from services.orchestrator.errors import QuestionTooLong
from services.orchestrator.models import Tool

_TOKENS_PER_MESSAGE = 8
_TOKENS_AROUND = 40
_TOKENS_AROUND_TOOLS = 200
"""As in answering/prompt.py: what chat templates add."""
_MOST_OF_CONTEXT = 0.5
"""Share of the context that the answer may take."""
_STUB_CHARS = 160
"""What is left of an observation at least: enough to know that the call was made, and how it went."""
_MARGIN = 1.1
"""A part of a text may have more tokens than its share of the characters."""
_SHORTENED = "\n… (shortened: there was no room for the rest)"


@dataclass(frozen=True)
class Fitted:
    """What is sent."""

    messages: Sequence[ChatMessage]
    max_tokens: int
    shortened: int = 0
    """Messages that were shortened or left out."""


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
        return {call.call_id for message in self._rounds for call in message.tool_calls}

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


async def fitted(
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolSpec],
    model: LanguageModel,
    answer_tokens: int,
    *,
    share: float = 1.0,
) -> Fitted:
    """The messages within the model's context, of which `share` is used. Observations give way first, the oldest first; then the
    history, the oldest turn first.

    Raises QuestionTooLong when not even the system prompt and the question fit.
    """
    await model.count_tokens([""], Operation.ANSWER)  # the context of a server is known once it has been asked
    info = model.info(Operation.ANSWER)
    context = int(info.context_tokens * share)
    max_tokens = max(1, min(answer_tokens + info.reasoning_tokens, int(context * _MOST_OF_CONTEXT)))
    room = context - max_tokens - _TOKENS_AROUND
    texts = [_text(message) for message in messages]
    fixed = tools_text(tools) if tools else ""
    counts = [estimate_tokens(text) for text in [fixed, *texts]]
    if not _fits(counts, room, with_tools=bool(tools)):
        counts = list(await model.count_tokens([fixed, *texts], Operation.ANSWER))
    room -= counts[0] + (_TOKENS_AROUND_TOOLS if tools else 0)
    kept, shortened = await _shortened(list(messages), [tokens + _TOKENS_PER_MESSAGE for tokens in counts[1:]], room)
    if kept is None:
        raise QuestionTooLong(
            f"the question and the tools leave no room in the context of model {info.model} ({info.context_tokens} tokens, "
            f"{max_tokens} of them for the answer): ask a shorter one, or allow fewer tools"
        )
    return Fitted(kept, max_tokens, shortened)


def _fits(counts: Sequence[int], room: int, *, with_tools: bool) -> bool:
    around = _TOKENS_AROUND_TOOLS if with_tools else 0
    return sum(counts) + _TOKENS_PER_MESSAGE * (len(counts) - 1) + around <= room


async def _shortened(
    messages: list[ChatMessage], costs: list[int], room: int
) -> tuple[Sequence[ChatMessage] | None, int]:
    """The messages with as few of them shortened as must be, and how many those are; None when they do not fit all the same."""
    shortened: set[int] = set()
    for keep_share in (0.25, 0.0):
        for index, message in enumerate(messages):
            excess = sum(costs) - room
            if excess <= 0:
                break
            if message.role == "tool":
                messages[index], costs[index] = _cut(message, costs[index], excess, keep_share)
                shortened.add(index)
    last_question = max((index for index, message in enumerate(messages) if message.role == "user"), default=0)
    left_out = 0
    for index in range(last_question):
        if sum(costs) <= room and not (left_out and messages[index].role == "assistant"):
            break  # templates want a user's message first
        if messages[index].role != "system":
            costs[index] = 0
            left_out += 1
    if sum(costs) > room:
        return None, 0
    kept = [message for message, cost in zip(messages, costs, strict=True) if cost]
    return kept, len(shortened) + left_out


def _cut(message: ChatMessage, cost: int, excess: int, keep_share: float) -> tuple[ChatMessage, int]:
    """The observation shorter by the excess, but for `keep_share` of it, and what it costs by estimate from above."""
    freed = excess * _MARGIN + 2 * estimate_tokens(_SHORTENED)
    share = max(keep_share, 1 - freed / max(cost, 1))
    length = max(int(len(message.content) * share), _STUB_CHARS)
    if length + len(_SHORTENED) >= len(message.content):
        return message, cost
    cut = replace(message, content=message.content[:length] + _SHORTENED)
    return cut, min(cost, estimate_tokens(cut.content) + _TOKENS_PER_MESSAGE)


def _text(message: ChatMessage) -> str:
    return message.content + "".join(call.name + call.arguments for call in message.tool_calls)
