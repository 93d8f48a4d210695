"""The model that needs nothing but this machine: all-MiniLM-L6-v2, on whichever runtime is installed."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import structlog

from services.reranker.errors import RuntimeMissing
from services.reranker.model_files import MINILM_INT8, EmbeddingModel, read_verified
from services.reranker.ports import Encoder, Tokenizer
from services.reranker.settings import RerankerSettings

_MAX_STREAMS = 8
_NICENESS = 5
"""Of threads that compute: a third of what others get, where there is not enough for both (the kernel's weights, sched(7))."""
_WARM_UP_TOKENS = (16, 48, 192)
"""Widths of a query, a sentence and a passage: the runtime compiles their kernels before the first caller needs them."""

_log = structlog.get_logger()


@dataclass(frozen=True)
class LoadedModel:
    """The CPU model, ready to compute."""

    model: EmbeddingModel
    encoder: Encoder
    tokenizer: Tokenizer


def load(settings: RerankerSettings) -> LoadedModel:
    """Verifies, loads and warms up the CPU model: half a second, blocking."""
    from services.reranker.adapters.tokenizers import HuggingFaceTokenizer  # noqa: PLC0415 - loaded off the event loop

    model = MINILM_INT8
    definition = read_verified(settings.models_dir, model.tokenizer)
    weights = read_verified(settings.models_dir, model.weights)
    with ThreadPoolExecutor(1, initializer=_come_second) as pool:
        encoder = pool.submit(_encoder, settings, weights).result()
    _warm_up(encoder)
    return LoadedModel(model, encoder, HuggingFaceTokenizer(definition, model.window_tokens))


def _come_second() -> None:
    """Lowers the priority of this thread and of those that it starts, where threads have one: the runtime's, which keep all cores
    busy for minutes when many documents come. Whoever answers a request, in this process or another, comes first."""
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


def _encoder(settings: RerankerSettings, weights: bytes) -> Encoder:
    threads = settings.reranker_threads or _cores()
    streams = min(settings.reranker_streams or _MAX_STREAMS, threads)
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


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
