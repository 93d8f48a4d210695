"""Reranking by a cross-encoder: it reads the query together with each passage, so nothing can be kept for the next query."""

from collections.abc import Sequence

from services.reranker.batching.batching import Batcher
from services.reranker.embedding.pooling import pair_score
from services.reranker.embedding.preparation import PairPreparation, check_texts
from services.reranker.models import Lane


class CrossEncoding:
    """The use case behind Rerank where a cross-encoder runs. Scores are what the model was trained to give, for most a
    probability in [0, 1]."""

    def __init__(self, preparation: PairPreparation, batcher: Batcher) -> None:
        self._preparation = preparation
        self._batcher = batcher

    async def rerank(
        self,
        query_text: str,
        passages: Sequence[str],
        timeout_s: float | None,
        *,
        candidates_are_ranked: bool = False,
        content_hashes: Sequence[str] = (),
    ) -> list[float]:
        """One score per passage, in the order of `passages`; equal passages are read once. What has ranked them before, and
        that they were met before, makes no difference to the model."""
        del candidates_are_ranked, content_hashes
        check_texts([query_text], "query_text")
        check_texts(passages, "passages")
        self._batcher.check_open(Lane.RERANK)
        distinct = list(dict.fromkeys(passages))
        pairs = await self._preparation.token_ids(query_text, distinct)
        scores = dict(zip(distinct, await self._batcher.submit(pairs, pair_score, Lane.RERANK, timeout_s), strict=True))
        return [scores[passage] for passage in passages]
