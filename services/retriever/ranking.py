"""The ranks and scores of one search: fused, duplicates removed, explained. Pure: no engine is asked here."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from services.retriever.fusion import RankedList, convex_combination, reciprocal_rank_fusion
from services.retriever.models import DroppedHit, Explanation, FusionMethod
from services.retriever.options import SearchOptions
from services.retriever.stored_chunk import Candidate, StoredChunk


class Ranking:
    """What the engines found for one search, by chunk id."""

    def __init__(
        self,
        dense: Sequence[Sequence[Candidate]],
        lexical: Sequence[Sequence[Candidate]],
        is_visible: Callable[[StoredChunk], bool],
    ) -> None:
        self.dropped: list[DroppedHit] = []
        visible = {hit.stored: is_visible(hit.stored) for hits in (*dense, *lexical) for hit in hits}
        self._drop_invisible(stored for stored, is_shown in visible.items() if not is_shown)
        dense_lists = [_once_each(hit for hit in hits if visible[hit.stored]) for hits in dense]
        lexical_lists = [_once_each(hit for hit in hits if visible[hit.stored]) for hits in lexical]
        self.stored: dict[str, StoredChunk] = {
            hit.stored.chunk_id: hit.stored for hits in (*lexical_lists, *dense_lists) for hit in hits
        }
        self._dense = dense_lists
        self._lexical = lexical_lists
        self._best_dense = _best(dense_lists)
        self._best_lexical = _best(lexical_lists)

    def fuse(self, method: FusionMethod, options: SearchOptions) -> dict[str, float]:
        """Fused scores, best first, each text once."""
        lists = [
            *(_ranked(hits, options.dense_weight) for hits in self._dense),
            *(_ranked(hits, options.lexical_weight) for hits in self._lexical),
        ]
        fused = reciprocal_rank_fusion(lists) if method is FusionMethod.RRF else convex_combination(lists)
        return self._without_duplicates(fused)

    def explain(self, fused: Mapping[str, float], reranked: Mapping[str, float]) -> dict[str, Explanation]:
        """Where each fused chunk stood at each stage."""
        fused_ranks = {chunk_id: rank for rank, chunk_id in enumerate(fused, start=1)}
        by_rerank = sorted(reranked, key=lambda chunk_id: -reranked[chunk_id])
        rerank_ranks = {chunk_id: rank for rank, chunk_id in enumerate(by_rerank, start=1)}
        explanations = {}
        for chunk_id, fused_score in fused.items():
            dense_rank, dense_score = self._best_dense.get(chunk_id, (None, None))
            lexical_rank, lexical_score = self._best_lexical.get(chunk_id, (None, None))
            explanations[chunk_id] = Explanation(
                dense_rank=dense_rank,
                dense_score=dense_score,
                lexical_rank=lexical_rank,
                lexical_score=lexical_score,
                fused_rank=fused_ranks[chunk_id],
                fused_score=fused_score,
                rerank_rank=rerank_ranks.get(chunk_id),
                rerank_score=reranked.get(chunk_id),
            )
        return explanations

    def _drop_invisible(self, chunks: Iterable[StoredChunk]) -> None:
        for chunk_id, stored in {stored.chunk_id: stored for stored in chunks}.items():
            reason = f"revision {stored.revision_id} of the document is not the active one"
            self.dropped.append(DroppedHit(chunk_id, stored.document_id, "revision", reason))

    def drop_below(self, chunk_ids: Iterable[str], top_k: int) -> None:
        """Notes what was good, but not good enough."""
        for chunk_id in chunk_ids:
            reason = f"it ranks below the {top_k} hits that were asked for"
            self.dropped.append(DroppedHit(chunk_id, self.stored[chunk_id].document_id, "top_k", reason))

    def _without_duplicates(self, fused: Mapping[str, float]) -> dict[str, float]:
        first_with: dict[str, str] = {}
        kept = {}
        for chunk_id, score in fused.items():
            stored = self.stored[chunk_id]
            first = first_with.setdefault(stored.text_hash, chunk_id)
            if first == chunk_id:
                kept[chunk_id] = score
            else:
                reason = f"its text says the same as chunk {first}, which ranks higher"
                self.dropped.append(DroppedHit(chunk_id, stored.document_id, "duplicate", reason))
        return kept


def _once_each(hits: Iterable[Candidate]) -> list[Candidate]:
    """While a revision is being replaced the lexical index may hold a chunk twice; the better one stands for it."""
    first: dict[str, Candidate] = {}
    for hit in hits:
        first.setdefault(hit.stored.chunk_id, hit)
    return list(first.values())


def _ranked(hits: Sequence[Candidate], weight: float) -> RankedList:
    return RankedList([hit.stored.chunk_id for hit in hits], [hit.score for hit in hits], weight)


def _best(lists: Sequence[Sequence[Candidate]]) -> dict[str, tuple[int, float]]:
    """Best rank and best score of each chunk over the queries."""
    best: dict[str, tuple[int, float]] = {}
    for hits in lists:
        for rank, hit in enumerate(hits, start=1):
            known_rank, known_score = best.get(hit.stored.chunk_id, (rank, hit.score))
            best[hit.stored.chunk_id] = (min(rank, known_rank), max(hit.score, known_score))
    return best
