"""Value of each candidate."""

from collections.abc import Sequence

from services.orchestrator.without_model.features import Candidate, Scored, WeighedCandidates
from services.orchestrator.without_model.settings import ExtractiveSettings, RankWeights


def prefilter(evidence: WeighedCandidates, settings: ExtractiveSettings) -> list[Candidate]:
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
