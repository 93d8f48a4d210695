"""How well two models find what they should in the same collection: on questions with the documents that answer them, or, where
nobody gave any, on sentences of its own chunks, and each should find the chunk that it is from (known-item search)."""

import hashlib
from collections.abc import Mapping, Sequence

from kit.access.principal import Principal, use_principal
from kit.errors import Unavailable
from kit.language.sentences import UnitKind, split_units
from services.retriever.concurrency import engine_deadline
from services.retriever.indexes.chunk_encoding import readable
from services.retriever.model_change.evaluation import Comparison, Evaluation, Quality, Question, ndcg, reciprocal_rank
from services.retriever.models import Chunk, RerankMode, RevisionKey, SearchRequest, SearchScope, Strategy
from services.retriever.options import READ_TIMEOUT_S
from services.retriever.ports import LexicalIndex
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.searching.search import Searcher

_SUBJECT = "retriever-evaluation"
_FOUND_AT_MOST = 10
_MADE_QUESTIONS = 100
"""Enough for a standard error of 0.03 in nDCG@10; 400 searches take some five seconds."""
_SENTENCE_CHARACTERS = (40, 300)


class Evaluator:
    """Searches a collection as if it had one model, then the other."""

    def __init__(self, searcher: Searcher, lexical: LexicalIndex, revisions: RevisionMap) -> None:
        self._searcher = searcher
        self._lexical = lexical
        self._revisions = revisions

    async def evaluate(
        self, tenant_id: str, collection_id: str, models: tuple[str, str], given: Sequence[Question], now_ms: int
    ) -> Evaluation:
        """`models`: before and after. Raises Unavailable when a part of the search is down: what it would have found would count
        against a model."""
        questions = list(given) or await self._made(tenant_id, collection_id)
        scope = SearchScope(tenant_id, (collection_id,))
        comparisons = []
        for strategy in (Strategy.DENSE, Strategy.HYBRID):
            before, after = [await self._quality(scope, model, strategy, questions) for model in models]
            comparisons.append(Comparison(before, after))
        return Evaluation(*models, len(questions), not given, comparisons[0], comparisons[1], now_ms)

    async def _quality(
        self, scope: SearchScope, model: str, strategy: Strategy, questions: Sequence[Question]
    ) -> Quality:
        gains, reciprocals = [], []
        for question in questions:
            request = SearchRequest(
                scope, (question.text,), top_k=_FOUND_AT_MOST, strategy=strategy, rerank=RerankMode.OFF, no_cache=True
            )
            with use_principal(Principal(scope.tenant_id, _SUBJECT)):
                result = await self._searcher.trial(request, {scope.collection_ids[0]: model})
            if result.degraded:
                raise Unavailable(f"the models cannot be compared now: {result.degraded[0].message}", retry_after_s=5.0)
            if question.chunk_id:
                ranking, relevant = [hit.chunk.chunk_id for hit in result.hits], {question.chunk_id}
            else:
                ranking, relevant = [hit.chunk.document_id for hit in result.hits], set(question.document_ids)
            gains.append(ndcg(list(dict.fromkeys(ranking)), relevant))
            reciprocals.append(reciprocal_rank(list(dict.fromkeys(ranking)), relevant))
        return Quality(_mean(gains), _mean(reciprocals))

    async def _made(self, tenant_id: str, collection_id: str) -> list[Question]:
        """Of chunks chosen by hash, the same ones each time: as few as possible of one document."""
        places = _sample(self._revisions_with_chunks(tenant_id, collection_id), _MADE_QUESTIONS)
        questions = []
        for key, ordinals in places.items():
            async with engine_deadline(READ_TIMEOUT_S):
                stored = await self._lexical.fetch_ordinals(key, ordinals)
            questions += [made for _, chunk in readable(stored) if (made := question_of(chunk)) is not None]
        return questions

    def _revisions_with_chunks(self, tenant_id: str, collection_id: str) -> dict[RevisionKey, int]:
        active = self._revisions.active_in(tenant_id, collection_id)
        return {key: pointer.chunk_count for key, pointer in active if pointer.chunk_count}


def question_of(chunk: Chunk) -> Question | None:
    """A sentence of the chunk, the longest of usual length; None when it has none."""
    shortest, longest = _SENTENCE_CHARACTERS
    sentences = [unit.text for unit in split_units(chunk.text) if unit.kind in (UnitKind.PROSE, UnitKind.ITEM)]
    usable = [text for text in sentences if shortest <= len(text) <= longest] or [
        text[:longest] for text in sentences if text.strip()
    ]
    return Question(max(usable, key=len), chunk_id=chunk.chunk_id) if usable else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _sample(chunk_counts: Mapping[RevisionKey, int], wanted: int) -> dict[RevisionKey, list[int]]:
    """Positions by revision: of every document one, then of every document another, until there are enough."""
    turns = {key: iter(sorted(range(count), key=lambda n: _hash(key, n))) for key, count in chunk_counts.items()}
    order = sorted(turns, key=lambda key: _hash(key, -1))
    chosen: dict[RevisionKey, list[int]] = {}
    missing = min(wanted, sum(chunk_counts.values()))
    while missing:
        for key in order:
            ordinal = next(turns[key], None)
            if ordinal is not None and missing:
                chosen.setdefault(key, []).append(ordinal)
                missing -= 1
    return chosen


def _hash(key: RevisionKey, ordinal: int) -> bytes:
    return hashlib.blake2b(f"{key.document_id} {ordinal}".encode(), digest_size=8).digest()
