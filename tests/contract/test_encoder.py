"""What every Encoder promises: the fake of the unit tests, and each runtime over the real weights."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kit.openvino import without_telemetry
from services.reranker.adapters.e5_centre import e5_centre
from services.reranker.adapters.onnxruntime import OnnxRuntimeEncoder
from services.reranker.adapters.openvino import OpenVinoEncoder, remove_nan_guards
from services.reranker.batching.padding import pad
from services.reranker.embedding.pooling import token_scale
from services.reranker.errors import EncoderFailed, RuntimeMissing
from services.reranker.model_files import E5_SMALL_4BIT, MINILM_INT8, read_verified
from services.reranker.ports import Encoder
from tests.unit.reranker.fakes import FakeEncoder

SHORT = np.array([101, 7592, 2088, 102], dtype=np.int64)
LONG = np.array([101, *range(3000, 3030), 102], dtype=np.int64)
_loaded: dict[str, Encoder] = {}


@pytest.fixture(params=["fake", "openvino", "onnxruntime", "e5 on openvino"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    name = request.param
    if name not in _loaded:
        _loaded[name] = FakeEncoder(streams=2) if name == "fake" else load(name, request.getfixturevalue("models_dir"))
    return _loaded[name]


def load(name: str, models_dir: Path) -> Encoder:
    adapter, model = {
        "openvino": (OpenVinoEncoder, MINILM_INT8),
        "onnxruntime": (OnnxRuntimeEncoder, MINILM_INT8),
        "e5 on openvino": (OpenVinoEncoder.of_e5, E5_SMALL_4BIT),
    }[name]
    try:
        return adapter(read_verified(models_dir, model.weights), 2, 2)
    except RuntimeMissing as error:
        pytest.skip(error.message)


def cosines(left: Any, right: Any) -> Any:
    left, right = left.astype(float), right.astype(float)
    return (left * right).sum(-1) / (np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1))


def test_openvino_finds_the_guards_that_keep_it_from_fusing_attention(models_dir: Path) -> None:
    without_telemetry()
    openvino = pytest.importorskip("openvino")
    network = openvino.Core().read_model(read_verified(models_dir, MINILM_INT8.weights))
    assert "IsNaN" in operations(network)
    remove_nan_guards(network)
    assert "IsNaN" not in operations(network)
    assert "Softmax" in operations(network)


def operations(network: Any) -> set[str]:
    return {each.get_type_name() for each in network.get_ops()}


def test_one_unit_vector_per_text_and_one_int8_vector_per_token(encoder: Encoder) -> None:
    encoded = encoder.encode(*pad([SHORT, LONG], 1))
    assert encoded.pooled.shape == (2, encoder.dimension)
    assert encoded.pooled.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(encoded.pooled, axis=1), 1.0, rtol=1e-5)
    assert encoded.token_vectors.shape == (2, 32, encoder.dimension)
    assert encoded.token_vectors.dtype == np.int8
    lengths = np.linalg.norm(encoded.token_vectors[1].astype(float), axis=1)
    np.testing.assert_allclose(lengths, token_scale(encoder.dimension), rtol=0.05)


def test_padding_and_neighbours_hardly_change_a_text(encoder: Encoder) -> None:
    alone = encoder.encode(*pad([SHORT], 1)).text(0, SHORT)
    padded = encoder.encode(*pad([LONG, SHORT], 16)).text(1, SHORT)
    assert cosines(alone.token_vectors, padded.token_vectors).min() > 0.98
    assert cosines(alone.pooled, padded.pooled) > 0.99


def test_batches_at_once_are_what_they_are_alone(encoder: Encoder) -> None:
    batches = [pad([text], 1) for text in (SHORT, LONG) for _ in range(10)]
    alone = [encoder.encode(*batch) for batch in batches]
    with ThreadPoolExecutor(encoder.streams) as pool:
        together = list(pool.map(lambda batch: encoder.encode(*batch), batches))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one.pooled, other.pooled, atol=1e-4)
        np.testing.assert_allclose(one.token_vectors, other.token_vectors, atol=1)


def test_result_belongs_to_the_caller(encoder: Encoder) -> None:
    first = encoder.encode(*pad([SHORT], 1))
    before = replace(first, pooled=first.pooled.copy(), token_vectors=first.token_vectors.copy())
    encoder.encode(*pad([SHORT[::-1].copy()], 1))
    np.testing.assert_array_equal(first.pooled, before.pooled)
    np.testing.assert_array_equal(first.token_vectors, before.token_vectors)


def test_batch_of_the_wrong_shape_is_an_encoder_failure_and_the_next_one_succeeds(encoder: Encoder) -> None:
    with pytest.raises(EncoderFailed):
        encoder.encode(LONG, np.ones_like(LONG))
    assert encoder.encode(*pad([LONG], 1)).pooled.shape == (1, encoder.dimension)


def test_runtime_is_named_with_its_device(encoder: Encoder) -> None:
    assert encoder.runtime.endswith("/cpu")


def test_runtimes_agree(models_dir: Path) -> None:
    left, right = (load(name, models_dir).encode(*pad([LONG], 1)) for name in ("openvino", "onnxruntime"))
    assert cosines(left.pooled, right.pooled).min() > 0.995
    assert cosines(left.token_vectors, right.token_vectors).min() > 0.98


def test_e5_makes_the_vectors_of_the_engine_that_its_weights_come_with(models_dir: Path) -> None:
    question = np.array([0, 41, 1294, 12, 11249, 4989, 83, 70, 142027, 32, 2])  # "query: How long is the guarantee?"
    expected = [-0.0043, -0.0295, -0.0532, -0.0634, 0.0561, -0.0739, 0.0423, 0.0377, 0.0451, 0.0027, 0.0537, 0.0266]
    found = load("e5 on openvino", models_dir).encode(*pad([question], 16)).pooled[0]
    # What is taken off it is put back: found = (vector - centre) / length, and the vector has length one.
    centre = e5_centre()
    along = float(found @ centre)
    vector = (np.sqrt(along**2 + 1 - centre @ centre) - along) * found + centre
    np.testing.assert_allclose(vector[: len(expected)], expected, atol=0.004)
