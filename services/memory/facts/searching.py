"""Looks up what is remembered: by meaning and by words in the index, and where that does not answer by words alone in the facts
themselves. Notes are looked up beside it, where documents are."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import zip_longest

from kit.errors import GroundworkError
from kit.language.terms import tokens
from services.memory.errors import BadQuery
from services.memory.facts.facts import FACT, Facts, Overview
from services.memory.facts.indexing import index_current
from services.memory.facts.models import Fact, FactKind
from services.memory.facts.notes import NoteSearch
from services.memory.facts.ports import Found, FoundItem, FoundNote, MemoryIndex
from services.memory.message_items import MESSAGE
from services.memory.models import Owner

QUERY_CHARACTERS_MAX = 2_000
TOP_K_DEFAULT, TOP_K_MAX = 10, 50
HINTS_DEFAULT = 3
NOTE = "note"
"""The source of passages of notes."""
_NOTE_CHARACTERS = 1_000
"""Of a passage of a note: a chunk of a document may have more."""
_LEAST_HINT_COSINE = 0.3
"""Below it a fact or a note has nothing to do with the message, unless it shares a word with it."""
Degraded = tuple[str, str, str]


@dataclass(frozen=True)
class Hit:
    """Something that is remembered: a fact, a message of a thread, or a passage of a note."""

    source: str
    text: str
    score: float
    at: datetime | None = None
    fact: Fact | None = None
    thread_id: str = ""
    message_id: str = ""
    document_id: str = ""
    """The document of a note."""
    document_name: str = ""


@dataclass(frozen=True)
class Recalled:
    """What an answer may go by."""

    overview: Overview
    hints: Sequence[Hit]
    degraded: Sequence[Degraded] = ()


class MemorySearch:
    """Searches what is remembered of the caller."""

    def __init__(self, facts: Facts, index: MemoryIndex, notes: NoteSearch) -> None:
        self._facts = facts
        self._index = index
        self._notes = notes

    @property
    def notes_collection_id(self) -> str:
        """Where notes of the caller in hand lie."""
        return self._notes.collection_id

    async def search(
        self, owner: Owner, query_text: str, limit: int, source: str = ""
    ) -> tuple[list[Hit], list[Degraded]]:
        """What fits the query best. Raises BadQuery."""
        if not 0 < len(query_text.strip()) <= QUERY_CHARACTERS_MAX:
            raise BadQuery(
                f"a search has 1 to {QUERY_CHARACTERS_MAX} characters; this one has {len(query_text.strip())}"
            )
        if not self._facts.enabled:
            return [], []
        limit = min(limit or TOP_K_DEFAULT, TOP_K_MAX)
        (hits, degraded), (notes, lacking) = await asyncio.gather(
            self._facts_and_messages(owner, query_text, limit, source),
            self._notes.found(query_text, limit if source in ("", NOTE) else 0),
        )
        return _in_turn(hits, [_note(each) for each in notes])[:limit], degraded + lacking

    async def _facts_and_messages(
        self, owner: Owner, query_text: str, limit: int, source: str
    ) -> tuple[list[Hit], list[Degraded]]:
        if source == NOTE:
            return [], []
        listed, answer = await asyncio.gather(
            self._facts.listed(owner), self._index_answer(owner, query_text, limit, source)
        )
        facts = {fact.fact_id: fact for fact in listed}
        found, degraded = await self._found(owner, query_text, limit, source, listed, answer)
        return [hit for item in found if (hit := _hit(item, facts)) is not None], degraded

    async def recall(self, owner: Owner, message: str, limit: int) -> Recalled:
        """The summary, and the facts and notes that have to do with a message."""
        query, limit = message.strip()[:QUERY_CHARACTERS_MAX], limit or HINTS_DEFAULT
        recalled, (notes, lacking) = await asyncio.gather(
            self._recalled_facts(owner, query, limit), self._notes.found(query, limit if self._facts.enabled else 0)
        )
        near = [_note(each) for each in notes if _is_near(each, query)]
        hints = _in_turn(recalled.hints, near)[:limit]
        return Recalled(recalled.overview, hints, [*recalled.degraded, *lacking])

    async def _recalled_facts(self, owner: Owner, query: str, limit: int) -> Recalled:
        found: Sequence[FoundItem] = ()
        degraded: list[Degraded] = []
        if not query or not self._facts.enabled:
            overview, listed = await self._facts.known(owner)
        else:
            (overview, listed), answer = await asyncio.gather(
                self._facts.known(owner), self._index_answer(owner, query, limit, FACT)
            )
            if listed:
                found, degraded = await self._found(owner, query, limit, FACT, listed, answer)
        facts = {fact.fact_id: fact for fact in listed}
        hits = [hit for item in found if _is_near(item, query) and (hit := _hit(item, facts)) is not None]
        wishes = [
            Hit(FACT, fact.text, 1.0, fact.learnt_at, fact)
            for fact in facts.values()
            if fact.kind is FactKind.INSTRUCTION and fact.fact_id not in {hit.fact.fact_id for hit in hits if hit.fact}
        ]
        return Recalled(overview, [*hits, *wishes][:limit], degraded)

    async def _index_answer(self, owner: Owner, query_text: str, limit: int, source: str) -> Found | GroundworkError:
        """What the index finds, or why it does not answer: it is asked while the facts are read."""
        try:
            return await self._index.search(owner, query_text, limit, source)
        except GroundworkError as error:
            return error

    async def _found(
        self,
        owner: Owner,
        query_text: str,
        limit: int,
        source: str,
        facts: Sequence[Fact],
        answer: Found | GroundworkError,
    ) -> tuple[Sequence[FoundItem], list[Degraded]]:
        """From the index, which is filled again first where it has lost facts."""
        try:
            if isinstance(answer, GroundworkError):
                raise answer
            found = answer
            if source != MESSAGE and found.counts.get(FACT, 0) < len(facts):
                await index_current(
                    self._index, owner, partial(self._facts.items, owner, {fact.fact_id for fact in facts})
                )
                found = await self._index.search(owner, query_text, limit, source)
        except GroundworkError as error:
            note = (
                "memory",
                error.reason,
                "The index of memories does not answer: facts were looked up by words alone.",
            )
            items = by_words(query_text, facts) if source != MESSAGE else []
            return items[:limit], [note]
        return found.items, list(found.degraded)


def by_words(query_text: str, facts: Sequence[Fact]) -> list[FoundItem]:
    """Facts that hold the text, or share words with it, best first."""
    wanted, folded = _stems(query_text), " ".join(query_text.casefold().split())
    scored = []
    for fact in facts:
        has = _stems(fact.text)
        score = 1.0 if folded in fact.text.casefold() else len(wanted & has) / max(1, len(wanted))
        if score > 0:
            scored.append(FoundItem(fact.fact_id, FACT, fact.text, fact.thread_id, score))
    return sorted(scored, key=lambda item: -item.score)


def _in_turn(first: Sequence[Hit], second: Sequence[Hit]) -> list[Hit]:
    """Two rankings whose scores cannot be compared as one: the best of each, then the second best."""
    return [hit for pair in zip_longest(first, second) for hit in pair if hit is not None]


def _note(note: FoundNote) -> Hit:
    text = " ".join(note.text.split())[:_NOTE_CHARACTERS]
    return Hit(NOTE, text, note.cosine or 0.0, document_id=note.document_id, document_name=note.name)


def _is_near(item: FoundItem | FoundNote, query: str) -> bool:
    return (item.cosine or 0.0) >= _LEAST_HINT_COSINE or bool(_stems(item.text) & _stems(query))


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if not token.is_stopword)


def _hit(item: FoundItem, facts: dict[str, Fact]) -> Hit | None:
    """None for a fact that does not hold any more: the index may be behind."""
    if item.source == FACT:
        fact = facts.get(item.item_id)
        return Hit(FACT, fact.text, item.score, fact.learnt_at, fact) if fact else None
    _, _, message_id = item.item_id.partition("/")
    return Hit(item.source, item.text, item.score, item.at, thread_id=item.group, message_id=message_id)
