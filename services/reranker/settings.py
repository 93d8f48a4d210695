"""What the model server is told from outside."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from kit.settings import ServiceSettings
from services.reranker.preparation import MAX_TEXTS


class RerankerSettings(ServiceSettings):
    """Settings of the model server."""

    models_dir: Path = Path(".models")
    """Folder with the model files, as `make setup` fills it. Relative to the working directory."""

    reranker_runtime: Literal["openvino", "onnxruntime"] = "openvino"
    """What computes the model. OpenVINO is about three times as fast; onnxruntime runs on more platforms."""

    reranker_threads: int = Field(default=0, ge=0, le=256)
    """Threads that compute, divided among the streams. 0 takes all cores."""

    reranker_streams: int = Field(default=0, ge=0, le=64)
    """Batches computed at once, each on its share of the threads. 0 takes one a thread, at most eight: threads that wait for
    nobody lose little to other processes, and each stream keeps compiled kernels of its own in memory."""

    reranker_batch_tokens: int = Field(default=512, ge=256, le=65_536)
    """Tokens of one batch, padding counted. Larger batches are no faster on a CPU, and a query waits for the batch before
    it: 512 tokens take 25 to 75 ms on two cores."""

    reranker_batch_texts: int = Field(default=32, ge=1, le=1024)
    """Texts of one batch: many tiny texts are bounded too."""

    reranker_queue_tokens: int = Field(default=4 * MAX_TEXTS * 256, ge=MAX_TEXTS * 256)
    """Tokens that may wait in each lane (queries, reranking, passages) before requests are refused. The default is four of
    the largest requests: one to two minutes of bulk work on two cores."""

    reranker_cache_bytes: int = Field(default=32 * 1024 * 1024, ge=0)
    """Memory for the token vectors of recently reranked passages: 240 of 180 tokens, or a thousand sentences. 0: none."""
