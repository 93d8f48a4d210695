"""The model server over gRPC: embeddings, the embedder's name and window, its tokenizer (kept on disk under its hash)."""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from kit.errors import FailedPrecondition
from kit.network.local_models import LocalModelsOnly
from services.ingest.errors import BadVectors, DocumentRejected
from services.ingest.ports import Vectors
from services.ingest.reading.chunks.tokens import SENTENCEPIECE_SUFFIX
from services.ingest.work.models import EmbeddingModel

_EMBED_TIMEOUT_S = 120.0
_INFO_TIMEOUT_S = 10.0
_INFO_LIFE_S = 30.0


class RerankerEmbedder:
    """`stub` is a RerankerServiceStub on a kit channel."""

    def __init__(self, stub: reranker_pb2_grpc.RerankerServiceStub, cache_folder: Path) -> None:
        self._stub = stub
        self._cache_folder = cache_folder
        self._model: tuple[float, EmbeddingModel] | None = None
        self._tokenizer: tuple[str, Path | None] | None = None
        self._lock = asyncio.Lock()

    async def model(self) -> EmbeddingModel:
        """The embedder, asked anew every half minute: it may be swapped while we run."""
        if self._model and time.monotonic() - self._model[0] < _INFO_LIFE_S:
            return self._model[1]
        info = await self._stub.GetModelInfo(reranker_pb2.GetModelInfoRequest(), timeout=_INFO_TIMEOUT_S)
        model = EmbeddingModel(info.embedding_model, info.window_tokens)
        self._model = (time.monotonic(), model)
        return model

    async def tokenizer_path(self) -> Path | None:
        model = await self.model()
        async with self._lock:
            if self._tokenizer is None or self._tokenizer[0] != model.name:
                self._tokenizer = (model.name, await self._fetch_tokenizer())
        return self._tokenizer[1]

    async def _fetch_tokenizer(self) -> Path | None:
        answer = await self._stub.GetTokenizer(reranker_pb2.GetTokenizerRequest(), timeout=_INFO_TIMEOUT_S)
        content = answer.tokenizer_json or answer.sentencepiece_model
        if not content:
            return None
        suffix = ".json" if answer.tokenizer_json else SENTENCEPIECE_SUFFIX
        path = self._cache_folder / f"tokenizer-{answer.sha256}{suffix}"
        await asyncio.to_thread(_write_whole, path, content)
        return path

    async def embed(self, texts: Sequence[str]) -> tuple[Vectors, str]:
        request = reranker_pb2.EmbedRequest(texts=texts, kind=reranker_pb2.EMBED_KIND_PASSAGE, keep_token_vectors=True)
        try:
            answer = await self._stub.Embed(request, timeout=_EMBED_TIMEOUT_S)
        except FailedPrecondition as error:
            if error.reason != LocalModelsOnly.reason:
                raise
            raise DocumentRejected(error.reason, error.message) from error
        if answer.model != (self._model[1].name if self._model else answer.model):
            self._model = None
        if len(answer.vectors) != 4 * answer.dimension * len(texts):
            raise BadVectors(
                f"the model server returned {len(answer.vectors)} bytes for {len(texts)} vectors of {answer.dimension}"
            )
        vectors = np.frombuffer(answer.vectors, dtype="<f4").reshape(len(texts), answer.dimension)
        return vectors, answer.model


def _write_whole(path: Path, content: bytes) -> None:
    """In one step: parsers of another worker in the same folder may be reading it."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        file.write(content)
    Path(file.name).replace(path)
