"""What the threads need from a store."""

from collections.abc import AsyncIterator
from typing import Protocol

from services.memory.models import Message, Owner, StoredThread, Thread


class ThreadStore(Protocol):
    """Heads with compare-and-set, and messages at positions 1, 2, 3 … of a thread."""

    async def create_head(self, owner: Owner, thread: Thread) -> None:
        """Raises AlreadyExists when the id is taken."""
        ...

    async def get_head(self, owner: Owner, thread_id: str) -> StoredThread | None: ...

    async def update_head(self, owner: Owner, thread: Thread, revision: int) -> None:
        """Raises Aborted when the head no longer has `revision`, or is gone."""
        ...

    async def delete_head(self, owner: Owner, thread_id: str) -> None:
        """Harmless when there is none."""
        ...

    def list_heads(self, owner: Owner) -> AsyncIterator[Thread]:
        """All heads of the owner, in no particular order."""
        ...

    async def take_position(self, owner: Owner, thread_id: str, position: int, message: Message) -> Message | None:
        """Writes the message at a free position and returns None; returns the one that is there when it is taken."""
        ...

    async def is_marked(self, owner: Owner, thread_id: str, message_id: str) -> bool:
        """Whether `mark` was called for this message."""
        ...

    async def mark(self, owner: Owner, thread_id: str, message_id: str) -> None:
        """Remembers that the message is in the thread. Harmless when repeated."""
        ...

    async def read(self, owner: Owner, thread_id: str, first: int, last: int) -> list[Message]:
        """Messages at positions first … last, in order; those that are not there are left out."""
        ...

    async def purge_messages(self, owner: Owner, thread_id: str) -> None:
        """Removes all messages and marks of the thread. Harmless when repeated."""
        ...
