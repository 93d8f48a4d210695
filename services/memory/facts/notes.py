"""Notes of a person and of their agents, as they are looked up: documents of a collection of their own.

`MEMORY.md`, `SESSION-STATE.md`, what is in `memories/`, and whatever else lies there. A name that holds a day, as
`daily/2026-11-28.md`, is a daily note: those of the last 30 days are looked up.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta

from kit.errors import GroundworkError
from services.memory.facts.ports import FoundNote, Notes

DAILY_KEPT = timedelta(days=30)
_SPARE = 10
"""Passages that are asked for beyond those wanted, since old daily notes are left out."""
_DAY = re.compile(r"(?:^|/)(\d{4}-\d{2}-\d{2})(?:\.\w+)?$")


class NoteSearch:
    """Looks up notes of the caller in hand."""

    def __init__(self, notes: Notes, *, now: Callable[[], datetime]) -> None:
        self._notes = notes
        self._now = now

    @property
    def collection_id(self) -> str:
        """Where the caller's notes lie."""
        return self._notes.collection_id()

    async def found(self, query_text: str, limit: int) -> tuple[list[FoundNote], list[tuple[str, str, str]]]:
        """The passages that fit best, one a note, best first; and what the search had to do without."""
        if not limit or not query_text:
            return [], []
        try:
            found = await self._notes.search(query_text, limit + _SPARE)
        except GroundworkError as error:
            return [], [("memory", error.reason, "Notes could not be looked up.")]
        oldest = self._now().date() - DAILY_KEPT
        best: dict[str, FoundNote] = {}
        for note in found:
            if not _is_older(note.name, oldest):
                best.setdefault(note.document_id, note)
        return list(best.values())[:limit], []


def _is_older(name: str, oldest: date) -> bool:
    match = _DAY.search(name)
    try:
        return match is not None and date.fromisoformat(match[1]) < oldest
    except ValueError:  # 2026-13-45 is no day, and the note no daily one
        return False
