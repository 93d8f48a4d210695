"""The citations of an artefact while it is made: each quote gets one number, in the order in which it is first cited."""

from collections.abc import Sequence

from services.orchestrator.answering.quotes import Quote, around_quote, citation
from services.orchestrator.log.events import ArtefactItem, Citation, Evidence


class Citing:
    """Collects what the parts of one artefact cite."""

    def __init__(self, *, around_chars: int = 0) -> None:
        """`around_chars`: characters of a passage that are kept around a quote; 0 keeps the whole passage."""
        self._around_chars = around_chars
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._citations: list[Citation] = []
        self._items: dict[str, list[int]] = {}

    def cite(self, path: str, source: Evidence, start: int = 0, end: int = 0) -> int:
        """Notes that the part at `path`, a JSON Pointer, rests on these characters of the passage; 0 and 0 stand for all of it.
        Returns the number of the citation."""
        key = (source.chunk_id, start, end)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers) + 1
            whole = citation(source, Quote(source.number, start, end), number)
            self._citations.append(around_quote(whole, self._around_chars) if self._around_chars else whole)
        numbers = self._items.setdefault(path, [])
        if number not in numbers:
            numbers.append(number)
        return number

    @property
    def items(self) -> Sequence[ArtefactItem]:
        return tuple(ArtefactItem(path, tuple(numbers)) for path, numbers in self._items.items())

    @property
    def citations(self) -> Sequence[Citation]:
        return tuple(self._citations)
