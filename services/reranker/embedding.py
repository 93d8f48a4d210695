"""Embeds texts: one L2-normalised vector each."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from services.reranker.batching import Batcher
from services.reranker.known_texts import KnownTexts
from services.reranker.models import Embeddings, Float32, Lane, TextKind, TextVectors, TokenIds
from services.reranker.passage_cache import query_key, text_key
from services.reranker.pooling import pooled
from services.reranker.ports import Encoder
from services.reranker.preparation import Preparation, check_texts

_LANES = {TextKind.QUERY: Lane.QUERY, TextKind.PASSAGE: Lane.PASSAGE}


class Embedding:
    """The use case behind Embed. `known` is given where token vectors are scored with."""

    def __init__(
        self,
        preparation: Preparation,
        batcher: Batcher,
        known: KnownTexts | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        """`encoder`: another one than the batcher's own."""
        self._preparation = preparation
        self._batcher = batcher
        self._known = known
        self._encoder = encoder

    async def embed(
        self, texts: Sequence[str], kind: TextKind, timeout_s: float | None, *, keep_token_vectors: bool = False
    ) -> Embeddings:
        """Vectors in the order of `texts`. The kind decides the priority, and the instruction if the model was trained so.

        Token vectors of queries stay in memory, for passages are scored against the same words next; those of passages go to
        the disk if `keep_token_vectors`, and what is there already is not computed again: a file whose embedding was interrupted
        goes on where it was.
        """
        check_texts(texts, "texts")
        lane = _LANES[kind]
        self._batcher.check_open(lane)
        ids = await self._preparation.token_ids(texts, kind)
        rows: Sequence[Float32]
        if self._known is None or (kind is TextKind.PASSAGE and not keep_token_vectors):
            rows = await self._batcher.submit(ids, pooled, lane, timeout_s, encoder=self._encoder)
        else:
            keys = [query_key(text) if kind is TextKind.QUERY else text_key(text) for text in texts]
            there = (await self._known.find(keys)).vectors if kind is TextKind.PASSAGE else {}
            keep = self._known.remember if kind is TextKind.QUERY else self._known.keep
            rows = [each.pooled for each in await self._completed(keys, ids, there, keep, kind, timeout_s)]
        return Embeddings(np.stack(rows), [len(tokens) for tokens in ids])

    async def _completed(
        self,
        keys: Sequence[bytes],
        ids: Sequence[TokenIds],
        there: Mapping[bytes, TextVectors],
        keep: Callable[[bytes, TextVectors], None],
        kind: TextKind,
        timeout_s: float | None,
    ) -> list[TextVectors]:
        """Those that are there, and the others as the model sees them, which are kept as they come."""
        missing = [position for position, key in enumerate(keys) if key not in there]
        vectors = [there.get(key) for key in keys]
        if missing:
            computed = await self._batcher.submit(
                [ids[position] for position in missing],
                self._preparation.text_vectors(kind),
                _LANES[kind],
                timeout_s,
                lambda place, found: keep(keys[missing[place]], found),
                self._encoder,
            )
            for position, found in zip(missing, computed, strict=True):
                vectors[position] = found
        return [each for each in vectors if each is not None]
