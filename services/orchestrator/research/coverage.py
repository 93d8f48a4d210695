"""How much of a question the evidence covers: each part with the passages that speak of it, and a state. Words alone decide, so the
same evidence always has the same coverage."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kit.language.sentences import split_units
from kit.language.terms import tokens
from services.orchestrator.log.events import Coverage, CoveragePart, Evidence, PartState
from services.orchestrator.research.models import PartKind, QuestionPart
from services.orchestrator.research.question.names import Name, stems_of
from services.orchestrator.research.question.relations import relation_words
from services.orchestrator.research.search.hops import Hop, find_hops

ENOUGH = 0.8
"""From here on nothing more is searched for (the seed's threshold)."""
FOUND, PARTLY = 0.75, 0.35
_ABOUT = 0.75
"""Share of a name's words that a passage about it has."""
_NAMED_ONLY = 0.4
"""Who stands in the relation is named, but no passage is about them."""
_MOST_HOPS = 8
_MOST_SOURCES = 2
_SURE = (1.0, 0.8, 0.6)
"""That a name stands in the relation, by its place among those that are near to a word of it."""
_UNSURE = 0.4
_NEAR_CHARS = 60
_MOST_PASSAGES = 3
"""Passages that stand for a part."""
_PREFIX_CHARS = 5


class EvidenceView:
    """The evidence as the parts look at it: stems, titles, and who is named."""

    def __init__(self, question: str, subjects: Sequence[Name], evidence: Sequence[Evidence]) -> None:
        self._question = question
        self._subjects = subjects
        self.passages = [_Passage(each) for each in evidence]

    def about(self, name: Name) -> list["_Passage"]:
        """Passages that have nearly all words of the name, those with the name as title first."""
        having = [each for each in self.passages if _share(name.stems, each.stems) >= _ABOUT]
        return sorted(having, key=lambda each: not name.stems <= each.title)

    def hops_of(self, name: Name | None) -> list[Hop]:
        """Names that the passages about the name mention, the nearest to the question's relation first; without a name those of the
        best passages."""
        sources = (self.passages if name is None else self.about(name))[:_MOST_SOURCES]
        hops = [self._hops(source) for source in sources]
        return list({hop.name: hop for each in hops for hop in each}.values())

    def related(self, name: Name) -> list[tuple[float, "_Passage"]]:
        """Passages about somebody whom the passages about the name mention, each with how sure it is that this is who stands in
        the relation: the nearer to a word of the relation, the surer."""
        hops = self.hops_of(name)[:_MOST_HOPS]
        sources = self.about(name)[:1]
        found: list[tuple[float, _Passage]] = []
        for place, hop in enumerate(hops):
            stems = stems_of(hop.name)
            sure = _SURE[min(place, len(_SURE) - 1)] if hop.distance_chars <= _NEAR_CHARS else _UNSURE
            found += [(sure, each) for each in self.passages if each not in sources and stems <= each.title]
        return found

    def _hops(self, passage: "_Passage") -> list[Hop]:
        source = passage.source
        return find_hops(self._question, self._subjects, source.text, passage.heading)


@dataclass(frozen=True, eq=False)
class _Passage:
    source: Evidence

    @property
    def heading(self) -> str:
        return self.source.heading_path[-1] if self.source.heading_path else self.source.document_name

    @cached_property
    def title(self) -> frozenset[str]:
        """Stems of its heading and of its first words: whom it is about."""
        first = [token.stem for token in tokens(self.source.text[:120])[:8]]
        return stems_of(self.heading) | frozenset(first)

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems_of(self.source.text) | stems_of(" ".join(self.source.heading_path))

    @cached_property
    def units(self) -> Sequence[frozenset[str]]:
        """Stems of each sentence, with those of its heading."""
        title = stems_of(" ".join(self.source.heading_path))
        return [stems_of(unit.text) | title for unit in split_units(self.source.text)]


def measure_coverage(question: str, parts: Sequence[QuestionPart], evidence: Sequence[Evidence]) -> Coverage:
    """The table of the parts. The share is the mean of their scores, 0 to 1; 0 where nothing is asked."""
    subjects = [part.subject for part in parts if part.kind is PartKind.SUBJECT and part.subject is not None]
    view = EvidenceView(question, subjects, evidence)
    rows = [_row(part, view) for part in parts]
    share = sum(row.score for row in rows) / len(rows) if rows else 0.0
    return Coverage(tuple(rows), round(share, 3))


def _row(part: QuestionPart, view: EvidenceView) -> CoveragePart:
    scored = _SCORES[part.kind](part, view)
    best = sorted(scored, key=lambda each: -each[0])
    score = round(best[0][0], 3) if best else 0.0
    numbers = [number for each, number in best if number and each >= PARTLY][:_MOST_PASSAGES]
    return CoveragePart(part.text, part.kind.value, _state(score), score, tuple(numbers))


def _state(score: float) -> PartState:
    if score >= FOUND:
        return PartState.FOUND
    return PartState.PARTLY if score >= PARTLY else PartState.MISSING


def _subject(part: QuestionPart, view: EvidenceView) -> list[tuple[float, int]]:
    return [(_share(part.stems, each.stems), each.source.number) for each in view.passages]


def _bridge(part: QuestionPart, view: EvidenceView) -> list[tuple[float, int]]:
    assert part.subject is not None
    if found := view.related(part.subject):
        return [(sure, each.source.number) for sure, each in found]
    return [(_NAMED_ONLY, each.source.number) for each in view.about(part.subject)[:1] if view.hops_of(part.subject)]


def _asked(part: QuestionPart, view: EvidenceView) -> list[tuple[float, int]]:
    if part.subject is None:
        of = [(1.0, each) for each in view.passages]
    elif part.is_of_relation:
        of = view.related(part.subject)
    else:
        of = [(1.0, each) for each in view.about(part.subject)]
    return [
        (sure * max((_share(part.stems, unit) for unit in each.units), default=0.0), each.source.number)
        for sure, each in of
    ]


_SCORES = {PartKind.SUBJECT: _subject, PartKind.BRIDGE: _bridge, PartKind.ASKED: _asked}


def _share(wanted: frozenset[str], stems: frozenset[str]) -> float:
    """Share of the wanted words that are there: the word, a synonym of it, or another word of its family."""
    if not wanted:
        return 1.0
    return sum(_has(each, stems) for each in wanted) / len(wanted)


def _has(wanted: str, stems: frozenset[str]) -> bool:
    if wanted in stems or relation_words((wanted,)) & stems:
        return True
    prefix = wanted[:_PREFIX_CHARS]
    return len(prefix) == _PREFIX_CHARS and any(each.startswith(prefix) for each in stems)
