"""Fits messages to the context of a model, with room for the answer. What tools said is shortened first, the oldest of it; then the
oldest turns of the history are left out, then the worst sources; the best source is cut at a sentence."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from kit.language.sentences import UnitKind, split_units
from kit.llm import ChatMessage, LanguageModel, ModelInfo, Operation, ToolSpec, estimate_tokens, tools_text
from services.orchestrator.errors import QuestionTooLong
from services.orchestrator.prompts.fencing import fenced, unfenced

Count = Callable[[Sequence[str]], Awaitable[Sequence[int]]]

_TOKENS_PER_MESSAGE = 8
"""What a chat template puts around a message; Llama 3 and ChatML need five."""
_TOKENS_AROUND = 40
"""What it puts around the whole (SmolLM2's adds a system prompt of 25), and the end of it."""
_TOKENS_AROUND_TOOLS = 200
"""What a template says about how to call them; that of Hermes has 150."""
_MOST_OF_CONTEXT = 0.5
"""Share of the context that the answer may take: the rest is for what it is made from."""
_LEAST_SOURCE_TOKENS = 48
"""A sentence and its source: with less there is nothing to answer from."""
_STUB_CHARS = 160
"""What is left of an observation at least: enough to know that the call was made, and how it went."""
_SHARES_KEPT = (0.25, 0.0)
"""Of each observation, in the first round of shortening and in the second."""
_MARGIN = 1.1
"""A part of a text may have more tokens than its share of the characters."""
_SHORTENED = "\n… (shortened: there was no room for the rest)"


@dataclass(frozen=True)
class Fitted:
    """What is sent, and what gave way."""

    messages: Sequence[ChatMessage]
    max_tokens: int
    """Tokens that the model may write."""

    shortened: int = 0
    """Observations that were shortened."""

    left_out_turns: int = 0
    left_out_sources: int = 0
    is_cut: bool = False
    """Whether the only source is not there as a whole."""

    @property
    def is_whole(self) -> bool:
        return not (self.shortened or self.left_out_turns or self.left_out_sources or self.is_cut)


async def fit(
    messages: Sequence[ChatMessage],
    model: LanguageModel,
    answer_tokens: int,
    *,
    tools: Sequence[ToolSpec] = (),
    share: float = 1.0,
    sources: Sequence[str] = (),
    render: Callable[[Sequence[str]], str] | None = None,
    operation: Operation = Operation.ANSWER,
) -> Fitted:
    """The messages within `share` of the model's context. `render` writes the last question with the sources that
    are kept. Raises QuestionTooLong when not even the system prompt and the question fit."""
    await model.count_tokens([""], operation)  # the context of a server is known once it has been asked
    fitting = _Fitting(model.info(operation), list(messages), sources, render, answer_tokens, share)

    async def exactly(texts: Sequence[str]) -> Sequence[int]:
        return await model.count_tokens(texts, operation)

    offered = tools_text(tools) if tools else ""
    try:  # what fits by an estimate from above need not be counted
        fitted = await fitting.fitted(offered, _estimated)
        if fitted.is_whole:
            return fitted
    except QuestionTooLong:
        pass
    return await fitting.fitted(offered, exactly)


async def _estimated(texts: Sequence[str]) -> Sequence[int]:
    return [estimate_tokens(text) for text in texts]


@dataclass(frozen=True)
class _Fitting:
    info: ModelInfo
    messages: list[ChatMessage]
    sources: Sequence[str]
    render: Callable[[Sequence[str]], str] | None
    answer_tokens: int
    share: float

    @property
    def question(self) -> int:
        """Place of the last question. What is before it and no system prompt is history."""
        return max((place for place, each in enumerate(self.messages) if each.role == "user"), default=0)

    def asked(self, sources: Sequence[str]) -> ChatMessage:
        message = self.messages[self.question]
        return message if self.render is None else replace(message, content=self.render(sources))

    async def fitted(self, tools: str, count: Count) -> Fitted:
        context = int(self.info.context_tokens * self.share)
        max_tokens = max(1, min(self.answer_tokens + self.info.reasoning_tokens, int(context * _MOST_OF_CONTEXT)))
        messages = list(self.messages)
        messages[self.question] = self.asked(())
        counts = await count([tools, *map(_text, messages), *self.sources])
        room = context - max_tokens - _TOKENS_AROUND - (counts[0] + _TOKENS_AROUND_TOOLS if tools else 0)
        costs = [tokens + _TOKENS_PER_MESSAGE for tokens in counts[1 : len(messages) + 1]]
        of_sources = counts[len(messages) + 1 :]
        shortened = _shorten(messages, costs, room - sum(of_sources))
        turns = [place for place in range(self.question) if messages[place].role != "system"]
        left = room - sum(costs) + sum(costs[place] for place in turns)
        if left < (_LEAST_SOURCE_TOKENS if self.sources else 0):
            raise self._too_long(counts[self.question + 1], max_tokens)
        kept, left = _first_that_fit(of_sources, left)
        sources, is_cut = list(self.sources[:kept]), bool(self.sources) and not kept
        if is_cut:
            sources, left = [await _cut_source(self.sources[0], left, count)], 0
        messages[self.question] = self.asked(sources)
        newest, _ = _first_that_fit([costs[place] for place in reversed(turns)], left)
        left_out = turns[: len(turns) - newest]
        if left_out:  # templates want a user's message first
            left_out += _leading_answers(messages, turns[len(left_out) :])
        kept_messages = [each for place, each in enumerate(messages) if place not in left_out]
        return Fitted(kept_messages, max_tokens, shortened, len(left_out), len(self.sources) - len(sources), is_cut)

    def _too_long(self, question_tokens: int, max_tokens: int) -> QuestionTooLong:
        return QuestionTooLong(
            f"the question has {question_tokens} tokens, which leaves no room in the context of model {self.info.model} "
            f"({self.info.context_tokens} tokens, {max_tokens} of them for the answer): ask a shorter one, or allow fewer tools"
        )


def _leading_answers(messages: Sequence[ChatMessage], places: Sequence[int]) -> list[int]:
    leading: list[int] = []
    for place in places:
        if messages[place].role == "user":
            break
        leading.append(place)
    return leading


def _shorten(messages: list[ChatMessage], costs: list[int], room: int) -> int:
    """Shortens as few observations as must be, in place. Returns how many those are."""
    shortened: set[int] = set()
    for keep_share in _SHARES_KEPT:
        for place, message in enumerate(messages):
            excess = sum(costs) - room
            if excess <= 0:
                break
            if message.role == "tool":
                messages[place], costs[place] = _cut_observation(message, costs[place], excess, keep_share)
                shortened.add(place)
    return len(shortened)


def _cut_observation(message: ChatMessage, cost: int, excess: int, keep_share: float) -> tuple[ChatMessage, int]:
    """The observation shorter by the excess, but for `keep_share` of it, and what it costs by estimate from above."""
    freed = excess * _MARGIN + 2 * estimate_tokens(_SHORTENED)
    share = max(keep_share, 1 - freed / max(cost, 1))
    length = max(int(len(message.content) * share), _STUB_CHARS)
    if length + len(_SHORTENED) >= len(message.content):
        return message, cost
    cut = replace(message, content=message.content[:length] + _SHORTENED)
    return cut, min(cost, estimate_tokens(cut.content) + _TOKENS_PER_MESSAGE)


def _first_that_fit(costs: Sequence[int], left: int) -> tuple[int, int]:
    """How many from the front fit, and what is left behind them."""
    for place, cost in enumerate(costs):
        if cost > left:
            return place, left
        left -= cost
    return len(costs), left


async def _cut_source(block: str, tokens: int, count: Count) -> str:
    """The beginning of a source up to the last sentence that fits; within a sentence where not even the first does."""
    head, _, quoted = block.partition("\n")
    text = unfenced(quoted)
    units = [unit for unit in split_units(text) if unit.kind is not UnitKind.LIST]
    costs = await count([head, *(unit.text for unit in units)])
    kept, _ = _first_that_fit([cost + 1 for cost in costs[1:]], tokens - costs[0] - 1)
    if kept:
        return f"{head}\n{fenced(text[: units[kept - 1].end])}"
    allowed = max(tokens - costs[0] - 1, 0)
    while (await count([text]))[0] > allowed and text:
        text = text[: len(text) // 2]
    return f"{head}\n{fenced(text)}"


def _text(message: ChatMessage) -> str:
    return message.content + "".join(call.name + call.arguments for call in message.tool_calls)
