"""What speaks for and against a unit answering its question: the features of answerability.json, in its order. None of them counts
words of a certain language but the type cues, which say nothing of a question that they cannot read."""

import itertools
import math
import statistics
from collections.abc import Sequence

from kit.language.cues import STRICT_KINDS, is_negated
from kit.language.questions import AnswerKind, Question
from kit.language.sentences import UnitKind
from kit.language.terms import Token, tokens
from services.orchestrator.without_model import alignment
from services.orchestrator.without_model.features import Scored, WeighedCandidates

FEATURES = (
    "semantic",
    "semantic_lead",
    "semantic_spread",
    "dense",
    "dense_spread",
    "coverage",
    "context",
    "passage_coverage",
    "missing_in_unit",
    "missing_nearby",
    "missing_everywhere",
    "names",
    "names_in_unit",
    "unknown_name",
    "foreign_names",
    "negation",
    "denied",
    "cue",
    "missing_type",
    "pairs",
    "span",
    "novelty",
    "question_terms",
    "unit_terms",
    "rank",
    "lead",
    "is_row",
    "is_yes_no",
    "semantic_best",
    "question_negated",
    "unit_negated",
    *alignment.FEATURES,
    "about_row",
)
"""All are comparable between embedding models: all-MiniLM-L6-v2 and the centred multilingual-e5-small give similarities on one
scale (of SQuAD's questions, best sentence: 0.67 and 0.66; an unrelated sentence: 0.10 and 0.13)."""

_UNREADABLE = math.nan
_NEAR = 3
"""Words that may stand between two words that are neighbours in the question."""
_CUED = frozenset(
    {AnswerKind.PERSON, AnswerKind.TIME, AnswerKind.PLACE, AnswerKind.QUANTITY, AnswerKind.DURATION, AnswerKind.REASON}
)


def read_signals(question: Question, evidence: WeighedCandidates, ranked: Sequence[Scored]) -> list[float]:
    """Of the best of `ranked` (best first, not empty). NaN where nothing is known."""
    best = ranked[0]
    candidate = best.candidate
    found = tokens(candidate.unit.text)
    names = {term.stem for term in question.terms if term.is_exact}
    known = frozenset[str]().union(*(each.nearby for each in evidence.candidates))
    named = _share(evidence, names & candidate.nearby, names)
    return [
        *_semantic(ranked),
        *_dense(evidence, candidate.passage.dense_score),
        candidate.coverage,
        candidate.context,
        candidate.passage_coverage,
        _heaviest(evidence, evidence.weights.keys() - candidate.covered),
        _heaviest(evidence, evidence.weights.keys() - candidate.nearby),
        _heaviest(evidence, evidence.weights.keys() - known),
        named,
        _share(evidence, names & candidate.covered, names),
        max((_strangeness(term) for term in question.terms if term.stem in names - known), default=0.0),
        float(named < 1.0 and any(token.is_name and token.stem not in names for token in found)),
        float(is_negated(question.text) and not is_negated(candidate.unit.text, loosely=True)),
        float(is_negated(candidate.unit.text) and not is_negated(question.text, loosely=True)),
        candidate.cue if question.kind in _CUED else _UNREADABLE,
        (1.0 - candidate.cue) if question.kind in STRICT_KINDS else 0.0,
        _neighbouring_pairs(question, found),
        _span(question, found),
        _novelty(question, found),
        float(len(question.terms)),
        float(min(60, len(found))),
        candidate.rank,
        best.value - ranked[1].value if len(ranked) > 1 else _UNREADABLE,
        float(candidate.unit.kind is UnitKind.ROW),
        float(question.kind is AnswerKind.YES_NO),
        max((each.semantic for each in ranked if each.semantic is not None), default=_UNREADABLE),
        float(is_negated(question.text)),
        float(is_negated(candidate.unit.text)),
        *alignment.read_alignment(question, evidence, candidate),
        float(candidate.is_about_row) if candidate.unit.kind is UnitKind.ROW else _UNREADABLE,
    ]


def _semantic(ranked: Sequence[Scored]) -> tuple[float, float, float]:
    """Similarity of the best unit, by how much it leads the next best similarity, and in deviations above the mean."""
    scores = [each.semantic for each in ranked if each.semantic is not None]
    own = ranked[0].semantic
    if own is None or not scores:
        return _UNREADABLE, _UNREADABLE, _UNREADABLE
    others = sorted(scores, reverse=True)
    rival = others[1] if len(others) > 1 and own >= others[0] else others[0]
    return own, own - rival, _deviations(own, scores)


def _dense(evidence: WeighedCandidates, own: float | None) -> tuple[float, float]:
    scores = {each.passage.number: each.passage.dense_score for each in evidence.candidates}
    known = [score for score in scores.values() if score is not None]
    if not known:
        return _UNREADABLE, _UNREADABLE
    return max(known), _deviations(max(known) if own is None else own, known)


def _deviations(value: float, values: Sequence[float]) -> float:
    deviation = statistics.pstdev(values)
    return (value - statistics.fmean(values)) / deviation if deviation > 0 else 0.0


def _share(evidence: WeighedCandidates, held: set[str] | frozenset[str], of: set[str]) -> float:
    total = sum(evidence.weights[name] for name in of)
    return sum(evidence.weights[name] for name in held) / total if total else 1.0


def _heaviest(evidence: WeighedCandidates, missing: set[str] | frozenset[str]) -> float:
    """Share of the question's weight that the heaviest missing word has: the one that the question turns on."""
    total = sum(evidence.weights.values())
    return max((evidence.weights[stem] for stem in missing), default=0.0) / total if total else 0.0


def _strangeness(term: Token) -> float:
    """How much it tells that the evidence does not hold this name. Numbers and identifiers have no other spelling."""
    return 2.0 if any(char.isdigit() for char in term.surface) else 1.0


def _neighbouring_pairs(question: Question, found: Sequence[Token]) -> float:
    """Share of the question's neighbouring words that are neighbours in the unit, too."""
    places: dict[str, list[int]] = {}
    for index, token in enumerate(found):
        places.setdefault(token.stem, []).append(index)
    stems = [term.stem for term in question.terms]
    pairs = list(itertools.pairwise(stems))
    if not pairs:
        return _UNREADABLE
    near = sum(any(abs(i - j) <= _NEAR for i in places.get(a, ()) for j in places.get(b, ())) for a, b in pairs)
    return near / len(pairs)


def _span(question: Question, found: Sequence[Token]) -> float:
    """Words of the unit from the first to the last word of the question, for each that it has."""
    held = [index for index, token in enumerate(found) if token.stem in question.stems]
    distinct = len({found[index].stem for index in held})
    return (held[-1] - held[0] + 1) / distinct if held else _UNREADABLE


def _novelty(question: Question, found: Sequence[Token]) -> float:
    """Share of the unit's words that the question does not have: a unit without any only echoes it."""
    content = [token for token in found if not token.is_stopword]
    return sum(token.stem not in question.stems for token in content) / len(content) if content else 0.0
