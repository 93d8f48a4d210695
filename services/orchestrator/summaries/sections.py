"""The sections of documents, in reading order: by their headings, or by length where they have none."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from services.orchestrator.log.events import Evidence

_HEADING = re.compile(r"(?<=\n\n)[^\W_][^\n|]{1,60}[^\s.!?:;,|](?=\n\n[^\n]{60})")
"""A short line that stands alone above a longer one."""
_SECTION_CHARS = 6_000
"""Longest section without headings of its own: about three pages."""


@dataclass(frozen=True)
class DocumentSection:
    """Chunks of one document that belong together."""

    title: str
    passages: Sequence[Evidence]

    @property
    def size_chars(self) -> int:
        return sum(len(each.text) for each in self.passages)


@dataclass(frozen=True)
class Slice:
    """A part of a passage."""

    number: int
    """Position among the slices of its group."""
    text: str
    passage: Evidence
    start: int
    """Its first character in the passage."""


def inner_sections(passages: Sequence[Evidence]) -> Sequence[Sequence[Slice]]:
    """The passages, cut where a heading stands within one: short sections share a passage."""
    groups: list[list[Slice]] = [[]]
    for passage in passages:
        cuts = [0, *(found.start() for found in _HEADING.finditer(passage.text)), len(passage.text)]
        for start, end in pairwise(cuts):
            if start and groups[-1]:
                groups.append([])
            if end > start:
                groups[-1].append(Slice(len(groups[-1]), passage.text[start:end], passage, start))
    return [group for group in groups if group]


def sections_of(passages: Sequence[Evidence], most: int) -> Sequence[DocumentSection]:
    """The sections of the chunks of one document, at most so many: by the deepest level of headings that gives no more, and where
    even the highest gives more, neighbours are joined."""
    if not passages:
        return []
    deepest = max(len(each.heading_path) for each in passages)
    for level in range(deepest, 0, -1):
        found = _by_headings(passages, level)
        if len(found) <= most:
            return _cut(found, most)
    found = _by_headings(passages, 1) if deepest else [DocumentSection(passages[0].document_name, passages)]
    return _cut(found, most) if len(found) <= most else _joined(found, most)


def _by_headings(passages: Sequence[Evidence], level: int) -> list[DocumentSection]:
    """One section for each run of chunks below the same headings, down to the level."""
    return [
        DocumentSection(" › ".join(path) or group[0].document_name, group)
        for path, group in (
            (path, list(chunks)) for path, chunks in groupby(passages, lambda each: tuple(each.heading_path[:level]))
        )
    ]


def _cut(sections: Sequence[DocumentSection], most: int) -> Sequence[DocumentSection]:
    """The sections. Long ones are cut as far as there may be more of them."""
    room = most - len(sections)
    cut: list[DocumentSection] = []
    for section in sections:
        parts = min(room + 1, -(-section.size_chars // _SECTION_CHARS), len(section.passages))
        room -= max(0, parts - 1)
        cut += _parts(section, max(1, parts))
    return cut


def _parts(section: DocumentSection, count: int) -> Sequence[DocumentSection]:
    if count == 1:
        return [section]
    size = -(-len(section.passages) // count)
    starts = range(0, len(section.passages), size)
    return [DocumentSection(section.title, section.passages[start : start + size]) for start in starts]


def _joined(sections: Sequence[DocumentSection], most: int) -> Sequence[DocumentSection]:
    """So many sections, made of neighbours."""
    size = -(-len(sections) // most)
    groups = (sections[start : start + size] for start in range(0, len(sections), size))
    return [DocumentSection(_span(group), [each for section in group for each in section.passages]) for group in groups]


def _span(group: Sequence[DocumentSection]) -> str:
    first, last = group[0].title, group[-1].title
    return first if first == last else f"{first} – {last}"
