"""Messages of threads as the index of memories has them.

A message is found by the message before it, too: an answer seldom repeats what it answers. The order is that in which they were
appended, which never changes: so the message behind a forgotten one is known.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

from services.memory.facts.ports import MemoryItem
from services.memory.models import Message, Role

MESSAGE = "message"
"""The source of messages in the index."""
CONTEXT_CHARACTERS = 300
"""Of the message before: its end. More would outweigh a short message."""


def message_items(
    thread_id: str, appended: Sequence[Message], is_wanted: Callable[[Message], bool]
) -> list[MemoryItem]:
    """Those messages that are wanted, each with the end of the one before it. What was forgotten is in none of them."""
    return [
        MemoryItem(item_id(thread_id, message), _written(message), MESSAGE, thread_id, message.at, _context(before))
        for before, message in pairwise([None, *appended])
        if message and message.text and not message.forgotten and is_wanted(message)
    ]


def followers(thread_id: str, appended: Sequence[Message], is_gone: Callable[[Message], bool]) -> list[MemoryItem]:
    """Messages that were appended behind one that is gone."""
    behind = {after.message_id for before, after in pairwise(appended) if is_gone(before)}
    return message_items(thread_id, appended, lambda message: message.message_id in behind)


def item_id(thread_id: str, message: Message) -> str:
    """Under which a message lies in the index."""
    return f"{thread_id}/{message.message_id}"


def _context(before: Message | None) -> str:
    if before is None or before.forgotten or not before.text:
        return ""
    return _written(before)[-CONTEXT_CHARACTERS:]


def _written(message: Message) -> str:
    speaker = "User" if message.role is Role.USER else "Assistant"
    return f"{speaker}: {message.text}"
