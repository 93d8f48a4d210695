"""What the tool loop is given and what it gives back."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum

from kit.errors import FailedPrecondition, Unavailable
from kit.llm import ChatMessage
from kit.stores.forgetting import Source
from services.orchestrator.answering.draft import Draft
from services.orchestrator.log.events import Degradation, Evidence, FunctionCall
from services.orchestrator.models import Tool
from services.orchestrator.steps.budgets import Ledger

Note = Callable[[Sequence[Source]], Awaitable[Collection[Source]]]
"""Notes that the run is about to write text of these sources; returns those that are forgotten, whose text must not be written."""

Listening = Callable[[Sequence[Evidence]], AbstractAsyncContextManager[None]]
"""Within it somebody listens to what the model writes with these passages before it."""

_MOST_RESERVED = 0.25
"""Share of the wall clock: a run with little time must find some to act as well."""
_LEAST_S = 0.05


def _nobody_listens(_: Sequence[Evidence]) -> AbstractAsyncContextManager[None]:
    return nullcontext()


async def _all_may_be_written(_: Sequence[Source]) -> Collection[Source]:
    return ()


@dataclass(frozen=True)
class LoopLimits:
    """Numbers of the loop. What a run may spend is in its budgets; see settings.py for the reasons."""

    reasoning_steps: int = 3
    """Completions in which tools may be called, where the run's budgets do not say."""

    parallel_calls: int = 3
    """Calls that run beside each other, where the run's budgets do not say."""

    observation_chars: int = 12_000
    """Longest observation of one call: about 3 000 tokens. Eight passages fit; a page that a tool fetched is cut."""

    reserve_s: float = 15.0
    """Kept back of the run's wall clock for the answer to what was found, but no more than a quarter of it. The loop begins nothing
    more when less than this is left. Models write a few hundred tokens in ten seconds."""

    approval_timeout_s: float = 900.0
    """How long a person has to allow a call."""


@dataclass(frozen=True)
class LoopTask:
    """One question. `messages` are the system prompt, the history, the question and what was called for it, in this order."""

    question: str
    """The user's words, for the answer that is quoted from the evidence when no model can write one."""

    messages: Sequence[ChatMessage]
    offered: Sequence[Tool]
    answer_tokens: int
    collection_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()
    """What was found before the loop began, numbered from 1; the messages show it."""

    ranking: Sequence[str] = ()
    """Names of the offered tools, best first: the last are not shown to a model that turns out to have less room."""

    needed: Collection[str] = ()
    """Names of the offered tools that the message calls for."""

    withheld: Collection[str] = ()
    """Names of tools that exist and that this run may not use."""

    tool_choice: str = "auto"
    """Of the first completion: "auto", "none", "required", or the name of the tool that must be called."""

    note: Note = _all_may_be_written
    listening: Listening = _nobody_listens
    shows_thinking: bool = False
    """Whether what a reasoning model thinks is written to the log."""


def reserved_s(budgets: Ledger, limits: LoopLimits) -> float:
    """Seconds that are kept back for the answer."""
    limit_s = budgets.budgets.wall_clock_s
    return min(limits.reserve_s, limit_s * _MOST_RESERVED) if limit_s else limits.reserve_s


def time_to_act_s(budgets: Ledger, limits: LoopLimits) -> float | None:
    """Seconds until nothing may be begun any more but the answer; None where nothing limits the run's time."""
    left_s = budgets.remaining_s
    if left_s is None:
        return None
    left_s -= reserved_s(budgets, limits)
    return left_s if left_s >= _LEAST_S else 0.0


class LoopEnd(Enum):
    """How the answer came about."""

    ANSWERED = "answered"
    """The model answered by itself."""
    FORCED = "forced"
    """A budget was spent: the model was made to answer without tools."""
    HANDED_OVER = "handed_over"
    """The model calls functions of the caller's, who makes the calls."""
    FALLBACK = "fallback"
    """Without a model: what was found is quoted, or it is said what the tools said."""


@dataclass(frozen=True)
class LoopResult:
    """The answer, which is also what the screen shows."""

    text: str
    evidence: Sequence[Evidence]
    """All passages that tools brought, each chunk once, numbered 1, 2, 3 … as the text cites them."""

    end: LoopEnd
    reason: str = ""
    """Why the model did not answer by itself: `reasoning_steps`, `tool_calls`, `steps`, `tokens`, `cost_usd`, `wall_clock`, or the
    reason of the model's failure. Empty when it did."""

    degraded: Sequence[Degradation] = ()
    """What was degraded; each event said so as it happened."""

    draft: Draft | None = None
    """What the text is, where no model wrote it."""

    function_calls: Sequence[FunctionCall] = ()
    """Calls that are the caller's to make."""


class ToolsNotSupported(FailedPrecondition):
    """The model's endpoint takes no tools. Raised before anything was called, and recorded: a resumed run comes to it again."""

    reason = "TOOLS_NOT_SUPPORTED"


class NoFirstWord(Unavailable):
    """The model failed before anything was called: there is nothing to answer from. `reason` is the model's. Recorded too."""

    reason = "LLM_UNAVAILABLE"
