"""The file of multilingual-e5-small: its blocks of four bits, and what is said of one that is something else."""

import struct
from pathlib import Path

import numpy as np
import pytest

from kit.openvino import without_telemetry
from services.reranker.adapters.e5_file import Blocks, E5File
from services.reranker.adapters.sentencepiece import SentencePieceTokenizer, unigram_model
from services.reranker.errors import ModelFileCorrupt
from services.reranker.model_files import E5_SMALL_4BIT, read_verified

BEGIN, END = 0, 2


@pytest.fixture(scope="module")
def file(models_dir: Path) -> E5File:
    return E5File(read_verified(models_dir, E5_SMALL_4BIT.weights))


def test_low_halves_are_the_first_sixteen_weights_of_a_block() -> None:
    halves = np.array([[[(15 - n) << 4 | n for n in range(16)]]], dtype=np.uint8)
    weights = Blocks(np.array([[0.5]], dtype=np.float32), halves).weights()
    assert weights.tolist() == [[*((n - 8) / 2 for n in range(16)), *((7 - n) / 2 for n in range(16))]]


@pytest.mark.parametrize("content", [b"", b"GGUF" + bytes(100), b"E5S1" + struct.pack("<I", 1) + bytes(20)])
def test_file_of_another_kind_is_refused(content: bytes) -> None:
    with pytest.raises(ModelFileCorrupt, match="cannot be read"):
        E5File(content)


def test_missing_tensor_is_named(file: E5File) -> None:
    with pytest.raises(ModelFileCorrupt, match=r"lack the tensor l12\.q\.w"):
        file.blocks("l12.q.w", 384)


def test_network_has_the_sizes_that_the_file_states(file: E5File) -> None:
    assert (file.shape.layers, file.shape.width, file.shape.positions) == (12, 384, 512)
    without_telemetry()
    pytest.importorskip("openvino")
    from services.reranker.adapters.e5_network import e5_network  # noqa: PLC0415 - imports OpenVINO

    network = e5_network(file)
    assert [each.get_any_name() for each in network.inputs] == ["input_ids", "attention_mask"]
    assert network.output(0).get_partial_shape()[2].get_length() == 384


def test_tokenizer_has_the_ids_of_xlm_roberta_and_cuts_to_the_window(file: E5File) -> None:
    tokenizer = SentencePieceTokenizer(unigram_model(file.pieces), 8)
    short, decomposed, long = tokenizer.tokenize(["query: How", "query: \ufb01n e\u0301", "word " * 1000])
    assert short.tolist() == [BEGIN, 41, 1294, 12, 11249, END]
    assert (decomposed == tokenizer.tokenize(["query:  fin \u00e9 "])[0]).all(), "normalised as NFKC, spaces once"
    assert len(long) == 8
    assert (long[0], long[-1]) == (BEGIN, END)
