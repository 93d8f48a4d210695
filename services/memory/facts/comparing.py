"""Compares a statement with what is known: it is new, says what is known already, or takes a fact's place.

A slot has one answer, so another answer to it contradicts the first. Facts without a slot are the same when they mean the same.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from services.memory.facts.models import Fact, FactStatus, Plan, Statement, Turn
from services.memory.facts.statements import normalised

SAME_MEANING = 0.93
"""Cosine from which two facts say the same."""

Nearness = Mapping[tuple[int, str], float]
"""The cosine of a statement, by its place, and a known fact, by id, as far as it is known."""


def plan_changes(
    turn: Turn, statements: Sequence[Statement], known: Sequence[Fact], nearness: Nearness, now: datetime
) -> Plan:
    """What the turn changes."""
    active = {fact.fact_id: fact for fact in known if fact.status(now) is FactStatus.ACTIVE}
    added: dict[str, Fact] = {}
    superseded: dict[str, str] = {}
    for place, statement in enumerate(statements):
        if statement.valid_to is not None and statement.valid_to <= now:
            continue
        fact = _fact(turn, place, statement)
        named = active.get(statement.replaces)
        rivals = [named] if named else [each for each in active.values() if _rivals(fact, each)]
        near = {each.fact_id: nearness.get((place, each.fact_id), 0.0) for each in active.values()}
        if _is_known(fact, [named] if named else active.values(), near):
            continue
        added[fact.fact_id] = active[fact.fact_id] = fact
        for rival in rivals:
            superseded[rival.fact_id] = fact.fact_id
            del active[rival.fact_id]
    facts = [replace(fact, superseded_by=superseded.get(fact_id, "")) for fact_id, fact in added.items()]
    return Plan(turn.run_id, facts, {old: new for old, new in superseded.items() if old not in added})


def fact_id_of(run_id: str, place: int) -> str:
    """The same for the same statement of the same turn, whichever process learns it."""
    return hashlib.sha256(f"{run_id}\0{place}".encode()).hexdigest()[:32]


def _fact(turn: Turn, place: int, statement: Statement) -> Fact:
    return Fact(
        fact_id_of(turn.run_id, place),
        statement.text,
        statement.kind,
        learnt_at=turn.at,
        valid_from=turn.at,
        valid_to=statement.valid_to,
        confidence=statement.confidence,
        run_id=turn.run_id,
        thread_id=turn.thread_id,
        said=statement.said,
        slot=statement.slot,
        answer=statement.answer,
        learnt_by=statement.learnt_by,
    )


def _rivals(fact: Fact, other: Fact) -> bool:
    return bool(fact.slot) and fact.slot == other.slot and fact.answer != other.answer


def _is_known(fact: Fact, known: Iterable[Fact], near: Mapping[str, float]) -> bool:
    return any(_is_same(fact, other, near[other.fact_id]) for other in known)


def _is_same(fact: Fact, other: Fact, cosine: float) -> bool:
    if normalised(fact.text) == normalised(other.text):
        return True
    if fact.slot and other.slot:
        return (fact.slot, fact.answer) == (other.slot, other.answer)
    return cosine >= SAME_MEANING and fact.kind is other.kind
