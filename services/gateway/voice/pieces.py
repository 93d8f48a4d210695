"""An answer as pieces to be said: sentence by sentence while it is written, each with its citations beside it. The same log gives
the same pieces with the same numbers, so that a client which comes back gets each piece once."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from kit.language.sentences import split_units
from kit.vocabulary.run_fold import RunFold
from services.gateway.models import Json, RunEvent
from services.gateway.voice.phrases import failed, sources_named, waits
from services.gateway.voice.wording import document_title, spoken

_MARK = re.compile(r"\[(\d{1,4})\]")
_SPACED_MARK = re.compile(r"\s?\[\d{1,4}\]")
_MARKS_BEFORE = re.compile(r"(?:\[\d{1,4}\]\s*)+(?:\[\d{0,4}\Z)?|\[\d{0,4}\Z")
"""Marks at the beginning of a sentence, which are of the one before. The last may be half written."""
_CITED = ("number", "document_id", "document_name", "chunk_id", "page")

Kind = Literal["sentence", "sources", "notice"]


@dataclass(frozen=True)
class Speakable:
    """Something to be said. Of a `sentence` the answer reads `text` from `start` to `end`; others stand behind the answer."""

    index: int
    kind: Kind
    text: str
    """As it is written, with its marks."""
    spoken: str
    """As it is said."""
    language: str
    start: int = 0
    end: int = 0
    citations: list[Json] = field(default_factory=list)

    def data(self, run_id: str, seq: int) -> Json:
        """As clients read it. `seq` is of the event that the piece comes with."""
        return {
            "run_id": run_id,
            "seq": seq,
            "index": self.index,
            "kind": self.kind,
            "text": self.text,
            "spoken": self.spoken,
            "language": self.language,
            "start": self.start,
            "end": self.end,
            "citations": self.citations,
        }


class Pieces:
    """The pieces of one run."""

    def __init__(self, language: str) -> None:
        self.run = RunFold()
        self.language = language
        self._evidence: dict[int, Json] = {}
        self._standing: list[Speakable] = []
        """Sentences that the answer still has."""
        self._withdrawn: list[int] = []
        self._count = 0

    def add(self, event: RunEvent) -> list[Speakable]:
        """What is to be said now that the event has come."""
        self.run.add(event.kind, event.data)
        match event.kind:
            case "retrieval" if not event.data.get("investigation"):
                self._note(event.data["evidence"])
            case "token":
                return list(self._finished_sentences(is_whole=False))
            case "answer":
                self._note(event.data["citations"])
                sentences = list(self._finished_sentences(is_whole=True))
                return [*sentences, *self._sources()]
            case "parked":
                return [self._piece("notice", waits(self.language))]
            case "done" if event.data["status"] == "failed":
                return [self._piece("notice", failed(self.language))]
        return []

    def ending(self) -> Json:
        """What was said in all. `withdrawn` are the indexes of sentences that the checked answer does not have any more."""
        return {
            "run_id": self.run.run_id,
            "status": self.run.status,
            "pieces": self._count,
            "withdrawn": sorted(self._withdrawn),
            "citations": {str(piece.index): piece.citations for piece in self._standing},
        }

    def _note(self, passages: list[Json]) -> None:
        self._evidence |= {each["number"]: {name: each[name] for name in _CITED} for each in passages if each["number"]}

    def _finished_sentences(self, *, is_whole: bool) -> Iterator[Speakable]:
        """Sentences that have not been passed on yet. The last of an answer that is still written may go on."""
        text = self.run.text
        if is_whole:
            self._compare(text)
        elif not all(_stands(piece, text) for piece in self._standing):
            return  # another text is begun: what of it is new is known once it is whole
        begun = self._standing[-1].end if self._standing else 0
        spans = _sentences(text[begun:])
        for start, end in spans if is_whole else spans[:-1]:
            if piece := self._sentence(begun + start, begun + end):
                yield piece

    def _compare(self, text: str) -> None:
        """Finds what was said in the whole answer, where marks or sentences may be gone, and takes back the rest."""
        spans, after, standing = _sentences(text), 0, list[Speakable]()
        for piece in self._standing:
            place = (piece.start, piece.end) if piece.start >= after and _stands(piece, text) else None
            place = place or next((each for each in spans if each[0] >= after and _same(text, each, piece)), None)
            if place is None:
                self._withdrawn.append(piece.index)
                continue
            after = place[1]
            written = text[place[0] : after]
            standing.append(replace(piece, start=place[0], end=after, text=written, citations=self._cited(written)))
        self._standing = standing

    def _sentence(self, start: int, end: int) -> Speakable | None:
        text = self.run.text[start:end]
        if not (said := spoken(text, self.language)) or not re.search(r"\w", said):
            return None
        piece = self._piece("sentence", said, text, start, end, self._cited(text))
        self._standing.append(piece)
        return piece

    def _sources(self) -> Iterator[Speakable]:
        """Each document that the answer cites, named once."""
        cited = list({int(number): None for number in _MARK.findall(self.run.text)})
        names = list(
            {document_title(self._evidence[each]["document_name"]): None for each in cited if each in self._evidence}
        )
        if names:
            citations = [self._evidence[each] for each in cited if each in self._evidence]
            yield self._piece("sources", sources_named(names, self.language), citations=citations)

    def _cited(self, text: str) -> list[Json]:
        numbers = {int(number): None for number in _MARK.findall(text)}
        return [self._evidence.get(number, {"number": number}) for number in numbers]

    def _piece(
        self, kind: Kind, said: str, text: str = "", start: int = 0, end: int = 0, citations: list[Json] | None = None
    ) -> Speakable:
        self._count += 1
        return Speakable(self._count - 1, kind, text or said, said, self.language, start, end, citations or [])


def _sentences(text: str) -> Sequence[tuple[int, int]]:
    """Where the sentences, list items and rows of the text begin and end, with the marks behind them. The line above a list is
    one of its own."""
    units = split_units(text)
    ends = [*(unit.start for unit in units[1:]), len(text)]
    spans: list[tuple[int, int]] = []
    for unit, next_start in zip(units, ends, strict=False):
        start, end = unit.start, min(unit.end, next_start)
        if spans and (marks := _MARKS_BEFORE.match(text, start, end)):
            spans[-1] = (spans[-1][0], start + len(marks[0].rstrip()))
            start = marks.end()
        if start < end:
            spans.append((start, end))
    return spans


def _stands(piece: Speakable, text: str) -> bool:
    return text[piece.start : piece.end] == piece.text


def _same(text: str, span: tuple[int, int], piece: Speakable) -> bool:
    """Whether the text says there what the piece says: marks make no difference."""
    return _bare(text[span[0] : span[1]]) == _bare(piece.text)


def _bare(text: str) -> str:
    return " ".join(_SPACED_MARK.sub("", text).split())
