"""What the threads need from outside."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from services.memory.facts.ports import MemoryItem
from services.memory.models import Deletion, Message, Owner, StoredMessage, StoredThread, Thread


class ThreadStore(Protocol):
    """Heads with compare-and-set, and messages at positions 1, 2, 3 … of a thread."""

    async def create_head(self, owner: Owner, thread: Thread) -> None:
        """Raises AlreadyExists when the id is taken."""
        ...

    async def get_head(self, owner: Owner, thread_id: str) -> StoredThread | None:
        """Raises ThreadDamaged."""
        ...

    async def update_head(self, owner: Owner, thread: Thread, revision: int) -> None:
        """Raises Aborted when the head no longer has `revision`, or is gone."""
        ...

    async def delete_head(self, owner: Owner, thread_id: str) -> None:
        """Harmless when there is none."""
        ...

    def list_heads(self, owner: Owner) -> AsyncIterator[Thread]:
        """All heads of the owner, in no particular order, without those that cannot be read."""
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
        """Messages at positions first … last, in order; those that are not there or cannot be read are left out."""
        ...

    async def rewrite(self, owner: Owner, thread_id: str, change: Callable[[Message], Message]) -> None:
        """Puts what `change` makes of each message into its place. What is purged meanwhile stays so."""
        ...

    async def find(self, owner: Owner, thread_id: str, is_it: Callable[[Message], bool]) -> StoredMessage | None:
        """The first message that is it."""
        ...

    async def replace(self, owner: Owner, thread_id: str, stored: StoredMessage, changed: Message) -> None:
        """Puts a changed message into the place of the one that was found. Raises Aborted when that was changed or purged
        meanwhile."""
        ...

    async def purge_messages(self, owner: Owner, thread_id: str) -> None:
        """Removes all messages and marks of the thread. Harmless when repeated."""
        ...


class ThreadMessages(Protocol):
    """The messages of threads."""

    async def as_appended(self, owner: Owner, thread_id: str, last: int = 0) -> list[Message]:
        """The last so many in the order in which they were appended, all for 0; none where there is no such thread."""
        ...


class MessageCopies(Protocol):
    """The index in which messages are found again."""

    async def put(self, owner: Owner, items: Sequence[MemoryItem], *, known_only: bool = False) -> None:
        """Puts messages in the place of what has their ids; `known_only`: adds none. Raises Unavailable."""
        ...

    async def remove(self, owner: Owner, item_ids: Sequence[str], groups: Sequence[str] = ()) -> None:
        """Removes messages by thread and id ("<thread>/<message>"), and all of these threads. Harmless when repeated. Raises
        Unavailable."""
        ...


class Deletions(Protocol):
    """Deletions of threads that have been asked for, and what is to follow them elsewhere."""

    async def queue(self, deletion: Deletion) -> None:
        """The deletion is on disk when this returns, and will be worked on until it is done. Raises Unavailable."""
        ...

    async def forget_runs(self, deletion: Deletion) -> None:
        """Has the runs of the thread's questions removed, within a minute. Harmless when repeated. Raises Unavailable."""
        ...
