"""The calls of a completion as the planner gets them: the resolved tool, and arguments that follow its schema."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kit.llm import ToolCall
from services.orchestrator.log.events import EffectClass
from services.orchestrator.models import Tool
from services.orchestrator.toolloop.calls.planner import Requested
from services.orchestrator.toolloop.completion import Completion
from services.orchestrator.toolloop.written.arguments import UnreadableArguments, read_arguments

_PREFIXES = ("functions.", "function.", "tools.", "tool.", "default_api.")
"""What models put in front of the names of tools."""
_LONGEST_NAME = 64
_UNREADABLE = "unreadable"
_MAX_SHOWN_ARGUMENTS_CHARS = 4_000


@dataclass(frozen=True)
class ParsedCall:
    """`requested` is for the planner, `shown` for the model when it is asked again."""

    requested: Requested
    shown: ToolCall


class Offer:
    """The tools that a run may use, by name."""

    def __init__(self, tools: Sequence[Tool], withheld: Collection[str] = ()) -> None:
        self._by_name = {tool.name: tool for tool in tools}
        self._folded = {_folded(tool.name): tool for tool in tools}
        self._withheld = {_folded(name) for name in withheld}

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._by_name)

    def named(self, name: str) -> Tool | None:
        """The tool that a model means by this name: letter case, dashes and a namespace in front make no difference."""
        return self._by_name.get(name) or self._folded.get(_folded(name))

    def withholds(self, name: str) -> bool:
        return _folded(name) in self._withheld


def requested_calls(
    completion: Completion, offer: Offer, round_number: int, earlier_ids: Collection[str]
) -> Sequence[ParsedCall]:
    """The calls of a completion, in its order, with ids that no earlier call of the run has."""
    taken = set(earlier_ids)
    calls = []
    for index, call in enumerate(completion.calls):
        is_last = index == len(completion.calls) - 1
        requested = _requested(call, offer, is_cut_off=completion.is_cut_off and is_last)
        # Servers repeat ids, or send none. Nine letters and digits are what Mistral takes, which is the strictest.
        call_id = call.call_id if call.call_id and call.call_id not in taken else f"r{round_number:03d}c{index:04d}"
        taken.add(call_id)
        calls.append(ParsedCall(requested, _shown(call, requested, call_id)))
    return calls


def _requested(call: ToolCall, offer: Offer, *, is_cut_off: bool) -> Requested:
    tool = offer.named(call.name)
    if not call.name:
        problem = "This call cannot be read. Write it as JSON with `name` and `arguments`."
        return Requested(_UNREADABLE, None, problem=problem)
    if tool is None:
        return Requested(call.name, None, is_withheld=offer.withholds(call.name))
    # A repair guesses. Of a call that changes something nobody guesses, nor of one that may be half.
    may_repair = tool.effect is EffectClass.NONE and not is_cut_off
    try:
        return Requested(tool.name, tool, read_arguments(call.arguments, tool.parameters, may_repair=may_repair))
    except UnreadableArguments as error:
        hint = " The call was cut off: write shorter arguments." if is_cut_off else ""
        return Requested(tool.name, tool, problem=f"{error}{hint}")


def _shown(call: ToolCall, requested: Requested, call_id: str) -> ToolCall:
    """Servers put the arguments into their templates, and break when they are not JSON."""
    if requested.tool is not None and not requested.problem:
        arguments = json.dumps(requested.arguments, ensure_ascii=False)
    else:
        arguments = call.arguments if _is_object(call.arguments) else "{}"
    name = requested.name if requested.tool is not None else _written_name(requested.name)
    return ToolCall(call_id, name, arguments, call.signature)


def _written_name(name: str) -> str:
    """A name as servers take it back: letters, digits, dashes and underscores."""
    kept = "".join(
        each if each.isascii() and (each.isalnum() or each in "_-") else "_" for each in name[:_LONGEST_NAME]
    )
    return kept or _UNREADABLE


def _is_object(text: str) -> bool:
    if len(text) > _MAX_SHOWN_ARGUMENTS_CHARS:
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _folded(name: str) -> str:
    name = name.strip().casefold()
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.replace("-", "_")
