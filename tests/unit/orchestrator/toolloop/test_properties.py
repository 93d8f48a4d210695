"""What holds for every model and every set of tools: no duplicate without new evidence, no budget exceeded, nothing beside each
other that must not be, an answer always, and the same log after a death anywhere."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kit.errors import Unavailable
from kit.llm import Finish, FinishReason, ModelRejected, ModelUnavailable, TextDelta
from services.orchestrator.log.events import Budgets, EffectClass, Evidence, Thinking, ToolCall
from services.orchestrator.models import Tool
from services.orchestrator.steps.effects import Call, Fate, ToolOutcome
from services.orchestrator.toolloop.loop import NoFirstWord
from tests.unit.orchestrator.cutting import KEY, Cut, DyingLog, shown_by, worked
from tests.unit.orchestrator.toolloop.scripting import SCHEMA, USAGE, Scene, ScriptedReplies, call, calls, found, said
from tests.unit.orchestrator.toolloop.test_loop_cuts import only, said_in

TOOLS = (
    Tool("search", "", SCHEMA),
    Tool("calc", "", SCHEMA),
    Tool("rerank", "", SCHEMA, requires_fresh_input=True),
    Tool("store", "", SCHEMA, EffectClass.IDEMPOTENT, parallel_safe=False),
    Tool("pay", "", SCHEMA, EffectClass.ONCE, parallel_safe=False),
    Tool("broken", "", SCHEMA),
)
# A person is asked about nothing.
TOOLS = tuple(replace(tool, self_contained=True) for tool in TOOLS)
_TURNS = 20
"""Of the event loop that a call takes: the others of its batch have begun by then."""
ALONE = {"rerank", "store", "pay"}


@dataclass
class WatchedTools:
    """Tools that outlive a worker, and note which calls were under way at once."""

    made: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Tool and query by call id."""
    outcomes: dict[str, ToolOutcome] = field(default_factory=dict)
    overlaps: list[frozenset[str]] = field(default_factory=list)
    under_way: set[str] = field(default_factory=set)
    tools: Sequence[Tool] = TOOLS

    async def offered(self) -> Sequence[Tool]:
        return TOOLS

    def call(self, tool: Tool, arguments: Mapping[str, Any], *_: Any) -> Call:
        return _WatchedCall(self, tool.name, arguments, tool.effect)

    def outcome(self, name: str, query: str) -> ToolOutcome:
        if name == "broken":
            raise Unavailable("broken")
        if name in ("search", "rerank"):
            return found(Evidence(1, f"c-{query.strip().lower()}", "d", "n", f"Text about {query} and towers."))
        return ToolOutcome(True, {"sum": query.strip().lower() < "b"}, "Done.")


@dataclass(frozen=True)
class _WatchedCall:
    tools: WatchedTools
    name: str
    arguments: Mapping[str, Any]
    effect: EffectClass

    async def run(self, call_id: str) -> ToolOutcome:
        if call_id in self.tools.outcomes:
            return self.tools.outcomes[call_id]
        self.tools.made[call_id] = (self.name, self.arguments["query"])
        self.tools.under_way.add(call_id)
        self.tools.overlaps.append(frozenset(self.tools.under_way))
        try:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            self.tools.outcomes[call_id] = self.tools.outcome(self.name, self.arguments["query"])
        finally:
            self.tools.under_way.discard(call_id)
        return self.tools.outcomes[call_id]

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        return self.tools.outcomes.get(call_id, Fate.NEVER_BEGAN)


NAMES = st.sampled_from([*(tool.name for tool in TOOLS), "fly"])
QUERIES = st.sampled_from(["a", "A ", "b", "c"])
ARGUMENTS = QUERIES.map(lambda query: f'{{"query": "{query}"}}') | st.sampled_from(["", "{", "[]", '{"query": 1}'])
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=5).map(
    lambda pairs: calls(*(call(name, text, index) for index, (name, text) in enumerate(pairs)))
)
WRITTEN = st.tuples(NAMES, QUERIES).map(
    lambda pair: f'Look: <tool_call>{{"name": "{pair[0]}", "arguments": {{"query": "{pair[1]}"}}}}</tool_call>'
)
ENDINGS = st.sampled_from(
    [
        "It is so [1].",
        said(""),
        said("It was built. And th", FinishReason.LENGTH),
        [TextDelta("It"), ModelUnavailable("broke off")],
        ModelRejected("no"),
        [Finish(FinishReason.CONTENT_FILTER, USAGE)],
    ]
)
REPLIES = st.lists(CALLS | CALLS | WRITTEN | ENDINGS, min_size=1, max_size=5)
FORCED = st.lists(CALLS | WRITTEN | ENDINGS, min_size=1, max_size=2)
BUDGETS = st.builds(
    Budgets,
    steps=st.sampled_from([0, 1, 2, 3, 4, 6, 9]),
    tool_calls=st.sampled_from([0, 1, 2, 6]),
    parallel_calls=st.sampled_from([0, 1, 2, 3]),
    tokens=st.sampled_from([0, 150, 500]),
    reasoning_steps=st.sampled_from([0, 1, 2, 3, 5]),
)


async def ended(scene: Scene) -> bool:
    """Whether the run had an answer. It may have none only when the model failed before anything was called."""
    try:
        await scene.run()
    except NoFirstWord:
        return False
    return True


@given(REPLIES, FORCED, BUDGETS)
async def test_promises_hold_whatever_the_model_does(replies: Any, forced: Any, budgets: Budgets) -> None:
    tools = WatchedTools()
    model = ScriptedReplies(replies, forced)
    scene = Scene(model, tools, budgets)  # type: ignore[arg-type] # a port
    if await ended(scene):
        assert scene.result is not None
        assert scene.result.text.strip()
        assert scene.result.text == scene.shown
        assert "<tool_call>" not in scene.result.text
    else:
        assert not tools.made

    assert len(tools.made) <= (budgets.tool_calls or 10**6)
    assert sum(bool(request.tools) for request in model.requests) <= (budgets.reasoning_steps or 3)
    steps = {event.step for event in scene.log.events[KEY] if event.step not in ("", "fallback", "answer")}
    steps -= {step for step in steps if step.endswith("/evidence")}  # shown, not done
    assert len(steps) <= (budgets.steps or 10**6)
    assert max((len(each) for each in tools.overlaps), default=0) <= (budgets.parallel_calls or 3)
    for overlap in tools.overlaps:
        assert len(overlap) == 1 or not ALONE & {tools.made[call_id][0] for call_id in overlap}
    check_no_duplicate_without_evidence(tools)


def check_no_duplicate_without_evidence(tools: WatchedTools) -> None:
    """Told anew from what was called, without the planner's help."""
    rounds: dict[int, list[tuple[str, str, str]]] = {}
    for call_id, (name, query) in tools.made.items():
        if call_id.endswith("/again"):
            continue  # the loop's own second try of a call that found a service away
        place = re.search(r"/round(\d+)/call", call_id)
        assert place is not None
        is_read_only = name not in ("pay", "store")
        rounds.setdefault(int(place[1]), []).append((name, query.strip().lower() if is_read_only else query, call_id))
    last: dict[tuple[str, str], int] = {}
    seen: set[str] = set()
    newest = 0
    for number in sorted(rounds):
        assert len({each[:2] for each in rounds[number]}) == len(rounds[number]), "twice in one round"
        for name, query, _ in rounds[number]:
            before = last.get((name, query))
            assert before is None or before < newest, f"{name}({query}) again in round {number} without new evidence"
            assert before is None or name != "pay", "an effect is not caused twice"
        made = [each for *_, call_id in rounds[number] for each in (call_id, f"{call_id}/again")]
        facts = {fact for call_id in made for fact in facts_of(tools.outcomes.get(call_id))}
        if facts - seen:
            newest = number
        seen |= facts
        last.update({each[:2]: number for each in rounds[number]})


def facts_of(outcome: ToolOutcome | None) -> set[str]:
    if outcome is None:
        return set()
    return {source.chunk_id for source in outcome.evidence} or {repr(outcome.content)}


@given(REPLIES, FORCED, BUDGETS, st.floats(0, 1, exclude_max=True), st.booleans())
async def test_log_is_the_same_after_a_death_anywhere(
    replies: Any, forced: Any, budgets: Budgets, place: float, stored: Any
) -> None:
    budgets = replace(budgets, tokens=0)  # a completion that is asked for again is paid for again
    whole_tools, tools = WatchedTools(), WatchedTools()
    whole_scene = Scene(ScriptedReplies(replies, forced), whole_tools, budgets)  # type: ignore[arg-type] # a port
    again = Scene(ScriptedReplies(replies, forced), tools, budgets)  # type: ignore[arg-type] # a port
    whole = await events_of(whole_scene)
    log = DyingLog()
    await events_of(again, log, Cut(1 + int(place * len(whole)), bool(stored)))
    events = await events_of(again, log)
    assert said_in(events) == said_in(whole)
    assert shown_by(events) == shown_by(whole)
    assert sorted(tools.made) == sorted(whole_tools.made)
    assert len(only(events, ToolCall)) == len(tools.made)


async def events_of(scene: Scene, log: DyingLog | None = None, cut: Cut | None = None) -> Any:
    async def work(journal: Any) -> None:
        try:
            await scene.work(journal)
        except NoFirstWord as error:
            await journal.write(Thinking("end", error.reason))

    return await worked(log or DyingLog(), work, cut)
