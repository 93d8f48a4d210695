"""What a research run plans and finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from services.orchestrator.log.events import Degradation, DroppedPassage, Evidence, SearchFilter, StageRank
from services.orchestrator.research.question.names import Name

NO_FILTER = SearchFilter()
SHORT, REPORT = "short", "report"
ANSWERS = (SHORT, REPORT)
"""Forms of an answer."""


class Effort(Enum):
    """How much work a question is worth."""

    AUTO = "auto"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Purpose(Enum):
    """Why something is searched for."""

    QUESTION = "question"
    """The question itself."""
    SUBJECT = "subject"
    """A name of the question, so that each side of a comparison is looked at."""
    PART = "part"
    """One of several questions in one, or a sub-query of a model's plan."""
    FILTERED = "filtered"
    """The question among the passages of the time or the channel that it names."""
    PHRASE = "phrase"
    """A phrase that must be found, by its words alone."""
    NAME = "name"
    """The second hop: a name that a found passage mentions."""
    REWRITE = "rewrite"
    """Other words for the same."""
    HYPOTHESIS = "hypothesis"
    """A passage as it might answer the question, searched by meaning (HyDE, Gao et al. 2022)."""
    TOOL = "tool"
    """A call of a tool that the request names."""


@dataclass(frozen=True)
class Unclear:
    """What the user is asked before a thorough search."""

    question: str
    """Empty where the question can be answered as it stands."""


@dataclass(frozen=True)
class PlannedSearch:
    """One search of a round."""

    text: str
    purpose: Purpose
    strategy: str = ""
    """`lexical`, `dense` or `hybrid`; empty: the plan's."""
    must_phrases: Sequence[str] = ()
    filter: SearchFilter = NO_FILTER
    """Of this search alone, besides the plan's."""


@dataclass(frozen=True)
class PlannedCall:
    """A call of a tool besides the search."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class ResearchPlan:
    """What is searched for first."""

    route: str
    reasons: Sequence[str]
    searches: Sequence[PlannedSearch]
    must_phrases: Sequence[str] = ()
    should_phrases: Sequence[str] = ()
    filter: SearchFilter = NO_FILTER
    """Of all searches: the request's own."""
    planned_by: str = "rules"
    """`rules`, or `model`."""
    calls: Sequence[PlannedCall] = ()
    """Of tools that the request names, before the first round."""
    has_seen_names: bool = False
    """Whether the model that made it was shown names of documents: text of others."""


class PartKind(Enum):
    """What an answer needs to know of the question."""

    SUBJECT = "subject"
    """What it is about."""
    BRIDGE = "bridge"
    """Who or what stands in a relation to a subject: "the director of …"."""
    ASKED = "asked"
    """What is asked of it."""


@dataclass(frozen=True)
class QuestionPart:
    """One thing that an answer must have."""

    text: str
    kind: PartKind
    subject: Name | None = None
    stems: frozenset[str] = frozenset()
    """Of the words that a passage should have."""
    is_of_relation: bool = False
    """Whether it is asked of somebody who stands in a relation to the subject."""


@dataclass(frozen=True)
class RankedPassages:
    """What one search found."""

    search: PlannedSearch
    chunk_ids: Sequence[str]
    """Best first."""
    ranks: Mapping[str, Sequence[StageRank]] = field(default_factory=dict)
    """By chunk: where it stood at each stage of this search."""
    dropped: Sequence[DroppedPassage] = ()


@dataclass(frozen=True)
class RoundFound:
    """What the searches of one round found. It is what the log keeps of the round."""

    lists: Sequence[RankedPassages] = ()
    passages: Sequence[Evidence] = ()
    """Of all lists, each once, without the documents that were deleted meanwhile. Their numbers mean nothing yet."""
    degraded: Sequence[Degradation] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    strategy: str = ""
    around: Mapping[str, Sequence[Evidence]] = field(default_factory=dict)
    """By chunk of a message: the message before it and the one after it, in reading order."""
