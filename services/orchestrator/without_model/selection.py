"""Choose the units of the answer: few, no two alike, in reading order."""

from collections.abc import Sequence

from kit.language.questions import AnswerKind, Question
from services.orchestrator.without_model.features import Candidate, Scored, WeighedCandidates
from services.orchestrator.without_model.settings import ExtractiveSettings

_BROAD = frozenset({AnswerKind.REASON, AnswerKind.MANNER, AnswerKind.LIST, AnswerKind.DESCRIPTION, AnswerKind.KEYWORDS})
_TOPIC = frozenset({AnswerKind.DESCRIPTION, AnswerKind.KEYWORDS})


def select(
    question: Question, evidence: WeighedCandidates, ranked: Sequence[Scored], settings: ExtractiveSettings
) -> list[Scored]:
    """1 to `max_units` of `ranked` (best first, not empty), in reading order."""
    limit, gap = _limits(question, settings)
    chosen = [ranked[0]]
    covered = set(ranked[0].candidate.covered)
    rest = list(ranked[1:])
    while rest and len(chosen) < limit:
        gains = [s.value + settings.new_terms_bonus * evidence.share(s.candidate.covered - covered) for s in rest]
        best = max(range(len(rest)), key=gains.__getitem__)
        if gains[best] < ranked[0].value - gap:
            break
        following = rest.pop(best)
        if not any(_says_the_same(following.candidate, other.candidate, settings) for other in chosen):
            chosen.append(following)
            covered |= following.candidate.covered
    return _reading_order(chosen)


def _limits(question: Question, settings: ExtractiveSettings) -> tuple[int, float]:
    """Most units, and how far below the best one a further unit may be."""
    if question.kind in _TOPIC:
        return settings.max_units, settings.topic_gap
    if question.kind in _BROAD:
        return settings.max_units, settings.broad_gap
    return settings.max_fact_units, settings.fact_gap


def _says_the_same(left: Candidate, right: Candidate, settings: ExtractiveSettings) -> bool:
    if (
        left.passage.number == right.passage.number
        and left.unit.start < right.unit.end
        and right.unit.start < left.unit.end
    ):
        return True
    shared = len(left.stems & right.stems)
    smaller = min(len(left.stems), len(right.stems))
    union = len(left.stems | right.stems)
    if not smaller:
        return left.unit.text == right.unit.text
    return shared / union >= settings.duplicate_similarity or (
        # Three words in common are no containment: "It has three doors" is in many longer sentences.
        smaller > 3 and shared / smaller >= max(0.9, settings.duplicate_similarity)
    )


def _reading_order(chosen: Sequence[Scored]) -> list[Scored]:
    """Documents by their best unit, then the order of the text: the answer starts with the best source."""
    best: dict[str, float] = {}
    for scored in chosen:
        document = scored.candidate.passage.document_id
        best[document] = max(scored.value, best.get(document, scored.value))
    return sorted(chosen, key=lambda s: (-best[s.candidate.passage.document_id], *_position(s)))


def _position(scored: Scored) -> tuple[str, int, int, int, int]:
    passage = scored.candidate.passage
    return passage.document_id, passage.ordinal, passage.char_start, passage.number, scored.candidate.unit.start
