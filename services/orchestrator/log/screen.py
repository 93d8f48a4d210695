"""What the user has been shown of the answer so far. The code that writes the answer says what the whole should read by now; the
screen works out the piece that gets there from what is already in the log, so that a stream goes on smoothly through a
take-over and is replaced where a fallback says something else."""

from collections.abc import Callable
from itertools import takewhile

from services.orchestrator.log.events import Token
from services.orchestrator.log.journal import Journal

LONGEST_PIECE_CHARS = 100_000
"""An event is one message, and a message of NATS holds 1 MB: four bytes a character leave room."""


class Screen:
    """Writes token events so that the shown text becomes the wanted one."""

    def __init__(self, journal: Journal, heard: Callable[[str], None] = lambda _: None, before: str = "") -> None:
        """`heard` gets the answer so far; `before` stands above it and stays."""
        self._journal = journal
        self._before = before
        self._heard = heard

    async def show(self, text: str) -> None:
        """The answer reads `text` so far. Nothing is taken back while `text` still agrees with what was shown."""
        self._heard(text)
        if not self._journal.progress.shown.startswith(self._before + text):
            await self.settle(text)

    async def settle(self, text: str) -> None:
        """The answer reads `text`, and no more."""
        self._heard(text)
        shown, text = self._journal.progress.shown, self._before + text
        if shown == text:
            return
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shown, text, strict=False)))
        for start in range(kept, max(len(text), kept + 1), LONGEST_PIECE_CHARS):
            await self._journal.write(Token(text[start : start + LONGEST_PIECE_CHARS], start))
