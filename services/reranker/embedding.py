"""Embeds texts: one L2-normalised vector each."""

from collections.abc import Sequence

import numpy as np

from services.reranker.batching import Batcher
from services.reranker.models import Embeddings, Lane, TextKind
from services.reranker.pooling import mean_pool
from services.reranker.preparation import Preparation, check_texts

_LANES = {TextKind.QUERY: Lane.QUERY, TextKind.PASSAGE: Lane.PASSAGE}


class Embedding:
    """The use case behind Embed."""

    def __init__(self, preparation: Preparation, batcher: Batcher) -> None:
        self._preparation = preparation
        self._batcher = batcher

    async def embed(self, texts: Sequence[str], kind: TextKind, timeout_s: float | None) -> Embeddings:
        """Vectors in the order of `texts`. all-MiniLM-L6-v2 takes no instruction: the kind decides the priority only."""
        check_texts(texts, "texts")
        lane = _LANES[kind]
        self._batcher.check_open(lane)
        ids = await self._preparation.token_ids(texts)
        vectors = await self._batcher.submit(ids, mean_pool, lane, timeout_s)
        return Embeddings(np.stack(vectors), [len(tokens) for tokens in ids])
