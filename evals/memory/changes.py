"""What each message of a person changes in what is known of them: with a model that answers rightly, and by the rules without one.

A message that says what is known already, "as I said, I live in Leeds", is answered by a right model as new: the memory service has
to see that it is not. A day after the last plan no plan holds any more.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from services.memory.facts.comparing import plan_changes
from services.memory.facts.models import Fact, FactKind, FactStatus, Statement, Turn
from services.memory.facts.statements import read_statements
from services.memory.facts.turns import carried_by
from services.orchestrator.remembering.learning import read_changes
from services.orchestrator.remembering.models import KnownFact

_SET = Path(__file__).parents[2] / "tests" / "data" / "memory" / "changes.json"
_AT = datetime(2026, 11, 27, 9, tzinfo=UTC)


class Said(NamedTuple):
    """A message and what is right to make of it."""

    message: str
    change: str
    """`add`, `update`, `supersede` or `nothing`."""
    text: str
    """Of the fact."""
    kind: str
    replaced: str
    """The text of the fact that it takes the place of."""
    until: str
    """The day from which it does not hold any more."""


class Outcome(NamedTuple):
    """Of the messages of one language."""

    messages: int
    right: int
    """With a model that answers rightly."""
    plans_over: int
    """Plans that hold after their day."""
    statements: int
    """Messages that change something, or say again what is known."""
    read: int
    """Of those, what the rules read."""
    wrongly_read: int
    """Of the others."""


def measured() -> dict[str, Outcome]:
    """By language."""
    texts = json.loads(_SET.read_text("utf-8"))
    return {language: _measured([Said(*each) for each in said]) for language, said in texts.items()}


def render_changes() -> str:
    """A table by language."""
    lines = [
        "| changes | messages | right with a model | plans after their day | read without a model | facts from the rest |",
        "|---|---|---|---|---|---|",
    ]
    found = measured()
    totals = Outcome(*(sum(each) for each in zip(*found.values(), strict=True)))
    for name, each in [*found.items(), ("all", totals)]:
        read = f"{each.read} of {each.statements} ({each.read / each.statements:.2f})"
        lines.append(
            f"| {name} | {each.messages} | {each.right / each.messages:.2f} | {each.plans_over} | {read} | {each.wrongly_read} |"
        )
    return "\n".join(lines) + "\n"


def _measured(said: Sequence[Said]) -> Outcome:
    known: list[Fact] = []
    right = 0
    for number, each in enumerate(said):
        at = _AT + timedelta(minutes=number)
        before = _texts(known, at)
        known = _learnt(known, each, at, number)
        after = _texts(known, at)
        wanted = (before - {each.replaced}) | ({each.text} if each.text else set())
        right += after == wanted
    late = datetime(2027, 3, 1, tzinfo=UTC)
    plans_over = sum(fact.kind is FactKind.PLAN and fact.status(late) is FactStatus.ACTIVE for fact in known)
    read = {each: bool(read_statements(each.message, _AT)) for each in said}
    states = [each for each in said if each.change != "nothing"]
    return Outcome(
        len(said),
        right,
        plans_over,
        len(states),
        sum(read[each] for each in states),
        sum(read[each] for each in said if each.change == "nothing"),
    )


def _learnt(known: list[Fact], said: Said, at: datetime, number: int) -> list[Fact]:
    """What is known after the message, as services learn it from what a right model writes."""
    shown = [KnownFact(each.fact_id, each.text, each.kind) for each in known if each.status(at) is FactStatus.ACTIVE]
    place = next((place for place, each in enumerate(shown, start=1) if each.text == said.replaced), 0)
    fact = {
        "said": said.message,
        "text": said.text,
        "kind": said.kind,
        "change": said.change,
        "fact": place,
        "until": said.until,
    }
    statements = [
        Statement(each.text, FactKind(each.kind), each.said, valid_to=each.valid_to, replaces=each.fact_id)
        for each in read_changes(json.dumps({"facts": [fact]}), shown)
    ]
    turn = Turn(f"run{number}", "", said.message, at)
    plan = plan_changes(turn, carried_by(said.message, statements), known, {}, at)
    kept = [replace(each, superseded_by=plan.superseded.get(each.fact_id, each.superseded_by)) for each in known]
    return [*kept, *plan.added]


def _texts(known: Sequence[Fact], at: datetime) -> set[str]:
    return {each.text for each in known if each.status(at) is FactStatus.ACTIVE}
