"""Embeddings by a remote API: the shape of OpenAI (`POST /embeddings`, spoken by vLLM, Ollama, Jina, Mistral …) and that of
Hugging Face's text-embeddings-inference (`POST /embed`).

Sources: OpenAI API reference, "Create embeddings"; text-embeddings-inference, its OpenAPI description.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import structlog

from services.reranker.adapters.remote_api import RemoteApi, all_of
from services.reranker.embedding.preparation import check_texts
from services.reranker.errors import ProviderAnswerWrong, ProviderBusy, ProviderUnavailable
from services.reranker.models import Embeddings, Float32, TextKind

EmbeddingApi = Literal["openai", "tei"]
DEFAULT_BATCH_TEXTS: Mapping[EmbeddingApi, int] = {"openai": 128, "tei": 32}
"""OpenAI takes 2048 texts and 300 000 tokens a request: 128 texts of 2000 tokens stay below. text-embeddings-inference refuses
more than its `--max-client-batch-size`, 32 unless set otherwise."""

_CHARACTERS_PER_TOKEN = 4
_SMALLEST_NORM = 1e-6
_PROBE = "How many numbers make a vector?"
_PROBE_TIMEOUT_S = 30.0

_log = structlog.get_logger()


@dataclass(frozen=True)
class RemoteEmbeddingModel:
    """What is asked of the API."""

    api: EmbeddingApi
    model: str
    """Empty where the server has one model only (text-embeddings-inference)."""
    batch_texts: int
    prompts: Mapping[TextKind, str]
    """Put in front of each text; many models were trained with one per kind."""
    dimensions: int = 0
    """Shortened vectors, where the model can (Matryoshka); 0 asks for the model's own."""


class RemoteEmbedder:
    """TextEmbedder over HTTP. `probe()` first: it learns the length of the vectors."""

    def __init__(self, api: RemoteApi, model: RemoteEmbeddingModel) -> None:
        self._api = api
        self._model = model
        self.dimension = 0

    async def probe(self) -> None:
        """Embeds a sentence, so that a wrong key, address or model is known at the start and not with the first document.

        An API that is only down now does not stop the start when the length of its vectors is set.
        """
        try:
            vectors, _ = await self._batch([_PROBE], TextKind.QUERY, _PROBE_TIMEOUT_S)
        except (ProviderUnavailable, ProviderBusy) as error:
            if not self._model.dimensions:
                raise
            _log.warning("model_provider_not_probed", model=self._model.model, error=error.message)
            self.dimension = self._model.dimensions
            return
        self.dimension = vectors.shape[1]
        if self._model.dimensions and self._model.dimensions != self.dimension:
            raise ProviderAnswerWrong(
                f"{self._model.model} makes vectors of {self.dimension} numbers where {self._model.dimensions} are asked for; "
                "set GROUNDWORK_RERANKER_REMOTE_EMBEDDING_DIMENSIONS to 0 or to a length that it can make"
            )

    async def embed(
        self, texts: Sequence[str], kind: TextKind, timeout_s: float | None, *, keep_token_vectors: bool = False
    ) -> Embeddings:
        """Vectors in the order of `texts`, L2-normalised here whatever the provider does. Token counts are the provider's
        where it gives one for a single text, else an estimate from its total or from the length. No API gives token vectors."""
        del keep_token_vectors
        check_texts(texts, "texts")
        step = self._model.batch_texts
        batches = [texts[start : start + step] for start in range(0, len(texts), step)]
        answers = await all_of(self._batch(batch, kind, timeout_s) for batch in batches)
        return Embeddings(
            np.concatenate([vectors for vectors, _ in answers]), [count for _, counts in answers for count in counts]
        )

    async def _batch(self, texts: Sequence[str], kind: TextKind, timeout_s: float | None) -> tuple[Float32, list[int]]:
        prompted = [self._model.prompts.get(kind, "") + text for text in texts]
        if self._model.api == "tei":
            answer = await self._api.post("embed", {"inputs": prompted, "truncate": True, "normalize": True}, timeout_s)
            rows, total = answer, 0
        else:
            answer = await self._api.post("embeddings", self._openai_body(prompted), timeout_s)
            rows, total = _openai_rows(answer)
        return self._checked(rows, len(texts)), _token_counts(prompted, total)

    def _openai_body(self, texts: list[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._model.model, "input": texts, "encoding_format": "float"}
        return body | ({"dimensions": self._model.dimensions} if self._model.dimensions else {})

    def _checked(self, rows: Any, expected: int) -> Float32:
        try:
            vectors = np.array(rows, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ProviderAnswerWrong(f"{self._name} sent something that is not {expected} vectors") from error
        if vectors.ndim != 2 or len(vectors) != expected:
            raise ProviderAnswerWrong(f"{self._name} sent vectors of shape {vectors.shape} for {expected} texts")
        if self.dimension and vectors.shape[1] != self.dimension:
            raise ProviderAnswerWrong(
                f"{self._name} sent vectors of {vectors.shape[1]} numbers where it sent {self.dimension} before; it serves "
                "another model now: restart the model server, and index all documents again"
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or (norms < _SMALLEST_NORM).any():
            raise ProviderAnswerWrong(
                f"{self._name} sent a vector without length, or one that is not of finite numbers"
            )
        return np.asarray(vectors / norms, dtype=np.float32)

    @property
    def _name(self) -> str:
        return f"the embedding API's model {self._model.model}".rstrip()


def _openai_rows(answer: Any) -> tuple[list[Any], int]:
    """Vectors in the order of the request: each names its index, and the standard does not promise an order."""
    try:
        rows: list[Any] = [None] * len(answer["data"])
        for item in answer["data"]:
            rows[item["index"]] = item["embedding"]
        return rows, int((answer.get("usage") or {}).get("prompt_tokens") or 0)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ProviderAnswerWrong(
            "the embedding API's answer has no data with index and embedding; check that it speaks OpenAI's shape, or set "
            "GROUNDWORK_RERANKER_REMOTE_EMBEDDING_API"
        ) from error


def _token_counts(texts: Sequence[str], total: int) -> list[int]:
    """The provider's total shared out by length; without one, a token for four characters."""
    lengths = [len(text) for text in texts]
    scale = total / sum(lengths) if total else 1 / _CHARACTERS_PER_TOKEN
    return [max(1, round(length * scale)) for length in lengths]
