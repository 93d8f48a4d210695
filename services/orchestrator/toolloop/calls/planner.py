"""The tool planner: decides what is done with the calls that a model requests in one round. It is pure, so its promises can be
proved: no duplicate without new evidence, no budget exceeded, nothing beside each other that must not be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from services.orchestrator.models import Tool
from services.orchestrator.toolloop.calls.fingerprint import fingerprint


class Drop(Enum):
    """Why a call is not made."""

    REPEATED = "repeated"
    """Made in an earlier round, and nothing new was found since."""
    TWICE = "twice"
    """Requested twice in this round."""
    DONE = "done"
    """Its effect was already caused in this run; an effect is not caused twice, whatever was found since."""
    DENIED = "denied"
    """A person was asked about it in this run and did not allow it."""
    OVER_BUDGET = "over_budget"
    UNKNOWN = "unknown"
    """There is no such tool."""
    WITHHELD = "withheld"
    """This run may not use it."""
    UNREADABLE = "unreadable"
    """Its arguments cannot be read, or do not follow the tool's schema."""


@dataclass(frozen=True)
class Requested:
    """A call as the model requests it. `tool` is None when none of that name is offered; `problem` says what is wrong with the
    arguments."""

    name: str
    tool: Tool | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    is_withheld: bool = False
    """Whether the tool exists, but not for this run."""


@dataclass(frozen=True)
class CallDecision:
    """What is done with the call at this position: made, or dropped for a reason."""

    fingerprint: str = ""
    dropped: Drop | None = None
    earlier_round: int = 0
    """Of the call that it repeats."""
    problem: str = ""


@dataclass(frozen=True)
class RoundPlan:
    """One decision for each requested call, and the positions of those that are made: batches one after the other, the calls of a
    batch beside each other."""

    decisions: Sequence[CallDecision] = ()
    batches: Sequence[Sequence[int]] = ()


@dataclass
class History:
    """What the planner knows of the rounds before. Evidence is counted by rounds: the calls of one round were all requested before
    any of them had answered."""

    made_in: dict[str, int] = field(default_factory=dict)
    """Round of the last call with each fingerprint."""
    caused: dict[str, int] = field(default_factory=dict)
    """Round in which each effect was, or may have been, caused."""
    newest_evidence: int = 0
    """Last round that brought something not seen before; 0 for none."""
    denied: dict[str, int] = field(default_factory=dict)
    """Round in which a person did not allow each call."""
    _seen: set[str] = field(default_factory=set)

    def note_call(self, number: int, print_: str, *, is_effect: bool = False) -> None:
        """A call was made in round `number`; `is_effect` when it caused one that is not to be caused again, or may have."""
        self.made_in[print_] = number
        if is_effect:
            self.caused[print_] = number

    def note_denial(self, number: int, print_: str) -> None:
        self.denied[print_] = number

    def note_findings(self, number: int, findings: Sequence[str]) -> None:
        """What the calls of round `number` brought: ids of chunks, and hashes of facts."""
        if not self._seen.issuperset(findings):
            self.newest_evidence = number
        self._seen.update(findings)


@dataclass(frozen=True)
class Allowance:
    """How many calls may be made in the round, and how many beside each other; None for no limit."""

    calls: int | None = None
    parallel: int | None = None


def plan(requested: Sequence[Requested], history: History, allowance: Allowance) -> RoundPlan:
    """What is done with the calls of one round, in the order in which the model requested them."""
    decisions: list[CallDecision] = []
    taken: set[str] = set()
    for call in requested:
        decision = _decision(call, history, taken)
        if decision.dropped is None and allowance.calls is not None and len(taken) >= allowance.calls:
            decision = CallDecision(decision.fingerprint, Drop.OVER_BUDGET)
        if decision.dropped is None:
            taken.add(decision.fingerprint)
        decisions.append(decision)
    kept = [(index, call.tool) for index, call in enumerate(requested) if decisions[index].dropped is None]
    return RoundPlan(tuple(decisions), _batches([(index, tool) for index, tool in kept if tool], allowance.parallel))


def _decision(call: Requested, history: History, taken: set[str]) -> CallDecision:
    if call.problem:
        return CallDecision(dropped=Drop.UNREADABLE, problem=call.problem)
    if call.tool is None:
        return CallDecision(dropped=Drop.WITHHELD if call.is_withheld else Drop.UNKNOWN)
    print_ = fingerprint(call.tool, call.arguments)
    made_in = history.made_in.get(print_, 0)
    if print_ in taken:
        return CallDecision(print_, Drop.TWICE)
    for dropped, rounds in ((Drop.DONE, history.caused), (Drop.DENIED, history.denied)):
        if print_ in rounds:
            return CallDecision(print_, dropped, rounds[print_])
    is_repetition = made_in > 0 and history.newest_evidence <= made_in
    return CallDecision(print_, Drop.REPEATED, made_in) if is_repetition else CallDecision(print_)


def _batches(calls: Sequence[tuple[int, Tool]], parallel: int | None) -> tuple[tuple[int, ...], ...]:
    """Neighbours that may run beside each other share a batch; the order of the model's requests is kept."""
    batches: list[list[int]] = []
    is_open = False
    for index, tool in calls:
        joins = may_run_beside(tool)
        if joins and is_open and (parallel is None or len(batches[-1]) < parallel):
            batches[-1].append(index)
        else:
            batches.append([index])
        is_open = joins
    return tuple(map(tuple, batches))


def may_run_beside(tool: Tool) -> bool:
    """Whether calls of the tool may run beside others. One that needs a person's decision waits alone."""
    return tool.parallel_safe and not tool.requires_fresh_input and not tool.needs_approval
