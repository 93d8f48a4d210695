"""A candidate with what it is worth."""

from dataclasses import dataclass

from services.orchestrator.answering.extractive.features import Candidate


@dataclass(frozen=True)
class Scored:
    """A candidate with its value; values of one question are comparable with each other only."""

    candidate: Candidate
    value: float
    semantic: float | None
    """Similarity to the question, when the scorer said one on the known scale (-1 to 1)."""
