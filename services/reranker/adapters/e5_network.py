"""multilingual-e5-small rebuilt as an OpenVINO network from its weights in four bits.

The word table, four fifths of the model, stays in four bits: its rows are looked up packed and unpacked in the graph, 60 MB where
float32 would take 384. The other matrices are unpacked when the network is built, and the runtime keeps them as it computes best.
All of it takes 0.8 s of a core, from the file's bytes to a compiled network, so that nothing is kept of it on the disk.

Where the processor has AVX2 and no more, a text takes 0.65 ms of a core for each token: 12 tokens 10 ms, 32 tokens 21 ms. Matrices
that are given to the runtime in eight bits take as long. Two threads for one text gain nothing at 16 tokens, and a fifth at 32.

Architecture: BERT (arXiv:1810.04805) with 12 layers, GELU by the error function, a layer normalisation behind each block. Texts
have one segment: the first row of the token types is part of the positions.
"""

from typing import Any

import numpy as np
import openvino
from openvino import opset13 as ops

from services.reranker.adapters.e5_file import BLOCK_WEIGHTS, E5File

INPUT_IDS = "input_ids"
ATTENTION_MASK = "attention_mask"
_HALF = 16.0
_ZERO = 8.0
_MASKED = 1e4
"""Taken off the score of a token that is padding: its weight becomes 0 in bf16, too."""


def e5_network(file: E5File) -> Any:
    """An openvino.Model: input_ids and attention_mask int64 [texts, tokens] -> last_hidden_state float32 [texts, tokens, width]."""
    return _Builder(file).network()


class _Builder:
    def __init__(self, file: E5File) -> None:
        self._file = file
        self._shape = file.shape
        self._last = _integers(-1)

    def network(self) -> Any:
        input_ids, attention_mask = _input(INPUT_IDS), _input(ATTENTION_MASK)
        present = ops.convert(ops.unsqueeze(attention_mask, _integers(1, 2)), "f32")
        penalty = ops.multiply(ops.subtract(present, _number(1.0)), _number(_MASKED))
        hidden = self._normalised(ops.add(self._words(input_ids), self._positions(input_ids)), "emb.ln")
        for layer in range(self._shape.layers):
            hidden = self._layer(hidden, penalty, f"l{layer}.")
        return openvino.Model([ops.result(hidden)], [input_ids, attention_mask], "multilingual-e5-small")

    def _words(self, input_ids: Any) -> Any:
        """float32 [texts, tokens, width]: rows of the word table, unpacked."""
        table = self._file.blocks("emb.word", self._shape.width)
        scales = ops.unsqueeze(ops.gather(_constant(table.scales), input_ids, _integers(0)), self._last)
        packed = ops.convert(ops.gather(_constant(table.halves), input_ids, _integers(0)), "f32")
        high = ops.floor(ops.multiply(packed, _number(1 / _HALF)))
        low = ops.subtract(packed, ops.multiply(high, _number(_HALF)))
        weights = ops.multiply(ops.subtract(ops.concat([low, high], -1), _number(_ZERO)), scales)
        blocks = self._shape.width // BLOCK_WEIGHTS
        assert table.scales.shape == (self._shape.vocabulary, blocks)
        return ops.reshape(weights, _integers(0, 0, self._shape.width), special_zero=True)

    def _positions(self, input_ids: Any) -> Any:
        """float32 [tokens, width]."""
        width = self._shape.width
        table = self._file.vector("emb.pos").reshape(-1, width) + self._file.vector("emb.type")[:width]
        length = ops.gather(ops.shape_of(input_ids), _integer(1), _integer(0))
        places = ops.range(_integer(0), length, _integer(1), output_type="i64")
        return ops.gather(_constant(table), places, _integers(0))

    def _layer(self, hidden: Any, penalty: Any, name: str) -> Any:
        width, inner = self._shape.width, self._shape.inner_width
        attended = self._linear(self._attention(hidden, penalty, name), f"{name}ao", width)
        hidden = self._normalised(ops.add(hidden, attended), f"{name}aln")
        raised = ops.gelu(self._linear(hidden, f"{name}fi", width), "erf")
        return self._normalised(ops.add(hidden, self._linear(raised, f"{name}fo", inner)), f"{name}oln")

    def _attention(self, hidden: Any, penalty: Any, name: str) -> Any:
        width, heads = self._shape.width, self._shape.heads
        split, turn = _integers(0, 0, heads, width // heads), _integers(0, 2, 1, 3)

        def by_head(part: str) -> Any:
            projected = self._linear(hidden, f"{name}{part}", width)
            return ops.transpose(ops.reshape(projected, split, special_zero=True), turn)

        scores = ops.matmul(by_head("q"), by_head("k"), transpose_a=False, transpose_b=True)
        scaled = ops.multiply(scores, _number((width // heads) ** -0.5))
        weights = ops.softmax(ops.add(scaled, penalty), -1)
        context = ops.matmul(weights, by_head("v"), transpose_a=False, transpose_b=False)
        return ops.reshape(ops.transpose(context, turn), _integers(0, 0, width), special_zero=True)

    def _linear(self, value: Any, name: str, columns: int) -> Any:
        weights = _constant(self._file.blocks(f"{name}.w", columns).weights())
        product = ops.matmul(value, weights, transpose_a=False, transpose_b=True)
        return ops.add(product, _constant(self._file.vector(f"{name}.b")))

    def _normalised(self, value: Any, name: str) -> Any:
        centred = ops.mvn(value, self._last, True, self._shape.epsilon, "inside_sqrt")
        scaled = ops.multiply(centred, _constant(self._file.vector(f"{name}.w")))
        return ops.add(scaled, _constant(self._file.vector(f"{name}.b")))


def _input(name: str) -> Any:
    parameter = ops.parameter([-1, -1], np.int64, name)
    parameter.output(0).set_names({name})
    return parameter


def _constant(values: Any) -> Any:
    return ops.constant(values)


def _number(value: float) -> Any:
    return ops.constant(np.float32(value))


def _integer(value: int) -> Any:
    return ops.constant(np.int64(value))


def _integers(*values: int) -> Any:
    return ops.constant(np.array(values, dtype=np.int64))
