"""Embeds texts: one L2-normalised vector each."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from services.reranker.batching.batching import Batcher
from services.reranker.embedding.pooling import pooled
from services.reranker.embedding.preparation import Preparation, check_texts
from services.reranker.models import Embeddings, Float32, Lane, QueryVectors, TextKind, TextVectors, TokenIds
from services.reranker.ports import Encoder
from services.reranker.reranking.known_texts import KnownTexts
from services.reranker.reranking.passage_cache import query_key, text_key

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
        self._under_way: dict[bytes, asyncio.Event] = {}
        """Queries that are being read for a caller. One message is embedded for its search, its hints and its notes."""

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
            read = self._read_queries if kind is TextKind.QUERY else self._read_passages
            rows = await read(self._known, texts, ids, timeout_s)
        return Embeddings(np.stack(rows), [len(tokens) for tokens in ids])

    async def _read_queries(
        self, known: KnownTexts, texts: Sequence[str], ids: Sequence[TokenIds], timeout_s: float | None
    ) -> list[Float32]:
        """Each query once, for all callers: what another caller has read a moment ago, or reads now, is not computed again."""
        keys = [query_key(text) for text in texts]
        tokens = dict(zip(keys, ids, strict=True))
        until = None if timeout_s is None else time.monotonic() + timeout_s
        if others := [self._under_way[key].wait() for key in tokens if key in self._under_way]:
            with suppress(TimeoutError):  # then this caller's own request says that it is late
                async with asyncio.timeout(timeout_s):
                    await asyncio.gather(*others)
        there = {key: vectors for key in tokens if (vectors := known.queries.get(key)) is not None}
        missing = [key for key in tokens if key not in there]
        if missing:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            there |= await self._compute_queries(known, {key: tokens[key] for key in missing}, left_s)
        return [there[key].pooled for key in keys]

    async def _compute_queries(
        self, known: KnownTexts, tokens: dict[bytes, TokenIds], timeout_s: float | None
    ) -> dict[bytes, QueryVectors]:
        done = asyncio.Event()
        mine = [key for key in tokens if self._under_way.setdefault(key, done) is done]
        try:
            read = self._preparation.query_vectors
            computed = await self._batcher.submit(
                list(tokens.values()), read, Lane.QUERY, timeout_s, encoder=self._encoder
            )
            found = dict(zip(tokens, computed, strict=True))
            for key, vectors in found.items():
                known.queries.put(key, vectors)
            return found
        finally:  # a caller that gave up leaves nothing behind: those that waited for it ask themselves
            for key in mine:
                del self._under_way[key]
            done.set()

    async def _read_passages(
        self, known: KnownTexts, texts: Sequence[str], ids: Sequence[TokenIds], timeout_s: float | None
    ) -> list[Float32]:
        """Those that are there, and the others as the model sees them, which are kept as they come."""
        keys = [text_key(text) for text in texts]
        there = (await known.find(keys)).vectors
        missing = [position for position, key in enumerate(keys) if key not in there]
        vectors: list[TextVectors | None] = [there.get(key) for key in keys]
        if missing:
            computed = await self._batcher.submit(
                [ids[position] for position in missing],
                self._preparation.text_vectors,
                Lane.PASSAGE,
                timeout_s,
                lambda place, found: known.keep(keys[missing[place]], found),
                self._encoder,
            )
            for position, found in zip(missing, computed, strict=True):
                vectors[position] = found
        return [each.pooled for each in vectors if each is not None]
