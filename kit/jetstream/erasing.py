"""Erases stored messages from the files of the message store.

The server only marks a message that is superseded, purged or acknowledged as gone, and leaves its bytes in the block file. It
overwrites a message at once that is deleted by its position (STREAM.MSG.DELETE without `no_erase`).
"""

import asyncio
from contextlib import aclosing

from kit.jetstream.connection import Nats
from kit.jetstream.reading import all_messages, last_position
from kit.jetstream.streams import subject_counts

_AT_ONCE = 32


async def erase_messages(
    nats: Nats, stream: str, subject: str, *, before: int | None = None, newest_first: bool = False
) -> None:
    """Overwrites what is stored on a subject or pattern: all of it, or what lies before a position. Harmless to repeat. Raises
    Unavailable. With `newest_first` who reads meanwhile finds no gap, only an earlier end."""
    async with aclosing(all_messages(nats, stream, subject)) as messages:
        positions = [each.position async for each in messages if before is None or each.position < before]
    if newest_first:
        positions.reverse()
    for start in range(0, len(positions), _AT_ONCE):
        await asyncio.gather(*(nats.delete(stream, position) for position in positions[start : start + _AT_ONCE]))


async def erase_superseded(nats: Nats, stream: str, pattern: str) -> None:
    """Overwrites all but the last message of each subject: what a process that was killed has left. Raises Unavailable."""
    state = await nats.state(stream)
    if state["messages"] == state.get("num_subjects", 0):  # asked first: to list a million subjects takes seconds
        return
    for subject, count in (await subject_counts(nats, stream, pattern)).items():
        if count > 1:
            last = await last_position(nats, stream, subject)  # 0: it was purged meanwhile
            await erase_messages(nats, stream, subject, before=last)
