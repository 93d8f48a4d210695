"""What differs between two documents: sections that belong together, and in them the sentences of one side alone and those that
were changed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from kit.language.sentences import UnitKind, split_units
from kit.language.terms import tokens
from services.tools.models import Passage

_CHANGED = 0.4
"""Least share of words that two sentences have in common (Jaccard) if one is a changed version of the other."""
_SECTION = 0.15
"""The same of two sections whose headings differ."""


@dataclass(frozen=True)
class Said:
    """A sentence and its place."""

    passage: Passage
    start: int
    end: int
    stems: frozenset[str]

    @property
    def text(self) -> str:
        return " ".join(self.passage.text[self.start : self.end].split())


@dataclass(frozen=True)
class Compared:
    """A section of one document beside that of the other; one of both may have none."""

    headings: tuple[str, str]
    same: int
    """Sentences that both have."""
    changed: Sequence[tuple[Said, Said]]
    first_only: Sequence[Said]
    second_only: Sequence[Said]

    @property
    def differs(self) -> bool:
        return bool(self.changed or self.first_only or self.second_only)


def compare(first: Sequence[Passage], second: Sequence[Passage]) -> Sequence[Compared]:
    """The sections in the order of the first document, then those that only the second has."""
    ours, theirs = _sections(first), _sections(second)
    pairs = _paired(ours, theirs)
    alone = [heading for heading in theirs if heading not in pairs.values()]
    return [
        *(
            _compared(heading, pairs.get(heading, ""), ours[heading], theirs.get(pairs.get(heading, ""), []))
            for heading in ours
        ),
        *(_compared("", heading, [], theirs[heading]) for heading in alone),
    ]


def _sections(passages: Sequence[Passage]) -> dict[str, list[Said]]:
    """Sentences by the headings above them."""
    found: dict[str, list[Said]] = {}
    for path, group in groupby(passages, lambda each: " › ".join(each.heading_path)):
        found.setdefault(path or "–", []).extend(each for passage in group for each in _sentences(passage))
    return found


def _sentences(passage: Passage) -> Iterator[Said]:
    for unit in split_units(passage.text):
        if unit.kind is UnitKind.LIST:
            continue
        stems = frozenset(each.stem for each in tokens(unit.text))
        if stems:
            yield Said(passage, unit.start, unit.end, stems)


def _paired(ours: dict[str, list[Said]], theirs: dict[str, list[Said]]) -> dict[str, str]:
    """For each section of ours theirs: of the same heading, else of the words that are most alike."""
    found = {heading: heading for heading in ours if heading in theirs}
    left = [heading for heading in theirs if heading not in found]
    words = {heading: _words(theirs[heading]) for heading in left}
    for heading, said in ours.items():
        if heading in found or not left:
            continue
        own = _words(said)
        best = max(left, key=lambda each: _likeness(own, words[each]))
        if _likeness(own, words[best]) >= _SECTION:
            found[heading] = best
            left.remove(best)
    return found


def _words(said: Sequence[Said]) -> frozenset[str]:
    return frozenset(stem for each in said for stem in each.stems)


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def _compared(ours_named: str, theirs_named: str, ours: Sequence[Said], theirs: Sequence[Said]) -> Compared:
    texts = Counter(each.text.casefold() for each in theirs)
    first = []
    for each in ours:
        if texts[each.text.casefold()]:
            texts[each.text.casefold()] -= 1
        else:
            first.append(each)
    own = Counter(each.text.casefold() for each in ours)
    second = []
    for each in theirs:
        if own[each.text.casefold()]:
            own[each.text.casefold()] -= 1
        else:
            second.append(each)
    changed = _changed(first, second)
    before, after = {id(one) for one, _ in changed}, {id(other) for _, other in changed}
    return Compared(
        (ours_named, theirs_named),
        len(ours) - len(first),
        changed,
        [each for each in first if id(each) not in before],
        [each for each in second if id(each) not in after],
    )


def _changed(first: Sequence[Said], second: Sequence[Said]) -> Sequence[tuple[Said, Said]]:
    """Sentences that are most alike, each once; candidates share a word."""
    by_stem: dict[str, list[int]] = {}
    for at, each in enumerate(second):
        for stem in each.stems:
            by_stem.setdefault(stem, []).append(at)
    alike = []
    for number, each in enumerate(first):
        shared = Counter(at for stem in each.stems for at in by_stem.get(stem, ()))
        for at, count in shared.items():
            likeness = count / (len(each.stems) + len(second[at].stems) - count)
            if likeness >= _CHANGED:
                alike.append((likeness, number, at))
    pairs: dict[int, int] = {}
    for _, number, at in sorted(alike, key=lambda each: (-each[0], each[1], each[2])):
        if number not in pairs and at not in pairs.values():
            pairs[number] = at
    return [(first[number], second[at]) for number, at in sorted(pairs.items())]
