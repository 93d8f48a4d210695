"""What people may do with what is known of them: see it, change it, forget it, have nothing more learnt."""

import asyncio
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from kit.errors import Aborted
from services.memory.errors import BadFact, FactNotFound, MemoryOff
from services.memory.facts.indexing import index_current
from services.memory.facts.learning import Learner
from services.memory.facts.models import OWNER, Fact, FactKind, FactStatus, Profile
from services.memory.facts.ports import FactStore, Forgotten, MemoryIndex, MemoryItem
from services.memory.facts.summary import list_newest, within_bound
from services.memory.models import Owner

TEXT_CHARACTERS_MAX = 500
FACT = "fact"
"""The source of facts in the index."""
_THREADS_REMEMBERED = timedelta(days=2)
"""For so long nothing is learnt from what was said in a thread before its facts were forgotten: longer than any turn waits."""


@dataclass(frozen=True)
class Change:
    """What its owner changes of a fact; None stays."""

    text: str | None = None
    kind: FactKind | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True)
class Overview:
    """What is known in short."""

    summary: str
    summary_by: str
    paused: bool
    fact_count: int


class Facts:
    """The use cases. The owner of every call is the caller; another's fact is not found."""

    def __init__(
        self,
        store: FactStore,
        learner: Learner,
        index: MemoryIndex,
        forgotten: Forgotten,
        *,
        now: Callable[[], datetime],
        enabled: bool = True,
    ) -> None:
        self._store = store
        self._learner = learner
        self._index = index
        self._forgotten = forgotten
        self.now = now
        self.enabled = enabled

    async def overview(self, owner: Owner) -> Overview:
        """The summary, which without a model lists the newest facts, and whether anything is learnt."""
        return (await self.known(owner))[0]

    async def known(self, owner: Owner) -> tuple[Overview, list[Fact]]:
        """The overview, and the facts that hold now, newest first."""
        if not self.enabled:
            return Overview("", "", paused=True, fact_count=0), []
        (profile, _), active = await asyncio.gather(self._store.profile(owner), self.listed(owner))
        if profile.summary and active:
            return Overview(profile.summary, "model", profile.paused, len(active)), active
        return Overview(list_newest(active), "rules" if active else "", profile.paused, len(active)), active

    async def pause(self, owner: Owner, *, paused: bool) -> None:
        """Has nothing learnt from now on, or learns again."""
        await self._change_profile(owner, lambda profile: replace(profile, paused=paused))

    async def listed(
        self, owner: Owner, *, kind: FactKind | None = None, with_past: bool = False, thread_id: str = ""
    ) -> list[Fact]:
        """Newest first."""
        now = self.now()
        facts = await self._store.facts(owner) if self.enabled else []
        return sorted(
            (
                fact
                for fact in facts
                if (with_past or fact.status(now) is FactStatus.ACTIVE)
                and (kind is None or fact.kind is kind)
                and (not thread_id or fact.thread_id == thread_id)
            ),
            key=lambda fact: (fact.learnt_at, fact.fact_id),
            reverse=True,
        )

    async def items(self, owner: Owner, fact_ids: Set[str]) -> list[MemoryItem]:
        """What the index has of those facts among these that hold now."""
        return [item_of(fact) for fact in await self.listed(owner) if fact.fact_id in fact_ids]

    async def history(self, owner: Owner, fact_id: str) -> tuple[Fact, list[Fact]]:
        """A fact, and what it took the place of, newest first. Raises FactNotFound."""
        facts = {fact.fact_id: fact for fact in await self._store.facts(owner)}
        if fact_id not in facts:
            raise _not_found(fact_id)
        return facts[fact_id], _earlier(facts[fact_id], list(facts.values()))

    async def edit(self, owner: Owner, fact_id: str, change: Change) -> Fact:
        """Changes a fact: what its owner writes is sure. Raises FactNotFound, BadFact, MemoryOff."""
        self._require_enabled()
        text = None if change.text is None else _checked(change.text)
        while (stored := await self._store.get(owner, fact_id)) is not None:
            fact = replace(
                stored.fact,
                text=text or stored.fact.text,
                kind=change.kind or stored.fact.kind,
                valid_to=change.valid_to or stored.fact.valid_to,
                confidence=1.0,
                learnt_by=OWNER,
                edited_at=self.now(),
            )
            if text is not None:  # the rules' reading of the old words says nothing of the new
                fact = replace(fact, slot="", answer="", said="")
            with suppress(Aborted):
                await self._store.update(owner, fact, stored.revision)
                await self._change_profile(owner, Profile.without_summary)
                await index_current(self._index, owner, partial(self.items, owner, {fact_id}))
                return fact
        raise _not_found(fact_id)

    async def forget(self, owner: Owner, fact_ids: Sequence[str]) -> int:
        """Forgets facts with what they took the place of. Returns how many there were. Harmless when repeated."""
        await self._learner.finished(owner)  # what is about to be added would be missed
        facts = await self._store.facts(owner)
        chosen = {fact.fact_id: fact for fact in facts if fact.fact_id in set(fact_ids)}
        for fact in list(chosen.values()):
            chosen |= {each.fact_id: each for each in _earlier(fact, facts)}
        return await self._erase(owner, list(chosen), Profile.without_summary)

    async def forget_thread(self, owner: Owner, thread_id: str) -> int:
        """Forgets what was learnt in a thread, and learns nothing more from what was said there so far."""
        now = self.now()

        def noted(profile: Profile) -> Profile:
            recent = {key: at for key, at in profile.forgotten_threads.items() if now - at < _THREADS_REMEMBERED} | {
                thread_id: now
            }
            return replace(profile.without_summary(), forgotten_threads=recent)

        await self._change_profile(owner, noted)
        facts = await self._store.facts(owner)
        ids = [fact.fact_id for fact in facts if fact.thread_id == thread_id]
        for fact in [fact for fact in facts if fact.thread_id == thread_id]:
            ids += [each.fact_id for each in _earlier(fact, facts)]
        return await self._erase(owner, list(dict.fromkeys(ids)), noted)

    async def forget_all(self, owner: Owner) -> int:
        """Forgets everything, and learns nothing more from what was said so far."""
        now = self.now()

        def emptied(profile: Profile) -> Profile:
            return Profile(paused=profile.paused, version=profile.version + 1, forgotten_at=now)

        await self._change_profile(owner, emptied)
        return await self._erase(owner, [fact.fact_id for fact in await self._store.facts(owner)], emptied)

    async def keep_summary(self, owner: Owner, summary: str, known_version: int) -> None:
        """Keeps what a model has written of the facts as they were then; drops it when something was changed since."""

        def kept(profile: Profile) -> Profile:
            if profile.version != known_version or not self.enabled:
                return profile
            return replace(profile, summary=within_bound(summary), summary_version=known_version)

        await self._change_profile(owner, kept)

    async def _erase(self, owner: Owner, fact_ids: Sequence[str], change: Callable[[Profile], Profile]) -> int:
        """Copies go first: while the fact is there, who was broken off may begin again."""
        if fact_ids:
            await self._index.remove(owner, fact_ids)
        now = self.now()
        for fact_id in fact_ids:
            await self._forgotten.fact(owner, fact_id, now)
            await self._store.forget(owner, fact_id)
        await self._change_profile(owner, change)
        return len(fact_ids)

    async def _change_profile(self, owner: Owner, change: Callable[[Profile], Profile]) -> None:
        while True:
            profile, revision = await self._learner.finished(owner)
            with suppress(Aborted):
                if (changed := change(profile)) != profile:
                    await self._store.set_profile(owner, changed, revision)
                return

    def _require_enabled(self) -> None:
        if not self.enabled:
            raise MemoryOff("memory is switched off here: nothing is learnt, and nothing that was learnt is used")


def item_of(fact: Fact) -> MemoryItem:
    """The fact as the index has it."""
    return MemoryItem(fact.fact_id, fact.text, FACT, at=fact.learnt_at)


def _earlier(fact: Fact, facts: Sequence[Fact]) -> list[Fact]:
    """What it took the place of, and what that did, newest first."""
    found: list[Fact] = []
    wanted = {fact.fact_id}
    while wanted:
        before = [each for each in facts if each.superseded_by in wanted and each not in found]
        found += before
        wanted = {each.fact_id for each in before}
    return sorted(found, key=lambda each: each.learnt_at, reverse=True)


def _checked(text: str) -> str:
    words = " ".join(text.split())
    if not 0 < len(words) <= TEXT_CHARACTERS_MAX:
        raise BadFact(f"a fact has 1 to {TEXT_CHARACTERS_MAX} characters; this one has {len(words)}")
    return words


def _not_found(fact_id: str) -> FactNotFound:
    return FactNotFound(f"there is no fact {fact_id!r:.80}; list the facts")
