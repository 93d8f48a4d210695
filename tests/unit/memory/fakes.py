"""A ThreadStore in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from kit.errors import Aborted, AlreadyExists
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
