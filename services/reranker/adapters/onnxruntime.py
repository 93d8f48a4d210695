"""Embeddings and token vectors by onnxruntime: the portable runtime, where OpenVINO has no wheel. Figures in openvino.py."""

from typing import Any

import numpy as np

from services.reranker.embedding.pooling import reduce_hidden, rotation
from services.reranker.errors import EncoderFailed, RuntimeMissing
from services.reranker.models import Encoded, Float32, Int64


class OnnxRuntimeEncoder:
    """An ONNX export of a BERT encoder on the CPU: `threads` threads that share the work of `streams` batches."""

    def __init__(self, model: bytes, threads: int, streams: int) -> None:
        try:
            import onnxruntime  # noqa: PLC0415 - an extra: only who chooses this runtime installs it
        except ImportError as error:
            raise RuntimeMissing(
                "the runtime onnxruntime is not installed; run `pip install 'groundwork[onnxruntime]'`, "
                "or set GROUNDWORK_RERANKER_RUNTIME=openvino"
            ) from error
        options = onnxruntime.SessionOptions()
        # The thread that calls works too, and each stream has its own: with one thread a stream the pool is empty.
        options.intra_op_num_threads = threads - streams + 1
        options.inter_op_num_threads = 1
        self._streams = streams
        # Spinning workers win a fifth of throughput and take both cores from every other process to do so.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._dimension = int(self._session.get_outputs()[0].shape[-1])
        self._rotation = rotation(self._dimension)

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def runtime(self) -> str:
        return "onnxruntime/cpu"

    @property
    def streams(self) -> int:
        return self._streams

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        inputs = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": np.zeros_like(input_ids),
        }
        try:
            hidden: Float32 = self._session.run(None, inputs)[0]
        except Exception as error:  # the runtime raises classes of its own, without a public base
            raise EncoderFailed(f"onnxruntime refused a batch of shape {input_ids.shape}: {error}") from error
        return reduce_hidden(hidden, attention_mask, self._rotation)
