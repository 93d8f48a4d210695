"""Keeps the index of memories like what it is made from, while others change that."""

from collections.abc import Awaitable, Callable, Sequence

from services.memory.facts.ports import MemoryIndex, MemoryItem
from services.memory.models import Owner


async def index_current(index: MemoryIndex, owner: Owner, read: Callable[[], Awaitable[Sequence[MemoryItem]]]) -> None:
    """Puts the items that `read` returns into the index, and reads again: what was changed meanwhile is put again, what was
    forgotten is removed. Raises Unavailable."""
    there: Sequence[MemoryItem] = []
    while (items := await read()) != there:
        kept = {item.item_id for item in items}
        if gone := [item.item_id for item in there if item.item_id not in kept]:
            await index.remove(owner, gone)
        if items:
            await index.put(owner, items)
        there = items
