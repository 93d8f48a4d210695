"""Tools besides the search. Those that the request names are called before the first round, and the passages that they find join
the evidence. Research calls only what changes nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kit.errors import GroundworkError
from services.orchestrator.answering.blocks import violation
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import EffectClass, Evidence, Thinking
from services.orchestrator.models import RunRequest, Tool, Turn
from services.orchestrator.ports import Tools
from services.orchestrator.research.models import (
    PlannedCall,
    PlannedSearch,
    Purpose,
    RankedPassages,
    ResearchPlan,
    RoundFound,
)
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.steps.retrying import effect_with_retry
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.calls.taint import Taint
from services.orchestrator.toolloop.evidence import NotedCall
from services.orchestrator.toolloop.task import Note

MOST_CALLS = 6
"""Calls of a run."""
_WORDS_ARGUMENTS = ("query", "queries", "question")
"""Arguments that take the words of a question: a tool that needs nothing else is called without a model."""
_SHOWN_CHARS = 200


class ResearchTools:
    """The tools of one run."""

    def __init__(self, tools: Tools, run: Run, request: RunRequest, note: Note) -> None:
        """`note` gets the sources of text that is about to be logged, and returns those that are forgotten."""
        self._tools = tools
        self._run = run
        self._request = request
        self._note = note

    async def offered(self) -> Sequence[Tool]:
        """The tools that the request names, as they were when the run began; none, said so, when the tools service does not
        answer."""
        names = self._request.tools.names if self._request.tools is not None else ()
        return await self._run.once("tools", self._named, list[Tool], show=_list_tools) if names else ()

    async def _named(self) -> list[Tool]:
        names = self._request.tools.names if self._request.tools is not None else ()
        try:
            known = await self._tools.offered()
        except GroundworkError as error:
            await self._run.say(degraded("tools", "tools", error, "Going on without tools."))
            return []
        return [replace(each, called_for_by=()) for each in known if each.is_named(names) and only_reads(each)]

    async def called(
        self, plan: ResearchPlan, offered: Sequence[Tool], most: int, taint: Taint
    ) -> tuple[RoundFound | None, Sequence[PlannedSearch]]:
        """What the planned calls found, and the calls as searches; None where nothing was called. At most `most` are made."""
        tools = {each.name: each for each in offered}
        allowed = [each for each in plan.calls if each.tool in tools and not self._carries_data(each, tools, taint)]
        calls = allowed[: min(most, MOST_CALLS)]
        if not calls:
            return None, ()
        outcomes = await self._run.all(
            *(self._outcome(f"tools/call{number}", tools[each.tool], each) for number, each in enumerate(calls, 1))
        )
        for call, outcome in zip(calls, outcomes, strict=True):
            if outcome.ok and not outcome.evidence:
                said = f"{call.tool} brought no passages, so the answer does not rest on it."
                await self._run.say(Thinking("tool", said))
        searches = [PlannedSearch(_shown(each), Purpose.TOOL) for each in calls]
        found = [
            (RankedPassages(search, tuple(_id_of(each) for each in outcome.evidence)), outcome.evidence)
            for search, outcome in zip(searches, outcomes, strict=True)
        ]
        passages = {_id_of(each): each for _, evidence in found for each in evidence}
        kept = tuple(replace(each, chunk_id=chunk_id, number=0) for chunk_id, each in passages.items())
        return RoundFound(tuple(ranked for ranked, _ in found), kept), searches

    def _carries_data(self, call: PlannedCall, tools: Mapping[str, Tool], taint: Taint) -> bool:
        """Whether the call could carry text of others to an address that a model made up: no person is asked here, so it is not
        made."""
        return tools[call.tool].outward and taint.may_carry_data(call.arguments)

    async def _outcome(self, key: str, tool: Tool, call: PlannedCall) -> ToolOutcome:
        """What came of a call. The arguments name collections and documents of the run alone: the tools service sees to it."""
        made = self._tools.call(tool, call.arguments, self._request.collection_ids, self._run.tell_progress)
        try:
            return await effect_with_retry(self._run, key, NotedCall(made, self._note))
        except BudgetSpent as error:
            if error.metadata["budget"] != "tool_calls":
                raise
            return ToolOutcome(False, summary=error.message, error_reason=error.reason)


def only_reads(tool: Tool) -> bool:
    """Whether research may call the tool: it changes nothing, and nobody has to allow it."""
    return tool.effect is EffectClass.NONE and not tool.needs_approval


def taint_of(question: str, history: Sequence[Turn], plan: ResearchPlan) -> Taint:
    """What the user wrote, and what others did, of the text that the plan is made from."""
    own = [question, *(turn.text for turn in history if turn.role == "user")]
    taint = Taint(own, [turn.text for turn in history if turn.role != "user"])
    taint.is_present |= plan.has_seen_names
    return taint


def calls_by_rules(question: str, tools: Sequence[Tool]) -> list[PlannedCall]:
    """A call of each tool that needs nothing but words, with the words of the question."""
    called = []
    for tool in tools:
        arguments = _arguments_of(question, tool.parameters)
        if arguments and not violation(arguments, tool.parameters):
            called.append(PlannedCall(tool.name, arguments))
    return called


def calls_schema(tools: Sequence[Tool]) -> Mapping[str, Any]:
    """JSON Schema of the calls that a plan may have."""
    return {
        "type": "array",
        "maxItems": MOST_CALLS,
        "items": {
            "type": "object",
            "properties": {"tool": {"enum": [each.name for each in tools]}, "arguments": {"type": "object"}},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        },
    }


def describe_tools(tools: Sequence[Tool]) -> str:
    """The tools as a planning model reads of them."""
    lines = [f"{each.name}: {each.description} Arguments: {json.dumps(each.parameters)}" for each in tools]
    return "\n".join(lines)


def usable_calls(planned: Sequence[Mapping[str, Any]], tools: Sequence[Tool]) -> list[PlannedCall]:
    """The calls of a model's plan whose arguments follow the schema of their tool, each once."""
    schemas = {each.name: each.parameters for each in tools}
    found: dict[str, PlannedCall] = {}
    for each in planned:
        call = PlannedCall(each["tool"], each["arguments"])
        if call.tool in schemas and not violation(call.arguments, schemas[call.tool]):
            found.setdefault(_shown(call), call)
    return list(found.values())


def _arguments_of(question: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", ())
    if len(required) != 1 or required[0] not in _WORDS_ARGUMENTS:
        return {}
    argument = schema.get("properties", {}).get(required[0], {})
    if argument.get("type") == "array":
        return {required[0]: [question[: argument.get("items", {}).get("maxLength", len(question))]]}
    return {required[0]: question[: argument.get("maxLength", len(question))]}


def _list_tools(tools: Sequence[Tool]) -> Thinking:
    names = ", ".join(each.name for each in tools)
    return Thinking("tools", f"Tools: {names}." if names else "No tools.")


def _shown(call: PlannedCall) -> str:
    return f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)}"[:_SHOWN_CHARS]


def _id_of(passage: Evidence) -> str:
    return passage.chunk_id or f"{passage.document_id}:{passage.char_start}"
