"""Passages in a dict, and a model server that goes by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from groundwork.retriever.v1 import retriever_pb2 as pb

from kit.language.phrases import contains_phrase
from services.tools.errors import ToolError
from services.tools.models import Passage
from services.tools.passages.retrieval import Degradation, Found, SearchQuery, Section, Strategy, Window
from services.tools.ports import ClaimVerdict, EmbeddedQuery, JudgedClaims, Vector
from tests.unit.retriever.fakes import embed


def words(text: str) -> set[str]:
    return {word.strip(".,;:?!()").lower() for word in text.split()} - {""}


def make_passage(chunk_id: str, text: str, *, document_id: str = "d1", ordinal: int = 0, **fields: Any) -> Passage:
    """A passage of a document, with the message that it came in."""
    known: dict[str, Any] = {"document_name": f"{document_id}.md", "collection_id": "default", **fields}
    chunk = pb.Chunk(chunk_id=chunk_id, document_id=document_id, text=text, ordinal=ordinal, **known)
    return Passage(
        chunk_id,
        document_id,
        chunk.document_name,
        chunk.collection_id,
        text,
        chunk.page,
        tuple(chunk.heading_path),
        ordinal=ordinal,
        metadata=dict(chunk.metadata),
        content_hash=chunk.content_hash,
        hit=pb.Hit(chunk=chunk),
    )


@dataclass
class FakeRetriever:
    """Retriever of one tenant. Ranks by the share of a query's words that a passage has; `error` is raised while it is set."""

    documents: dict[str, list[Passage]] = field(default_factory=dict)
    degraded: Sequence[Degradation] = ()
    error: ToolError | None = None
    queries: list[SearchQuery] = field(default_factory=list)
    fetched: list[Sequence[str]] = field(default_factory=list)

    def add(self, document_id: str, *texts: str, **fields: Any) -> list[str]:
        """The ids of its chunks: d1-0, d1-1 …"""
        self.documents[document_id] = [
            make_passage(f"{document_id}-{ordinal}", text, document_id=document_id, ordinal=ordinal, **fields)
            for ordinal, text in enumerate(texts)
        ]
        return [passage.chunk_id for passage in self.documents[document_id]]

    async def search(self, query: SearchQuery) -> Found:
        self._check()
        self.queries.append(query)
        scored = [
            (max(len(words(each) & words(passage.text)) / len(words(each)) for each in query.queries), passage)
            for passages in self.documents.values()
            for passage in passages
            if _matches(query, passage)
        ]
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])[: query.top_k]
        strategy = Strategy.HYBRID if query.strategy is Strategy.AUTO else query.strategy
        return Found(tuple(_scored(passage, score) for score, passage in best), self.degraded, strategy.value)

    async def fetch(self, chunk_ids: Sequence[str], window: int = 0) -> Sequence[Window]:
        self._check()
        self.fetched.append(chunk_ids)
        places = {
            passage.chunk_id: (passages, index)
            for passages in self.documents.values()
            for index, passage in enumerate(passages)
        }
        return [
            Window(passages[index], passages[max(0, index - window) : index], passages[index + 1 : index + 1 + window])
            for passages, index in (places[chunk_id] for chunk_id in chunk_ids if chunk_id in places)
        ]

    async def section(self, document_id: str, first_ordinal: int, chunk_count: int) -> Section:
        self._check()
        passages = self.documents.get(document_id, [])
        return Section(passages[first_ordinal : first_ordinal + chunk_count], len(passages))

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


def _scored(passage: Passage, score: float) -> Passage:
    hit = pb.Hit(chunk=passage.hit.chunk, score=score)
    return Passage(**{**vars(passage), "score": score, "hit": hit})


def _matches(query: SearchQuery, passage: Passage) -> bool:
    return (
        passage.collection_id in query.collection_ids
        and (not query.document_ids or passage.document_id in query.document_ids)
        and all(passage.metadata.get(key) in values for key, values in query.metadata.items())
        and all(contains_phrase(passage.text, phrase) for phrase in query.must_phrases)
        and _is_dated(query, passage.metadata.get("date"))
    )


def _is_dated(query: SearchQuery, date: str | None) -> bool:
    if query.date_from is None and query.date_to is None:
        return True
    if date is None:
        return False
    moment = datetime.fromisoformat(date).replace(tzinfo=UTC)
    return (query.date_from or moment) <= moment and (query.date_to is None or moment < query.date_to)


@dataclass
class FakeModels:
    """ModelServer by words. `error` is raised while it is set."""

    error: ToolError | None = None
    is_measured: bool = True
    """Whether its judge may say that a source supports a claim."""

    async def rerank(
        self, query_text: str, texts: Sequence[str], content_hashes: Sequence[str] = ()
    ) -> Sequence[float]:
        self._check()
        return [float(len(words(query_text) & words(text))) for text in texts]

    async def embed_query(self, text: str) -> EmbeddedQuery:
        [vector] = await self.embed_passages([text])
        return EmbeddedQuery(vector, "fake-model")

    async def embed_passages(self, texts: Sequence[str], model: str = "") -> Sequence[Vector]:
        self._check()
        return list(embed(texts))

    async def judge(self, claims: Sequence[str], passages: Sequence[tuple[str, str]]) -> JudgedClaims:
        self._check()
        return JudgedClaims("fake/1", self.is_measured, [_by_words(claim, passages) for claim in claims])

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


def _by_words(claim: str, passages: Sequence[tuple[str, str]]) -> ClaimVerdict:
    """The passage that shares most of the claim's words; that share is the probability, 0 where a number or a name is missing."""
    names = {word.strip(".").lower() for word in claim.split()[1:] if word[0].isupper() or word[0].isdigit()}
    shares = [
        len(words(claim) & words(text)) / max(1, len(words(claim))) if names <= words(text) else 0.0
        for _, text in passages
    ]
    best = max(range(len(shares)), key=shares.__getitem__)
    return ClaimVerdict(shares[best], best, passages[best][1])
