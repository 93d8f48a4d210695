"""Embeds texts: one L2-normalised vector each."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from services.reranker.batching import Batcher
from services.reranker.known_texts import KnownTexts
from services.reranker.models import Embeddings, Float32, Lane, TextKind, TextVectors
from services.reranker.passage_cache import text_key
from services.reranker.pooling import pooled, text_vectors
from services.reranker.preparation import Preparation, check_texts

_LANES = {TextKind.QUERY: Lane.QUERY, TextKind.PASSAGE: Lane.PASSAGE}


class Embedding:
    """The use case behind Embed. `known` is given where token vectors are scored with."""

    def __init__(
        self,
        preparation: Preparation,
        batcher: Batcher,
        prompts: Mapping[TextKind, str] | None = None,
        known: KnownTexts | None = None,
    ) -> None:
        self._preparation = preparation
        self._batcher = batcher
        self._prompts = prompts or {}
        self._known = known

    async def embed(
        self, texts: Sequence[str], kind: TextKind, timeout_s: float | None, *, keep_token_vectors: bool = False
    ) -> Embeddings:
        """Vectors in the order of `texts`. The kind decides the priority, and the instruction if the model was trained so.

        Token vectors of queries stay in memory, for passages are scored against the same words next; those of passages go to
        the disk if `keep_token_vectors`.
        """
        check_texts(texts, "texts")
        lane = _LANES[kind]
        self._batcher.check_open(lane)
        prompt = self._prompts.get(kind, "")
        ids = await self._preparation.token_ids([prompt + text for text in texts] if prompt else texts)
        keep = self._keeper(kind, keep_token_vectors=keep_token_vectors)
        rows: list[Float32]
        if keep is None:
            rows = await self._batcher.submit(ids, pooled, lane, timeout_s)
        else:
            encoded = await self._batcher.submit(
                ids, text_vectors, lane, timeout_s, lambda position, vectors: keep(text_key(texts[position]), vectors)
            )
            rows = [each.pooled for each in encoded]
        return Embeddings(np.stack(rows), [len(tokens) for tokens in ids])

    def _keeper(self, kind: TextKind, *, keep_token_vectors: bool) -> Callable[[bytes, TextVectors], None] | None:
        if self._known is None:
            return None
        if kind is TextKind.QUERY:
            return self._known.remember
        return self._known.keep if keep_token_vectors else None
