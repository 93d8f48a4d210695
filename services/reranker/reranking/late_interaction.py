"""Late interaction (ColBERT, arXiv:2004.12832, section 3.2) over the token vectors of the embedding model.

For each query token the most similar passage token counts (MaxSim); their mean, so that long queries do not score higher, is
the score of passages that a search has ranked already: with the cosine of the pooled vectors in it nDCG@10 on SciFact falls
from 0.740 to 0.727, because the fused score, with which the retriever blends this one, holds that cosine (docs/adr/0008).

Texts that nothing has ranked get the average of MaxSim and that cosine. Measured on 992 docstring titles against the 24 bodies
that are nearest by embedding (mean reciprocal rank): pooled cosine alone 0.579, MaxSim alone 0.605, with special tokens 0.606,
without punctuation 0.595, both averaged 0.620.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np

from services.reranker.batching.batching import Batcher
from services.reranker.embedding.pooling import unpacked
from services.reranker.embedding.preparation import Preparation, check_texts
from services.reranker.errors import ContentHashWrong
from services.reranker.models import Float32, Lane, QueryVectors, TextKind, TextVectors
from services.reranker.reranking.known_texts import KnownTexts
from services.reranker.reranking.nearness import nearness
from services.reranker.reranking.passage_cache import query_key, stand_in_key, text_key

MAXSIM_WEIGHT = 0.5
"""Weight of MaxSim against the pooled cosine, for texts that nothing has ranked. 0.3 gave 0.609, 0.7 gave 0.621 in the
measurement above: a plateau."""

NEARNESS_WEIGHT = 0.3
"""Of `nearness`, for passages that a search has ranked. nDCG@10 of SciFact's 809 training claims is 0.7443 at 0, 0.7466 at 0.2,
0.7467 at 0.3 and 0.7452 at 0.4; the mean of eight languages of XQuAD 0.9784, 0.9787, 0.9785 and 0.9785 (docs/adr/0020)."""

_PASSAGES_A_PRODUCT = 32
"""Passages multiplied with the query at once: as float32 they take 10 MB, whatever the request holds."""
_SHA256_BYTES = 32


class Reranking:
    """The use case behind Rerank. The query has mostly been embedded a moment before; texts met before are not encoded again,
    and where all were, the model is not asked. What is read here is never an embedding: a passage may lack the title
    that stands in front of its chunk's embedded text, so it has a key of its own."""

    def __init__(self, preparation: Preparation, batcher: Batcher, known: KnownTexts, executor: Executor) -> None:
        self._preparation = preparation
        self._batcher = batcher
        self._known = known
        self._executor = executor

    async def rerank(
        self,
        query_text: str,
        passages: Sequence[str],
        timeout_s: float | None,
        *,
        candidates_are_ranked: bool = False,
        content_hashes: Sequence[str] = (),
    ) -> list[float]:
        """One score per passage, in the order of `passages`; higher is better, and comparable within the call. What was kept under
        a content hash stands for its passage."""
        check_texts([query_text], "query_text")
        check_texts(passages, "passages")
        keys = passage_keys(passages, content_hashes)
        self._batcher.check_open(Lane.RERANK)
        found = await self._known.find(keys, stand_ins=True)
        to_read = {
            stand_in_key(key): text for key, text in zip(keys, passages, strict=True) if key not in found.vectors
        }
        # Where the disk did not answer in time, the embedded text may lie there: what is read instead is not kept.
        chunks = {key for key, content_hash in zip(keys, content_hashes, strict=False) if content_hash}
        to_keep = set(map(stand_in_key, chunks)) if found.was_disk_read else set()
        query = self._known.queries.get(query_key(query_text)) or await self._read_query(query_text, timeout_s)
        read = await self._read(to_read, to_keep, timeout_s)
        rows = [found.vectors.get(key) or read[stand_in_key(key)] for key in keys]
        loop = asyncio.get_running_loop()
        if candidates_are_ranked:
            return await loop.run_in_executor(self._executor, score_ranked, query_text, passages, query, rows)
        return await loop.run_in_executor(self._executor, score, query, rows, MAXSIM_WEIGHT)

    async def _read_query(self, query_text: str, timeout_s: float | None) -> QueryVectors:
        ids = await self._preparation.token_ids([query_text], TextKind.QUERY)
        (query,) = await self._batcher.submit(ids, self._preparation.query_vectors, Lane.RERANK, timeout_s)
        self._known.queries.put(query_key(query_text), query)
        return query

    async def _read(
        self, texts: dict[bytes, str], to_keep: set[bytes], timeout_s: float | None
    ) -> dict[bytes, TextVectors]:
        """What the model makes of `texts`, by their keys. It is remembered for a while; what is `to_keep` goes to the disk, too."""
        if not texts:
            return {}
        keys = list(texts)
        ids = await self._preparation.token_ids(list(texts.values()), TextKind.PASSAGE)

        def keep(position: int, vectors: TextVectors) -> None:
            # Each as it comes: a budget too short for all passages is enough for the second try.
            self._known.remember(keys[position], vectors)
            if keys[position] in to_keep:
                self._known.keep(keys[position], vectors)

        read = await self._batcher.submit(ids, self._preparation.text_vectors, Lane.RERANK, timeout_s, keep)
        return dict(zip(keys, read, strict=True))


def passage_keys(passages: Sequence[str], content_hashes: Sequence[str]) -> list[bytes]:
    """sha256 of each passage, or the one that stands for it. Raises ContentHashWrong."""
    if not content_hashes:
        return [text_key(passage) for passage in passages]
    if len(content_hashes) != len(passages):
        raise ContentHashWrong(
            f"content_hashes holds {len(content_hashes)} hashes for {len(passages)} passages; send one for each or none",
            field="content_hashes",
        )
    return [
        sha256_bytes(content_hash, index) if content_hash else text_key(passage)
        for index, (content_hash, passage) in enumerate(zip(content_hashes, passages, strict=True))
    ]


def sha256_bytes(content_hash: str, index: int) -> bytes:
    """The digest that `content_hashes[index]` names in hex. Raises ContentHashWrong."""
    try:
        digest = bytes.fromhex(content_hash)
    except ValueError:
        digest = b""
    if len(digest) != _SHA256_BYTES:
        name = f"content_hashes[{index}]"
        raise ContentHashWrong(f"{name} is no sha256; send 64 hex digits, or leave it empty", field=name)
    return digest


def score(query: QueryVectors, passages: Sequence[TextVectors], maxsim_weight: float) -> list[float]:
    """Scores in [-1, 1], in the order of `passages`."""
    query_tokens = query.tokens * np.float32(1 / np.sqrt(query.tokens.shape[1]))
    step = _PASSAGES_A_PRODUCT
    maxsim = np.concatenate(
        [_maxsim(query_tokens, passages[start : start + step]) for start in range(0, len(passages), step)]
    )
    cosine = np.stack([passage.pooled for passage in passages]) @ query.pooled
    scores = np.clip(maxsim_weight * maxsim + (1.0 - maxsim_weight) * cosine, -1.0, 1.0)
    return [float(each) for each in scores]


def score_ranked(
    query_text: str, passages: Sequence[str], query: QueryVectors, rows: Sequence[TextVectors]
) -> list[float]:
    """MaxSim of passages that a search has ranked, and of what lies between the worst and the best of them a share for the words of
    the query that stand near each other in the passage."""
    maxsim = score(query, rows, 1.0)
    worth = NEARNESS_WEIGHT * (max(maxsim) - min(maxsim))
    return [one + worth * near for one, near in zip(maxsim, nearness(query_text, passages), strict=True)]


def _maxsim(query_tokens: Float32, passages: Sequence[TextVectors]) -> Float32:
    """float32 [passages]: the mean over the query's tokens, each as much as it counts, of the most similar token of the passage."""
    tokens = unpacked(np.concatenate([passage.tokens for passage in passages]))
    starts = np.cumsum([0, *(len(passage.tokens) for passage in passages[:-1])])
    best: Float32 = np.maximum.reduceat(query_tokens @ tokens.T, starts, axis=1)
    means: Float32 = best.mean(axis=0)
    return means
