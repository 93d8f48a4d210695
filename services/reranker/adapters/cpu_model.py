"""The models that need nothing but this machine, on whichever runtime is installed."""

import importlib.util
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import structlog

from services.reranker.errors import RuntimeMissing
from services.reranker.judging.reading import Pieces
from services.reranker.model_files import E5_SMALL_4BIT, MINILM_INT8, EmbeddingModel, is_there, read_verified
from services.reranker.ports import Encoder, Tokenizer
from services.reranker.settings import RerankerSettings

if TYPE_CHECKING:
    from services.reranker.adapters.sentencepiece import SentencePieceTokenizer

_MAX_STREAMS = 8
_NICENESS = 5
"""Of threads that compute: a third of what others get, where there is not enough for both (the kernel's weights, sched(7))."""
_WARM_UP_TOKENS = (16, 48, 192)
"""Widths of a query, a sentence and a passage: the runtime compiles their kernels before the first caller needs them."""

_log = structlog.get_logger()

_Build = Callable[[RerankerSettings, bytes], Encoder]
"""From a model's weights to what computes it."""


@dataclass(frozen=True)
class LoadedModel:
    """A CPU model, ready to compute."""

    model: EmbeddingModel
    encoder: Encoder
    tokenizer: Tokenizer
    pieces_of: Pieces | None = None
    """The tokenizer's pieces as they are written, where the judge of claims was fitted on this model."""


def embedding_models(settings: RerankerSettings) -> list[EmbeddingModel]:
    """What can be loaded here: the one for new texts first. Without OpenVINO that is the English one."""
    models = [MINILM_INT8, E5_SMALL_4BIT]
    wanted = E5_SMALL_4BIT if settings.reranker_cpu_embedding_model == "multilingual" else MINILM_INT8
    if settings.reranker_runtime == "onnxruntime" or importlib.util.find_spec("openvino") is None:
        if wanted is E5_SMALL_4BIT:
            _log.warning("model_passed_over", model=wanted.name, error="it is computed by OpenVINO only")
        return [MINILM_INT8]
    models.sort(key=lambda model: model is not wanted)
    return [model for model in models if model is wanted or is_there(settings.models_dir, model)]


def load(settings: RerankerSettings, model: EmbeddingModel) -> LoadedModel:
    """Verifies, loads and warms up a model: one to two seconds of a core, blocking."""
    weights = read_verified(settings.models_dir, model.weights)
    pieces_of: Pieces | None = None
    tokenizer: Tokenizer
    if model.tokenizer is None:
        tokenizer, build = _of_e5(weights, model.window_tokens)
        pieces_of = tokenizer.pieces
    else:
        definition = read_verified(settings.models_dir, model.tokenizer)
        tokenizer, build = _of_onnx(definition, model.window_tokens)
    with ThreadPoolExecutor(1, initializer=_come_second) as pool:
        encoder = pool.submit(build, settings, weights).result()
    _warm_up(encoder)
    return LoadedModel(model, encoder, tokenizer, pieces_of)


def _of_onnx(definition: bytes, window_tokens: int) -> tuple[Tokenizer, _Build]:
    from services.reranker.adapters.tokenizers import HuggingFaceTokenizer  # noqa: PLC0415 - loaded off the event loop

    return HuggingFaceTokenizer(definition, window_tokens), _onnx_encoder


def _of_e5(weights: bytes, window_tokens: int) -> "tuple[SentencePieceTokenizer, _Build]":
    from services.reranker.adapters.e5_file import E5File  # noqa: PLC0415 - as above
    from services.reranker.adapters.sentencepiece import SentencePieceTokenizer, unigram_model  # noqa: PLC0415 - as above

    pieces = E5File(weights).pieces
    return SentencePieceTokenizer(unigram_model(pieces), window_tokens), _e5_encoder


def _come_second() -> None:
    """Lowers the priority of this thread and of those that it starts, where threads have one: the runtime's, which keep all cores
    busy for minutes when many documents come. Work for a request, in this process or another, comes first."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS)


def _warm_up(encoder: Encoder) -> None:
    # The very first call alone: OpenVINO's Python binding (2026.4) fills a C++ static on it and lets go of the GIL meanwhile. A
    # second thread then waits for the static while it holds the GIL, and the process hangs for good (seen on a busy machine).
    first = np.ones((1, _WARM_UP_TOKENS[0]), dtype=np.int64)
    encoder.encode(first, first)
    with ThreadPoolExecutor(encoder.streams) as pool:
        for width in _WARM_UP_TOKENS:
            ones = np.ones((1, width), dtype=np.int64)
            list(pool.map(encoder.encode, [ones] * encoder.streams, [ones] * encoder.streams))


def _e5_encoder(settings: RerankerSettings, weights: bytes) -> Encoder:
    from services.reranker.adapters.openvino import OpenVinoEncoder  # noqa: PLC0415 - an extra

    return OpenVinoEncoder.of_e5(weights, *_threads_and_streams(settings))


def _onnx_encoder(settings: RerankerSettings, weights: bytes) -> Encoder:
    threads, streams = _threads_and_streams(settings)
    if settings.reranker_runtime != "onnxruntime":
        from services.reranker.adapters.openvino import OpenVinoEncoder  # noqa: PLC0415 - an extra

        try:
            return OpenVinoEncoder(weights, threads, streams)
        except RuntimeMissing:
            if settings.reranker_runtime == "openvino":
                raise
            _log.warning(
                "model_provider_passed_over", provider="openvino", error="not installed; onnxruntime is slower"
            )
    from services.reranker.adapters.onnxruntime import OnnxRuntimeEncoder  # noqa: PLC0415 - an extra

    return OnnxRuntimeEncoder(weights, threads, streams)


def _threads_and_streams(settings: RerankerSettings) -> tuple[int, int]:
    threads = settings.reranker_threads or _cores()
    return threads, min(settings.reranker_streams or _MAX_STREAMS, threads)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
