"""What a call tells the person while it works, bounded: each message becomes an entry of the run's log."""

import asyncio
from collections.abc import Awaitable, Callable

from services.tools.calling.bounds import shortened

MESSAGES_MAX = 20
"""Of one call; more are dropped."""
MESSAGE_CHARACTERS_MAX = 300

Tell = Callable[[str], Awaitable[None]]


async def unheard(_: str) -> None:
    """Tells nobody."""


class Progress:
    """The messages of one call, for one reader. They are kept until they are read, also when they come before the reader."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[str | None] = asyncio.Queue(MESSAGES_MAX + 1)  # and the end
        self._told = 0

    async def tell(self, message: str) -> None:
        """Never waits: a tool is not held up by who listens."""
        if self._told < MESSAGES_MAX and message:
            self._told += 1
            self._messages.put_nowait(shortened(message, MESSAGE_CHARACTERS_MAX))

    def end(self) -> None:
        """There are no more. Called once."""
        self._messages.put_nowait(None)

    async def next(self) -> str | None:
        """The next message; None at the end."""
        return await self._messages.get()
