"""Composition root of the model server: the only file that names concrete adapters."""

import asyncio
import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from kit.service import Service
from services.reranker.batching import Batcher
from services.reranker.embedding import Embedding
from services.reranker.handlers import RerankerServicer
from services.reranker.model_files import MINILM_INT8, EmbeddingModel, read_verified
from services.reranker.models import BatchLimits, ModelInfo
from services.reranker.passage_cache import PassageCache
from services.reranker.ports import Encoder, Tokenizer
from services.reranker.preparation import Preparation
from services.reranker.reranking import Reranking
from services.reranker.settings import RerankerSettings

_PREPARATION_THREADS = 2
_PAD_TO_MULTIPLE = 16
_MAX_STREAMS = 8
_WARM_UP_TOKENS = (16, 48, 192)
"""Widths of a query, a sentence and a passage: the runtime compiles their kernels before the first caller needs them."""


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready to compute."""

    model: EmbeddingModel
    encoder: Encoder
    tokenizer: Tokenizer

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(
            embedding_model=self.model.name,
            rerank_model=f"{self.model.name}/late-interaction",
            dimension=self.encoder.dimension,
            window_tokens=self.tokenizer.window_tokens,
            runtime=self.encoder.runtime,
        )


async def run(settings: RerankerSettings) -> None:
    """Serves until told to stop. Raises ModelFileMissing or ModelFileCorrupt before the port is bound."""
    loaded = await asyncio.to_thread(load, settings)
    async with Service("reranker", settings) as service:
        executor = service.stack.enter_context(ThreadPoolExecutor(_PREPARATION_THREADS, thread_name_prefix="prepare"))
        servicer, batcher = assemble(loaded, settings, executor)
        service.spawn(batcher.run())
        service.add_servicer(
            reranker_pb2_grpc.add_RerankerServiceServicer_to_server,
            servicer,
            reranker_pb2.DESCRIPTOR.services_by_name["RerankerService"],
        )
        await service.serve()


def assemble(loaded: LoadedModel, settings: RerankerSettings, executor: Executor) -> tuple[RerankerServicer, Batcher]:
    """The servicer, and the batcher whose `run()` must be running for it to answer."""
    preparation = Preparation(loaded.tokenizer, executor)
    batcher = Batcher(loaded.encoder, _limits(settings))
    cache = PassageCache(settings.reranker_cache_bytes)
    embedding = Embedding(preparation, batcher)
    reranking = Reranking(preparation, batcher, cache, executor)
    return RerankerServicer(embedding, reranking, loaded.info, loaded.tokenizer.definition), batcher


def load(settings: RerankerSettings) -> LoadedModel:
    """Verifies, loads and warms up the model: half a second, blocking."""
    # Later providers (sentence-transformers on a GPU, a remote API) are chosen here: one adapter file each.
    from services.reranker.adapters.tokenizers import HuggingFaceTokenizer  # noqa: PLC0415 - loaded off the event loop

    model = MINILM_INT8
    definition = read_verified(settings.models_dir, model.tokenizer)
    encoder = _encoder(settings, read_verified(settings.models_dir, model.weights))
    _warm_up(encoder)
    return LoadedModel(model, encoder, HuggingFaceTokenizer(definition, model.window_tokens))


def _warm_up(encoder: Encoder) -> None:
    # The very first call alone: OpenVINO's Python binding (2026.4) fills a C++ static on it and lets go of the GIL meanwhile. A
    # second thread then waits for the static while it holds the GIL, and the process hangs for good (seen on a busy machine).
    first = np.ones((1, _WARM_UP_TOKENS[0]), dtype=np.int64)
    encoder.encode(first, first)
    with ThreadPoolExecutor(encoder.streams) as pool:
        for width in _WARM_UP_TOKENS:
            ones = np.ones((1, width), dtype=np.int64)
            list(pool.map(encoder.encode, [ones] * encoder.streams, [ones] * encoder.streams))


def _encoder(settings: RerankerSettings, weights: bytes) -> Encoder:
    threads = settings.reranker_threads or _cores()
    streams = min(settings.reranker_streams or _MAX_STREAMS, threads)
    if settings.reranker_runtime == "onnxruntime":
        from services.reranker.adapters.onnxruntime import OnnxRuntimeEncoder  # noqa: PLC0415 - an extra

        return OnnxRuntimeEncoder(weights, threads, streams)
    from services.reranker.adapters.openvino import OpenVinoEncoder  # noqa: PLC0415 - an extra

    return OpenVinoEncoder(weights, threads, streams)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _limits(settings: RerankerSettings) -> BatchLimits:
    return BatchLimits(
        max_tokens=settings.reranker_batch_tokens,
        max_texts=settings.reranker_batch_texts,
        pad_to_multiple=_PAD_TO_MULTIPLE,
        max_queued_tokens=settings.reranker_queue_tokens,
    )
