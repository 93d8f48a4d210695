"""A ThreadStore in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime

from kit.errors import Aborted, AlreadyExists, Unavailable
from services.memory.facts.models import Fact, Profile, StoredFact
from services.memory.facts.ports import Found, FoundItem, FoundNote, MemoryItem
from services.memory.models import Deletion, Message, Owner, StoredThread, Thread


class MemoryThreadStore:
    """Keeps the promises of the port, gives other tasks a turn at each call, and dies where a test says so."""

    def __init__(self) -> None:
        self.heads: dict[tuple[Owner, str], StoredThread] = {}
        self.messages: dict[tuple[Owner, str], dict[int, Message]] = {}
        self.marks: dict[tuple[Owner, str], set[str]] = {}
        self.dies_in: str | None = None
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        """What happens before the next call of an operation, as if another process did it."""
        self._revision = 0

    async def create_head(self, owner: Owner, thread: Thread) -> None:
        await self._turn("create_head")
        if (owner, thread.thread_id) in self.heads:
            raise AlreadyExists("taken")
        self._put(owner, thread)

    async def get_head(self, owner: Owner, thread_id: str) -> StoredThread | None:
        await self._turn("get_head")
        return self.heads.get((owner, thread_id))

    async def update_head(self, owner: Owner, thread: Thread, revision: int) -> None:
        await self._turn("update_head")
        stored = self.heads.get((owner, thread.thread_id))
        if stored is None or stored.revision != revision:
            raise Aborted("changed")
        self._put(owner, thread)

    async def delete_head(self, owner: Owner, thread_id: str) -> None:
        await self._turn("delete_head")
        self.heads.pop((owner, thread_id), None)

    async def list_heads(self, owner: Owner) -> AsyncIterator[Thread]:
        await self._turn("list_heads")
        for (other, _), stored in list(self.heads.items()):
            if other == owner:
                yield stored.thread

    async def take_position(self, owner: Owner, thread_id: str, position: int, message: Message) -> Message | None:
        await self._turn("take_position")
        taken = self.messages.setdefault((owner, thread_id), {})
        if position in taken:
            return taken[position]
        taken[position] = message
        return None

    async def is_marked(self, owner: Owner, thread_id: str, message_id: str) -> bool:
        await self._turn("is_marked")
        return message_id in self.marks.get((owner, thread_id), ())

    async def mark(self, owner: Owner, thread_id: str, message_id: str) -> None:
        await self._turn("mark")
        self.marks.setdefault((owner, thread_id), set()).add(message_id)

    async def read(self, owner: Owner, thread_id: str, first: int, last: int) -> list[Message]:
        await self._turn("read")
        taken = self.messages.get((owner, thread_id), {})
        return [taken[position] for position in range(first, last + 1) if position in taken]

    async def rewrite(self, owner: Owner, thread_id: str, change: Callable[[Message], Message]) -> None:
        await self._turn("rewrite")
        taken = self.messages.get((owner, thread_id), {})
        for position, message in taken.items():
            taken[position] = change(message)

    async def purge_messages(self, owner: Owner, thread_id: str) -> None:
        await self._turn("purge_messages")
        self.messages.pop((owner, thread_id), None)
        self.marks.pop((owner, thread_id), None)

    def _put(self, owner: Owner, thread: Thread) -> None:
        self._revision += 1
        self.heads[(owner, thread.thread_id)] = StoredThread(thread, self._revision)

    async def _turn(self, operation: str) -> None:
        await asyncio.sleep(0)
        if operation in self.before:
            await self.before.pop(operation)()
        if self.dies_in == operation:
            self.dies_in = None
            raise ConnectionError(f"killed before {operation}")


class FakeDeletions:
    """Deletions in memory: `finish` works on them as the queue's consumer does."""

    def __init__(self) -> None:
        self.queued: list[Deletion] = []
        self.runs_forgotten: list[Deletion] = []
        self.dies = False

    async def queue(self, deletion: Deletion) -> None:
        self.queued.append(deletion)

    async def forget_runs(self, deletion: Deletion) -> None:
        if self.dies:
            self.dies = False
            raise ConnectionError("killed before forget_runs")
        self.runs_forgotten.append(deletion)


class FakeIndex:
    """The index of memories in memory: what is there, by owner and id. A search finds what shares a word, the nearest first."""

    def __init__(self) -> None:
        self.items: dict[tuple[Owner, str], MemoryItem] = {}
        self.is_down = False
        self.before_put: Callable[[], Awaitable[None]] | None = None
        """What happens before the next items are put, as if another process did it."""

    async def put(self, owner: Owner, items: Sequence[MemoryItem], *, known_only: bool = False) -> None:
        self._check()
        before, self.before_put = self.before_put, None
        if before is not None:
            await before()
        keys = {(owner, item.item_id): item for item in items}
        self.items |= {key: item for key, item in keys.items() if key in self.items or not known_only}

    async def remove(self, owner: Owner, item_ids: Sequence[str], groups: Sequence[str] = ()) -> None:
        self._check()
        for key, item in list(self.items.items()):
            if key[0] == owner and (item.item_id in item_ids or (item.group and item.group in groups)):
                del self.items[key]

    async def search(self, owner: Owner, query_text: str, limit: int, source: str = "") -> Found:
        self._check()
        words = set(query_text.casefold().split())
        mine = [item for key, item in self.items.items() if key[0] == owner and source in ("", item.source)]
        shared = {item.item_id: len(words & set(item.text.casefold().split())) for item in mine}
        best = sorted((item for item in mine if shared[item.item_id]), key=lambda item: -shared[item.item_id])[:limit]
        found = [
            FoundItem(item.item_id, item.source, item.text, item.group, 1.0, 0.1 + shared[item.item_id] / 100, item.at)
            for item in best
        ]
        return Found(found, {"fact": sum(item.source == "fact" for item in mine)})

    def _check(self) -> None:
        if self.is_down:
            raise Unavailable("the index is down")


class FakeNotes:
    """Notes in memory: a search finds them all, in their order."""

    def __init__(self) -> None:
        self.notes: list[FoundNote] = []
        self.is_down = False
        self.asked = 0

    def collection_id(self) -> str:
        return "notes"

    async def search(self, query_text: str, limit: int) -> Sequence[FoundNote]:
        self.asked += 1
        if self.is_down:
            raise Unavailable("the index is down")
        return self.notes[:limit]


class FakeForgotten:
    """Remembers of which facts others were told that they are forgotten."""

    def __init__(self) -> None:
        self.facts: list[str] = []

    async def fact(self, owner: Owner, fact_id: str, at: datetime) -> None:
        self.facts.append(fact_id)


class FakeFactStore:
    """A FactStore in memory. `cut_at` counts writes down, and then raises as if the process had been killed."""

    def __init__(self) -> None:
        self.profiles: dict[Owner, tuple[Profile, int]] = {}
        self.stored: dict[tuple[Owner, str], StoredFact] = {}
        self.gone: set[tuple[Owner, str]] = set()
        self.learnt: set[tuple[Owner, str]] = set()
        self.cut_at: int | None = None
        self._revision = 0

    async def profile(self, owner: Owner) -> tuple[Profile, int]:
        return self.profiles.get(owner, (Profile(), 0))

    async def set_profile(self, owner: Owner, profile: Profile, revision: int) -> int:
        await self._write()
        if (await self.profile(owner))[1] != revision:
            raise Aborted("another writer was first")
        self.profiles[owner] = (profile, self._revision)
        return self._revision

    async def add(self, owner: Owner, fact: Fact) -> None:
        await self._write()
        key = (owner, fact.fact_id)
        if key not in self.stored and key not in self.gone:
            self.stored[key] = StoredFact(fact, self._revision)

    async def get(self, owner: Owner, fact_id: str) -> StoredFact | None:
        return self.stored.get((owner, fact_id))

    async def update(self, owner: Owner, fact: Fact, revision: int) -> None:
        await self._write()
        stored = self.stored.get((owner, fact.fact_id))
        if stored is None or stored.revision != revision:
            raise Aborted("another writer was first")
        self.stored[(owner, fact.fact_id)] = StoredFact(fact, self._revision)

    async def forget(self, owner: Owner, fact_id: str) -> None:
        await self._write()
        self.stored.pop((owner, fact_id), None)
        self.gone.add((owner, fact_id))

    async def facts(self, owner: Owner) -> list[Fact]:
        return [stored.fact for key, stored in self.stored.items() if key[0] == owner]

    async def is_learnt(self, owner: Owner, run_id: str) -> bool:
        return (owner, run_id) in self.learnt

    async def mark_learnt(self, owner: Owner, run_id: str) -> None:
        await self._write()
        self.learnt.add((owner, run_id))

    async def _write(self) -> None:
        await asyncio.sleep(0)
        if self.cut_at is not None:
            self.cut_at -= 1
            if self.cut_at < 0:
                self.cut_at = None
                raise ConnectionError("killed")
        self._revision += 1
