"""What an evaluation is made of: a collection of documents and queries, who is relevant to whom, and what a system answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Qrels = Mapping[str, Mapping[str, int]]
"""Query id → document id → grade: 0 not relevant, 1 relevant, more is better. A pair that is not listed counts as 0."""
KIND = "unanswerable"
"""The facet of a question without an answer that says why it has none."""


@dataclass(frozen=True)
class Document:
    """One document of a collection."""

    document_id: str
    title: str
    text: str


@dataclass(frozen=True)
class Query:
    """One question. `facets` are what results are broken down by, for example category, language, difficulty."""

    query_id: str
    text: str
    facets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TestCollection:
    """Documents, queries and judgements. Each query has at least one relevant document among the documents."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]
    qrels: Qrels
    about: str = ""
    """How it was read, and what was left out."""
    unanswerable: Sequence[Query] = ()
    """Questions that no document answers; their facet `unanswerable` says why."""

    __test__ = False  # not a test, whatever its name says to pytest


@dataclass(frozen=True)
class Mode:
    """One way of searching: a name and the options of `POST /v1/search` that make it."""

    name: str
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def reranks(self) -> bool:
        """Whether reranking is asked for, whatever the server's default is."""
        return self.options.get("rerank") == "on"


@dataclass(frozen=True)
class Answer:
    """What one search gave: documents by their best passage, best first, each once."""

    document_ids: Sequence[str]
    latency_ms: float
    """From sending the request to the whole answer, as the client sees it."""
    degraded: Sequence[str] = ()
    """Parts that the answer had to do without."""
    server_ms: float | None = None
    """What the server says that the search itself took."""
    cosine: float | None = None
    """Of the query with the most similar passage that was returned; None when there is none, or none whose cosine is known."""


Run = Mapping[str, Answer]
"""Query id → answer, of one mode."""


@dataclass(frozen=True)
class ModeResult:
    """All that was measured of one mode. `deep` is a second pass with as many hits as the API gives, for recall; empty when it was
    left out."""

    mode: Mode
    run: Run
    deep: Run = field(default_factory=dict)
