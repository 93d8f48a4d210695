"""What goes into an extractive answer and what comes out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Passage:
    """One retrieved passage of the evidence."""

    number: int
    """Citation number: 1-based rank by retrieval."""
    text: str
    document_id: str
    chunk_id: str
    score: float = 0.0
    """Score of the last ranking stage; comparable within one retrieval only."""
    dense_score: float | None = None
    """Cosine of question and passage, -1 to 1, when the dense engine returned the passage."""
    ordinal: int = 0
    """Position of the chunk in its document, from 0."""
    char_start: int = 0
    """Where the chunk starts in its document."""
    document_name: str = ""
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnswerSentence:
    """One unit of the answer and where it stands."""

    text: str
    """As shown: white space collapsed, except the line breaks of lists and records."""
    number: int
    """Citation number of its passage."""
    start: int
    """First character in the passage's text."""
    end: int
    """One past the last character."""
    score: float
    """How well it answers, about 0 to 1; comparable within one answer only."""


@dataclass(frozen=True)
class ExtractiveAnswer:
    """The sentences that answer best, in reading order, or an honest refusal."""

    sentences: tuple[AnswerSentence, ...]
    answerable: bool
    confidence: float
    """Estimated probability, 0 to 1, that the evidence answers the question."""
    reason: str = ""
    """When refused: `NO_EVIDENCE`, `WEAK_EVIDENCE` or `EMPTY_QUESTION`."""
    closest: tuple[AnswerSentence, ...] = ()
    """When refused: the closest unit of each of the closest passages, best first."""
    degraded_reason: str = ""
    """When the sentences were chosen by words alone: why the scorer did not help. Empty otherwise."""
