"""Learns from turns.

What a turn changes is decided once and recorded in its owner's profile, by compare-and-set. Then it is done, the turn is marked,
and the record is removed. A process that finds such a record finishes it first. So a kill between any two lines loses nothing and
doubles nothing, and two turns of one person never change the facts at the same time.

A fact that was forgotten leaves a mark under its id, and `FactStore.add` adds nothing there: what is finished late brings nothing
back.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from kit.errors import Aborted
from services.memory.facts.comparing import Nearness, plan_changes
from services.memory.facts.models import Fact, FactStatus, Plan, Profile, Statement, Turn
from services.memory.facts.ports import FactStore
from services.memory.models import Owner

CHANGED_RETRY_S = 0.005
FACTS_MAX = 2_000
"""Facts of one person that hold. Nothing is learnt beyond: a person who has so many is no person."""
_SUMMARY_AFTER = 3
"""So many changes of the facts make a summary that a model wrote outdated."""


@dataclass(frozen=True)
class Learnt:
    """What came of a turn."""

    added: Sequence[Fact] = ()
    superseded: Sequence[str] = ()
    known: Sequence[Fact] = ()
    """The facts that hold now."""
    profile: Profile = field(default_factory=Profile)

    @property
    def summary_is_due(self) -> bool:
        """Whether a model may write another summary."""
        behind = self.profile.version - self.profile.summary_version
        return bool(self.known) and behind >= (_SUMMARY_AFTER if self.profile.summary else 1)


class Learner:
    """Adds what turns say to what is known."""

    def __init__(self, store: FactStore, *, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now

    async def learn(self, owner: Owner, turn: Turn, statements: Sequence[Statement], nearness: Nearness) -> Learnt:
        """Learns from the turn, unless that was done or its owner does not want it. Raises Unavailable."""
        while True:
            profile, revision = await self.finished(owner)
            known = await self._store.facts(owner)
            if await self._store.is_learnt(owner, turn.run_id):
                return self._learnt(profile, known, turn)
            plan = plan_changes(turn, statements, known, nearness, self._now()) if profile.may_learn(turn) else None
            if plan is None or not (plan.added or plan.superseded) or self._is_full(known):
                await self._store.mark_learnt(owner, turn.run_id)
                return self._learnt(profile, known, turn)
            try:
                await self._store.set_profile(owner, replace(profile, pending=plan), revision)
            except Aborted:
                await asyncio.sleep(CHANGED_RETRY_S)

    async def finished(self, owner: Owner) -> tuple[Profile, int]:
        """The owner's profile, once what an earlier process had begun is done."""
        while True:
            profile, revision = await self._store.profile(owner)
            if profile.pending is None:
                return profile, revision
            await self._apply(owner, profile.pending)
            with suppress(Aborted):  # another process has finished it
                await self._store.set_profile(owner, profile.changed(), revision)

    async def _apply(self, owner: Owner, plan: Plan) -> None:
        for fact in plan.added:
            await self._store.add(owner, fact)
        for old, new in plan.superseded.items():
            await self._supersede(owner, old, new)
        await self._store.mark_learnt(owner, plan.run_id)

    async def _supersede(self, owner: Owner, old: str, new: str) -> None:
        while (stored := await self._store.get(owner, old)) is not None and not stored.fact.superseded_by:
            with suppress(Aborted):
                await self._store.update(owner, replace(stored.fact, superseded_by=new), stored.revision)

    def _is_full(self, known: Sequence[Fact]) -> bool:
        return len(known) >= FACTS_MAX

    def _learnt(self, profile: Profile, facts: Sequence[Fact], turn: Turn) -> Learnt:
        """As it is now, also when asked again."""
        now = self._now()
        added = [fact for fact in facts if fact.run_id == turn.run_id]
        mine = {fact.fact_id for fact in added}
        superseded = [fact.fact_id for fact in facts if fact.superseded_by in mine]
        known = [fact for fact in facts if fact.status(now) is FactStatus.ACTIVE]
        return Learnt(added, superseded, known, profile)
