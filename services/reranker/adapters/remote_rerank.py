"""Reranking by a remote API, in three shapes: Cohere (`POST /v2/rerank`), Jina (`POST /v1/rerank`, spoken by vLLM and LiteLLM too)
and Hugging Face's text-embeddings-inference (`POST /rerank`).

Sources: Cohere API reference, "Rerank v2"; Jina AI reranker API; text-embeddings-inference, its OpenAPI description.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from services.reranker.adapters.remote_api import RemoteApi, all_of
from services.reranker.embedding.preparation import check_texts
from services.reranker.errors import ProviderAnswerWrong

RerankApi = Literal["cohere", "jina", "tei"]
DEFAULT_BATCH_TEXTS: Mapping[RerankApi, int] = {"cohere": 1000, "jina": 1000, "tei": 32}
"""Cohere recommends at most 1000 documents; text-embeddings-inference refuses more than `--max-client-batch-size`, by default 32.
A cross-encoder judges each pair alone, so scores of several requests are comparable."""

_PATHS: Mapping[RerankApi, str] = {"cohere": "v2/rerank", "jina": "v1/rerank", "tei": "rerank"}


@dataclass(frozen=True)
class RemoteRerankModel:
    """What is asked of the API."""

    api: RerankApi
    model: str
    """Empty where the server has one model only (text-embeddings-inference)."""
    batch_texts: int


class RemoteReranker:
    """TextReranker over HTTP."""

    def __init__(self, api: RemoteApi, model: RemoteRerankModel) -> None:
        self._api = api
        self._model = model

    async def rerank(
        self,
        query_text: str,
        passages: Sequence[str],
        timeout_s: float | None,
        *,
        candidates_are_ranked: bool = False,
        content_hashes: Sequence[str] = (),
    ) -> list[float]:
        """One score per passage, in the order of `passages`; the provider's own scale, mostly [0, 1]."""
        del candidates_are_ranked, content_hashes
        check_texts([query_text], "query_text")
        check_texts(passages, "passages")
        step = self._model.batch_texts
        batches = [passages[start : start + step] for start in range(0, len(passages), step)]
        answers = await all_of(self._batch(query_text, batch, timeout_s) for batch in batches)
        return [score for scores in answers for score in scores]

    async def _batch(self, query_text: str, passages: Sequence[str], timeout_s: float | None) -> list[float]:
        answer = await self._api.post(_PATHS[self._model.api], self._body(query_text, passages), timeout_s)
        return _scores(answer, self._model.api, len(passages))

    def _body(self, query_text: str, passages: Sequence[str]) -> dict[str, Any]:
        if self._model.api == "tei":
            return {"query": query_text, "texts": list(passages), "truncate": True, "raw_scores": False}
        body = {"model": self._model.model, "query": query_text, "documents": list(passages), "top_n": len(passages)}
        return body | ({"return_documents": False} if self._model.api == "jina" else {})


def _scores(answer: Any, api: RerankApi, expected: int) -> list[float]:
    """Scores in the order of the request: all three answer best first, with the index."""
    key = "score" if api == "tei" else "relevance_score"
    try:
        results = answer if api == "tei" else answer["results"]
        scores = {int(result["index"]): float(result[key]) for result in results}
    except (KeyError, TypeError, ValueError) as error:
        raise ProviderAnswerWrong(
            f"the rerank API's answer has no index and {key} per passage; check GROUNDWORK_RERANKER_REMOTE_RERANK_API ({api})"
        ) from error
    if sorted(scores) != list(range(expected)) or not all(math.isfinite(score) for score in scores.values()):
        raise ProviderAnswerWrong(f"the rerank API scored {len(scores)} passages where {expected} were sent")
    return [scores[index] for index in range(expected)]
