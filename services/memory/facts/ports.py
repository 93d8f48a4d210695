"""What facts need from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.memory.facts.models import Fact, Profile, StoredFact
from services.memory.models import Owner


class FactStore(Protocol):
    """Facts and profiles by owner. Raises Unavailable when the store does not answer."""

    async def profile(self, owner: Owner) -> tuple[Profile, int]:
        """The profile, and the revision that `set_profile` compares: 0 where there is none."""
        ...

    async def set_profile(self, owner: Owner, profile: Profile, revision: int) -> int:
        """Stores the profile, and returns its new revision. Raises Aborted when it no longer has `revision`."""
        ...

    async def add(self, owner: Owner, fact: Fact) -> None:
        """Stores a new fact. Harmless when it is there, and nothing is stored under an id that was forgotten."""
        ...

    async def get(self, owner: Owner, fact_id: str) -> StoredFact | None: ...

    async def update(self, owner: Owner, fact: Fact, revision: int) -> None:
        """Raises Aborted when the fact no longer has `revision`, or is gone."""
        ...

    async def forget(self, owner: Owner, fact_id: str) -> None:
        """Removes the fact, and keeps the id from being used again for a day. Harmless when repeated."""
        ...

    async def facts(self, owner: Owner) -> list[Fact]:
        """All facts, in no particular order, without those that cannot be read."""
        ...

    async def is_learnt(self, owner: Owner, run_id: str) -> bool:
        """Whether `mark_learnt` was called for this turn."""
        ...

    async def mark_learnt(self, owner: Owner, run_id: str) -> None:
        """Remembers that the turn is done with. Harmless when repeated."""
        ...


@dataclass(frozen=True)
class MemoryItem:
    """A text on its way into the index. `group` is what it goes with: the thread of a message. By `context`, what was said before
    it, the text is found, too; nothing returns it."""

    item_id: str
    text: str
    source: str
    group: str = ""
    at: datetime | None = None
    context: str = ""


@dataclass(frozen=True)
class FoundItem:
    """An item that a search found. `score` is fused, 0 to 1; `cosine` is how near it is in meaning, where that is known."""

    item_id: str
    source: str
    text: str
    group: str
    score: float
    cosine: float | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class Found:
    """What a search found, and how many items of each source the index has of this owner."""

    items: Sequence[FoundItem]
    counts: dict[str, int]
    degraded: Sequence[tuple[str, str, str]] = ()
    """Part, reason and message of what the search had to do without."""


class MemoryIndex(Protocol):
    """The index of what is remembered, each owner's for themself. Raises Unavailable."""

    async def put(self, owner: Owner, items: Sequence[MemoryItem], *, known_only: bool = False) -> None:
        """Adds items, or puts them in the place of what has their ids. They are found when this returns. `known_only`: adds
        none."""
        ...

    async def remove(self, owner: Owner, item_ids: Sequence[str], groups: Sequence[str] = ()) -> None:
        """Removes items, and all of these groups. Harmless when repeated."""
        ...

    async def search(self, owner: Owner, query_text: str, limit: int, source: str = "") -> Found:
        """The items that fit best, by meaning and by words."""
        ...


@dataclass(frozen=True)
class FoundNote:
    """A passage of a note. `cosine`: how near it is in meaning, where that is known."""

    document_id: str
    name: str
    text: str
    cosine: float | None = None


class Notes(Protocol):
    """The notes of the caller in hand: documents of a collection of their own."""

    def collection_id(self) -> str:
        """Where the caller's notes lie."""
        ...

    async def search(self, query_text: str, limit: int) -> Sequence[FoundNote]:
        """The passages that fit best, by meaning and by words; none where there are no notes. Raises Unavailable."""
        ...


class Forgotten(Protocol):
    """Who else holds text of a fact."""

    async def fact(self, owner: Owner, fact_id: str, at: datetime) -> None:
        """Has the runs that were shown the fact erased, within a minute. Harmless when repeated. Raises Unavailable."""
        ...
