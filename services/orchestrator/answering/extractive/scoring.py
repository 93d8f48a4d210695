"""Value of each candidate, and how likely the evidence answers the question at all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kit.language.cues import STRICT_KINDS, is_negated
from kit.language.questions import Question
from kit.language.terms import Token
from services.orchestrator.answering.extractive.features import Candidate, Evidence
from services.orchestrator.answering.extractive.settings import Calibration, ExtractiveSettings, RankWeights


@dataclass(frozen=True)
class Scored:
    """A candidate with its value; values of one question are comparable with each other only."""

    candidate: Candidate
    value: float
    semantic: float | None
    """Similarity to the question, when the scorer said one on the known scale (-1 to 1)."""


@dataclass(frozen=True)
class Signals:
    """What speaks for and against the evidence answering the question; 0 to 1 but for the similarities (-1 to 1)."""

    semantic: float | None
    """Similarity of question and best unit."""
    dense: float | None
    """Best cosine of question and passage."""
    coverage: float
    passage_coverage: float
    names: float
    """Share of the question's names and numbers that stand in or near the best unit; 1 when it has none."""
    unknown_name: float
    """1 when a name of the question stands nowhere in the evidence, 2 when a number does not: "Apollo 13" is not "Apollo 11"."""
    negation: float
    """1 when the question asks for what is *not* so and the best unit denies nothing."""
    missing_type: float
    """How clearly the best unit lacks the number or duration that the question asks for."""


def prefilter(evidence: Evidence, settings: ExtractiveSettings) -> list[Candidate]:
    """The units worth the scorer's time, best first by words alone, each text once."""
    ranked = sorted(evidence.candidates, key=lambda c: -_value(c, 0.0, settings.without_scorer))
    kept: list[Candidate] = []
    seen: set[str] = set()
    left = settings.max_scored_chars
    for candidate in ranked:
        text = candidate.unit.text
        if text in seen or (kept and len(text) > left):
            continue
        seen.add(text)
        kept.append(candidate)
        left -= len(text)
        if len(kept) >= settings.max_scored_units:
            break
    return kept


def rank(
    candidates: Sequence[Candidate], semantics: Sequence[float] | None, settings: ExtractiveSettings
) -> list[Scored]:
    """Candidates with their values, best first; ties keep the order of retrieval and reading."""
    if semantics is None:
        scored = [Scored(c, _value(c, 0.0, settings.without_scorer), None) for c in candidates]
    else:
        known_scale = all(abs(score) <= 1.01 for score in semantics)
        scale = semantics if known_scale else _rescaled(semantics)
        scored = [
            Scored(c, _value(c, s, settings.with_scorer), s if known_scale else None)
            for c, s in zip(candidates, scale, strict=True)
        ]
    return sorted(scored, key=lambda s: (-s.value, s.candidate.passage.number, s.candidate.index))


def confidence(signals: Signals, settings: ExtractiveSettings) -> float:
    """Probability that the evidence answers the question."""
    model = _calibration(signals, settings)
    logit = (
        model.bias
        + model.semantic * (signals.semantic or 0.0)
        + model.dense * (signals.dense or 0.0)
        + model.coverage * signals.coverage
        + model.passage_coverage * signals.passage_coverage
        + model.names * signals.names
        + model.unknown_name * signals.unknown_name
        + model.negation * signals.negation
        + model.missing_type * signals.missing_type
    )
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, logit))))


def read_signals(question: Question, evidence: Evidence, best: Scored) -> Signals:
    """What the best unit and the evidence as a whole say about answerability."""
    candidate = best.candidate
    dense = (c.passage.dense_score for c in evidence.candidates if c.passage.dense_score is not None)
    names = {term.stem for term in question.terms if term.is_exact}
    weight = sum(evidence.weights[name] for name in names)
    held = sum(evidence.weights[name] for name in names & candidate.nearby)
    known = frozenset[str]().union(*(c.nearby for c in evidence.candidates))
    return Signals(
        semantic=best.semantic,
        dense=max(dense, default=None),
        coverage=candidate.coverage,
        passage_coverage=candidate.passage_coverage,
        names=held / weight if weight else 1.0,
        unknown_name=max((_strangeness(t) for t in question.terms if t.stem in names - known), default=0.0),
        negation=float(is_negated(question.text) and not is_negated(candidate.unit.text, loosely=True)),
        missing_type=(1.0 - candidate.cue) if question.kind in STRICT_KINDS else 0.0,
    )


def _strangeness(term: Token) -> float:
    """How much it tells that the evidence does not hold this name. Numbers and identifiers have no other spelling."""
    return 2.0 if any(char.isdigit() for char in term.surface) else 1.0


def _calibration(signals: Signals, settings: ExtractiveSettings) -> Calibration:
    if signals.semantic is not None:
        return settings.semantic_only if signals.dense is None else settings.semantic_and_dense
    return settings.lexical_only if signals.dense is None else settings.dense_only


def _value(candidate: Candidate, semantic: float, weights: RankWeights) -> float:
    return (
        weights.semantic * semantic
        + weights.coverage * candidate.coverage
        + weights.context * candidate.context
        + weights.passage_coverage * candidate.passage_coverage
        + weights.cue * candidate.cue
        + weights.rank * candidate.rank
    )


def _rescaled(semantics: Sequence[float]) -> list[float]:
    """Scores of an unknown scale, spread over the range that similarities of one evidence set usually have."""
    low, high = min(semantics), max(semantics)
    if high <= low:
        return [0.5] * len(semantics)
    return [0.3 + 0.4 * (score - low) / (high - low) for score in semantics]
