"""The ranks and scores of one search: fused, filtered, explained. Pure: no engine is asked here.

Stages run in the order of the methods; each notes what it drops.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from kit.language.phrases import contains_phrase
from kit.ranking.duplicates import Duplicates
from kit.ranking.fusion import RankedList, convex_combination, reciprocal_rank_fusion
from services.retriever.indexes.chunk_encoding import citable_text
from services.retriever.indexes.engine_answer import Lists
from services.retriever.indexes.similarity import Levels
from services.retriever.indexes.stored_chunk import Candidate, ChunkUnreadable, StoredChunk
from services.retriever.models import Chunk, DroppedHit, EmbeddingSpace, Explanation, FusionMethod, SearchPlan
from services.retriever.searching import gate
from services.retriever.searching.engines import SpaceCosines

_BM25_FLOOR = 0.0
_ACROSS_DENSE, _ACROSS_LEXICAL = 0.97, 0.1
"""Weights for a chunk in a language that the query is not in, in place of 0.5 and 0.5: that it lacks the query's words says nothing
against it, and those that it has are names. nDCG@10 with both engines, XQuAD: English questions on paragraphs half in English and
half in Chinese 0.63 → 0.84, Chinese ones 0.59 → 0.88 (vectors alone 0.81, 0.88); half in German 0.79 → 0.92, 0.84 → 0.94; English
questions on paragraphs in German alone 0.81 → 0.92, in Chinese 0.81 → 0.86. Within a language nothing changes (docs/adr/0015)."""


class Ranking:
    """What the engines found for one search, by chunk id."""

    def __init__(
        self,
        dense: Lists,
        lexical: Lists,
        is_visible: Callable[[StoredChunk], bool],
        phrases: Sequence[tuple[str, ...]] = (),
    ) -> None:
        """`phrases` are what each hit of each query must contain; empty when nothing must."""
        self._made_of = dense, lexical, is_visible, phrases
        self.dropped: list[DroppedHit] = []
        self._chunks: dict[str, Chunk] = {}
        invisible: dict[str, StoredChunk] = {}
        visible_dense = [_visible(hits, is_visible, invisible) for hits in dense]
        visible_lexical = [_visible(hits, is_visible, invisible) for hits in lexical]
        self._drop_invisible(invisible)
        self._all = _stored(visible_dense, visible_lexical)
        self._dense = self._having(phrases, visible_dense)
        self._lexical = self._having(phrases, visible_lexical)
        self.stored = _stored(self._lexical, self._dense)
        self._drop_without_phrases()
        self._completed: list[dict[str, float]] = [{} for _ in self._dense]
        self._best_dense = _best(self._dense)
        self._best_lexical = _best(self._lexical)
        self.cosines = _best_cosines(self._dense)

    def without(self, chunk_id: str) -> "Ranking":
        """As if the engines had not found it."""
        dense, lexical, is_visible, phrases = self._made_of
        left = [
            [[hit for hit in hits if hit.stored.chunk_id != chunk_id] for hits in lists] for lists in (dense, lexical)
        ]
        return Ranking(left[0], left[1], is_visible, phrases)

    def chunk(self, chunk_id: str) -> Chunk:
        """The whole chunk, decoded once. Raises ChunkUnreadable."""
        if chunk_id not in self._chunks:
            self._chunks[chunk_id] = (self.stored.get(chunk_id) or self._all[chunk_id]).chunk
        return self._chunks[chunk_id]

    def without_cosine(self) -> list[str]:
        """The chunks that a dense list lacks."""
        if not self._dense:
            return list(self.stored)
        ids = [{hit.stored.chunk_id for hit in hits} for hits in self._dense]
        return [chunk_id for chunk_id in self.stored if not all(chunk_id in known for known in ids)]

    def complete(self, cosines: SpaceCosines, levels: Sequence[Levels] = ()) -> None:
        """Fills in the cosines that the dense lists lack, from those of each query; no ranks come of it. `levels`: by query, what
        makes cosines comparable where several groups were searched."""
        for space, rows in cosines.items():
            for row, found in enumerate(rows):
                listed = {hit.stored.chunk_id for hit in self._dense[row]} if self._dense else set()
                missing = {chunk_id: cosine for chunk_id, cosine in found.items() if chunk_id not in listed}
                if self._dense:
                    self._completed[row] |= self._relevances(missing, space, levels[row]) if levels else missing
                for chunk_id, cosine in missing.items():
                    self.cosines[chunk_id] = max(cosine, self.cosines.get(chunk_id, -1.0))

    def _relevances(self, cosines: Mapping[str, float], space: EmbeddingSpace, levels: Levels) -> dict[str, float]:
        """Without those whose group was not searched, and those that cannot be read."""
        relevances = {}
        for chunk_id, cosine in cosines.items():
            with contextlib.suppress(ChunkUnreadable):
                level = levels.of(space, self.chunk(chunk_id).language)
                if level is not None:
                    relevances[chunk_id] = level.relevance(cosine)
        return relevances

    def fuse(
        self,
        plan: SearchPlan,
        query_weights: Sequence[float] = (),
        spoken: Sequence[tuple[str, ...] | None] = (),
    ) -> dict[str, float]:
        """Fused scores, best first. `query_weights` have one entry a query, or none when all count alike; so have `spoken`, the
        languages that the query is in, None where it is not known or of no consequence."""
        is_by_language = plan.weighs_by_language and self._dense and self._lexical
        across = [self._across(row, languages) for row, languages in enumerate(spoken if is_by_language else ())]
        dense = self._ranked(self._dense, plan.dense_weight, query_weights, completed=self._completed)
        lexical = self._ranked(self._lexical, plan.lexical_weight, query_weights, floor=_BM25_FLOOR)
        lists = [
            *_reweighted(dense, across, _ACROSS_DENSE, query_weights),
            *_reweighted(lexical, across, _ACROSS_LEXICAL, query_weights),
        ]
        return reciprocal_rank_fusion(lists) if plan.fusion is FusionMethod.RRF else convex_combination(lists)

    def _across(self, row: int, spoken: tuple[str, ...] | None) -> list[str]:
        """The candidates of a query that are in none of the languages that it is in."""
        if spoken is None:
            return []
        ids = dict.fromkeys(hit.stored.chunk_id for hit in chain(self._dense[row], self._lexical[row]))
        return [chunk_id for chunk_id in ids if not spoken or self.chunk(chunk_id).language not in ("", *spoken)]

    def without_noise(
        self, fused: Mapping[str, float], min_score: float | None, noise: gate.Noise | None
    ) -> dict[str, float]:
        """Without what is farther from the queries than the threshold."""
        out = gate.below(fused, self.cosines, self._best_lexical, min_score=min_score, noise=noise)
        for chunk_id, reason in out.items():
            self.drop(chunk_id, "gate", reason)
        return {chunk_id: score for chunk_id, score in fused.items() if chunk_id not in out}

    def without_duplicates(
        self, fused: Mapping[str, float], depth: int, queries: Sequence[str] = ()
    ) -> dict[str, float]:
        """Each text once; nearly the same ones among the best `depth` too, unless they differ in a word of the queries."""
        groups = Duplicates(lambda chunk_id: self.stored[chunk_id].text_hash, self.chunk, queries)
        kept, removed = groups.remove(fused, depth)
        for each in removed:
            how = "the same" if each.stage == "duplicate" else "nearly the same"
            self.drop(each.chunk_id, each.stage, f"its text says {how} as chunk {each.kept_id}, which stands for it")
        return kept

    def is_first_everywhere(self, chunk_id: str) -> bool:
        """Whether both engines have it first, for any of the queries."""
        nowhere = (0, 0.0)
        ranks = (self._best_dense.get(chunk_id, nowhere)[0], self._best_lexical.get(chunk_id, nowhere)[0])
        return ranks == (1, 1)

    def explain(
        self, chosen: Sequence[str], fused: Mapping[str, float], reranked: Mapping[str, float], *, is_diverse: bool
    ) -> dict[str, Explanation]:
        """Where each chosen chunk stood at each stage. `is_diverse`: they were chosen in the order of diversity."""
        fused_ranks, rerank_ranks = _ranks(fused), _ranks(sorted(reranked, key=lambda chunk_id: -reranked[chunk_id]))
        diversity_ranks = _ranks(chosen) if is_diverse else {}
        explanations = {}
        for chunk_id in chosen:
            dense_rank, _ = self._best_dense.get(chunk_id, (None, None))
            lexical_rank, lexical_score = self._best_lexical.get(chunk_id, (None, None))
            explanations[chunk_id] = Explanation(
                dense_rank=dense_rank,
                dense_score=self.cosines.get(chunk_id),
                lexical_rank=lexical_rank,
                lexical_score=lexical_score,
                fused_rank=fused_ranks[chunk_id],
                fused_score=fused[chunk_id],
                rerank_rank=rerank_ranks.get(chunk_id),
                rerank_score=reranked.get(chunk_id),
                diversity_rank=diversity_ranks.get(chunk_id),
            )
        return explanations

    def drop(self, chunk_id: str, stage: str, reason: str) -> None:
        """Notes that a candidate was left out."""
        stored = self.stored.get(chunk_id) or self._all[chunk_id]
        self.dropped.append(DroppedHit(chunk_id, stored.document_id, stage, reason))

    def _ranked(
        self,
        lists: Lists,
        weight: float,
        query_weights: Sequence[float],
        *,
        floor: float | None = None,
        completed: Sequence[Mapping[str, float]] = (),
    ) -> Iterable[RankedList]:
        for row, hits in enumerate(lists):
            yield RankedList(
                [hit.stored.chunk_id for hit in hits],
                [hit.score for hit in hits],
                weight * (query_weights[row] if query_weights else 1.0),
                floor,
                completed[row] if completed else {},
            )

    def _drop_invisible(self, chunks: Mapping[str, StoredChunk]) -> None:
        for chunk_id, stored in chunks.items():
            reason = f"revision {stored.revision_id} of the document is not the active one"
            self.dropped.append(DroppedHit(chunk_id, stored.document_id, "revision", reason))

    def _having(self, phrases: Sequence[tuple[str, ...]], lists: list[list[Candidate]]) -> list[list[Candidate]]:
        """Each query's list without chunks that lack one of its phrases. The engines are not trusted with it: one may not
        know phrases, and what the answer calls exact must be."""
        if not any(phrases):
            return lists
        return (
            [
                [hit for hit in hits if all(self._has(hit.stored, phrase) for phrase in mine)]
                for hits, mine in zip(lists, phrases, strict=True)
            ]
            if lists
            else lists
        )

    def _has(self, stored: StoredChunk, phrase: str) -> bool:
        if stored.chunk_id not in self._chunks:
            try:
                self._chunks[stored.chunk_id] = stored.chunk
            except ChunkUnreadable:
                return False
        return contains_phrase(citable_text(self._chunks[stored.chunk_id]), phrase)

    def _drop_without_phrases(self) -> None:
        for chunk_id in self._all:
            if chunk_id not in self.stored:
                self.drop(chunk_id, "must_phrase", "it does not contain a phrase that it must contain")


def _reweighted(
    lists: Iterable[RankedList], across: Sequence[Sequence[str]], weight: float, query_weights: Sequence[float]
) -> Iterable[RankedList]:
    """The lists, one a query, with another weight for some ids of each."""
    for row, ranked in enumerate(lists):
        mine = weight * (query_weights[row] if query_weights else 1.0)
        yield replace(ranked, weights=dict.fromkeys(across[row], mine)) if across else ranked


def _ranks(chunk_ids: Iterable[str]) -> dict[str, int]:
    return {chunk_id: rank for rank, chunk_id in enumerate(chunk_ids, start=1)}


def _visible(
    hits: Iterable[Candidate], is_visible: Callable[[StoredChunk], bool], invisible: dict[str, StoredChunk]
) -> list[Candidate]:
    """Each chunk once: while a revision is being replaced the lexical index may hold a chunk twice; the better one stands for it.
    What may not be seen goes to `invisible`."""
    first: dict[str, Candidate] = {}
    for hit in hits:
        if is_visible(hit.stored):
            first.setdefault(hit.stored.chunk_id, hit)
        else:
            invisible.setdefault(hit.stored.chunk_id, hit.stored)
    return list(first.values())


def _stored(*engines: Lists) -> dict[str, StoredChunk]:
    return {hit.stored.chunk_id: hit.stored for lists in engines for hits in lists for hit in hits}


def _best_cosines(lists: Lists) -> dict[str, float]:
    """Highest cosine of each chunk over the queries."""
    best: dict[str, float] = {}
    for hit in chain.from_iterable(lists):
        cosine = hit.score if hit.cosine is None else hit.cosine
        best[hit.stored.chunk_id] = max(cosine, best.get(hit.stored.chunk_id, -1.0))
    return best


def _best(lists: Lists) -> dict[str, tuple[int, float]]:
    """Best rank and best score of each chunk over the queries."""
    best: dict[str, tuple[int, float]] = {}
    for hits in lists:
        for rank, hit in enumerate(hits, start=1):
            known_rank, known_score = best.get(hit.stored.chunk_id, (rank, hit.score))
            best[hit.stored.chunk_id] = (min(rank, known_rank), max(hit.score, known_score))
    return best
