"""One completion of the loop: the model's stream put together to a text or to calls, with the text on the screen as it comes."""

import re
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from kit.llm import (
    Finish,
    FinishReason,
    LanguageModel,
    ReasoningDelta,
    Request,
    Restart,
    Retraction,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from services.orchestrator.answering.coalescing import coalesced
from services.orchestrator.answering.generation import Listener, Writing
from services.orchestrator.log.screen import Screen
from services.orchestrator.toolloop.written.hermes import CallTextFilter

_MOST_CALLS = 32
"""Of one completion: more are a model that is caught in a loop."""
_LONGEST_ARGUMENTS_CHARS = 60_000
"""Of all calls of a completion together: with what was planned they are one event of the log, which holds 1 MB in any script."""
_NOT_COMPARED = re.compile(r"[\s\\\"']+")
"""What writing the same JSON anew, or inside of other JSON, may change."""
_NAME_TO_ARGUMENTS_CHARS = 40


@dataclass(frozen=True)
class Completion:
    """What the model said: calls, or else an answer."""

    text: str
    calls: Sequence[ToolCall]
    reason: FinishReason
    invented_citations: int = 0
    quoted_calls: int = 0
    """Calls written as text that a tool's words had in them: the model repeats a document, and asks for nothing."""

    @property
    def is_cut_off(self) -> bool:
        """Whether it ended before the model had said what it wanted to: the last call may be half."""
        return not self.reason.is_whole


@dataclass(frozen=True)
class Completer:
    """Asks the model."""

    model: LanguageModel
    screen: Screen
    listener: Listener
    clock: Callable[[], float] = time.monotonic

    async def complete(self, request: Request, numbers: Collection[int], offered: Collection[str]) -> Completion:
        """Shows the text as it comes, and takes it back when calls follow. Raises ModelUnavailable or ModelRejected."""
        results = "\n".join(message.content for message in request.messages if message.role == "tool")
        reading = _Reading(self.screen, numbers, offered, results)
        async with aclosing(coalesced(self.model.complete(request), self.clock)) as deltas:
            async for delta in deltas:
                match delta:
                    case TextDelta(text):
                        await reading.add_text(text)
                    case ToolCallDelta():
                        await reading.add_call(delta)
                    case Retraction():
                        await reading.withdraw_text()
                    case Restart():
                        await self.listener.restarted(delta)
                        await reading.begin_anew()
                    case ReasoningDelta(text):
                        await self.listener.thought(text)
                    case Finish(reason):
                        return await reading.finished(reason)
                if reading.is_enough:
                    break
        return await reading.finished(FinishReason.INCOMPLETE)


@dataclass
class _Pieces:
    """A call as far as it has come."""

    call_id: str
    name: str
    signature: str
    is_written: bool
    arguments: str = ""

    def call(self) -> ToolCall:
        return ToolCall(self.call_id, self.name, self.arguments, self.signature)


class _Reading:
    """A completion so far."""

    def __init__(self, screen: Screen, numbers: Collection[int], offered: Collection[str], results: str) -> None:
        """`results` is the text of all results of tools so far."""
        self._results = results
        self._screen = screen
        self._numbers = set(numbers)
        self._offered = offered
        self._calls: dict[int, _Pieces] = {}
        self._new_text()

    def _new_text(self) -> None:
        self._filter = CallTextFilter(self._offered)
        self._writing = Writing(self._numbers, self._screen)

    @property
    def is_enough(self) -> bool:
        """Whether there is a reason to read no further."""
        arguments = sum(len(call.arguments) for call in self._calls.values())
        return self._writing.stopped is not None or arguments > _LONGEST_ARGUMENTS_CHARS

    async def add_text(self, text: str) -> None:
        if shown := self._filter.feed(text):
            await self._writing.add(shown)

    async def add_call(self, delta: ToolCallDelta) -> None:
        call = self._calls.get(delta.index)
        if call is None:
            if len(self._calls) >= _MOST_CALLS:
                return
            self._calls[delta.index] = call = _Pieces(delta.call_id, delta.name, delta.signature, delta.is_written)
            await self._screen.settle("")
        call.arguments += delta.arguments

    async def withdraw_text(self) -> None:
        self._new_text()
        await self._screen.settle("")

    async def begin_anew(self) -> None:
        self._calls.clear()
        await self.withdraw_text()

    async def finished(self, reason: FinishReason) -> Completion:
        if (stopped := self._writing.stopped) is not None:
            return Completion(stopped.text, (), stopped.reason, stopped.invented_citations)
        if rest := self._filter.finish():
            await self._writing.add(rest)
        written = self._writing.finished(reason)
        pieces = [each for _, each in sorted(self._calls.items())]
        quoted = [each for each in pieces if each.is_written and _is_quoted(each.name, each.arguments, self._results)]
        intended = [each for each in self._filter.calls if not _is_quoted(each.name, each.arguments, self._results)]
        calls = [each.call() for each in pieces if each not in quoted]
        calls += [ToolCall("", each.name, each.arguments) for each in intended]
        calls = calls[:_MOST_CALLS]
        await self._screen.settle("" if calls else written.text)
        dropped = len(quoted) + len(self._filter.calls) - len(intended)
        return Completion(written.text, tuple(calls), reason, written.invented_citations, dropped)


def _is_quoted(name: str, arguments: str, results: str) -> bool:
    """Whether the call stands in a result of a tool, however it is quoted there: name, and shortly behind it the arguments. A
    model that repeats a document must not do what the document wants."""
    arguments = _NOT_COMPARED.sub("", arguments)
    if arguments in ("", "{}"):
        return False
    written = f"{re.escape(name)}.{{0,{_NAME_TO_ARGUMENTS_CHARS}}}{re.escape(arguments)}"
    return re.search(written, _NOT_COMPARED.sub("", results), re.DOTALL) is not None
