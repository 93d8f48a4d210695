"""A model file is used only when it is the right one."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from services.reranker.adapters.cpu_model import embedding_models
from services.reranker.errors import ModelFileCorrupt, ModelFileMissing
from services.reranker.model_files import E5_SMALL_4BIT, MINILM_INT8, ModelFile, read_verified
from services.reranker.settings import RerankerSettings


def test_right_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"weights")
    file = ModelFile("model.onnx", hashlib.sha256(b"weights").hexdigest())
    assert read_verified(tmp_path, file) == b"weights"


def test_missing_file_is_named_and_the_message_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ModelFileMissing, match=r"model\.onnx cannot be read \(No such file.*run `make setup`"):
        read_verified(tmp_path, ModelFile("model.onnx", "0" * 64))


def test_changed_file_is_refused_with_both_digests_and_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"other weights")
    with pytest.raises(ModelFileCorrupt, match=f"has sha256 [0-9a-f]{{64}} where {'0' * 64} is expected.*`make setup`"):
        read_verified(tmp_path, ModelFile("model.onnx", "0" * 64))


def test_model_for_new_texts_comes_first_and_the_other_only_where_its_files_are(tmp_path: Path) -> None:
    def names(**changes: Any) -> list[str]:
        wanted = {"reranker_cpu_embedding_model": "multilingual", **changes}
        return [model.name for model in embedding_models(RerankerSettings(models_dir=tmp_path, **wanted))]

    assert names() == [E5_SMALL_4BIT.name], "its own files are missed when it is loaded"
    assert names(reranker_runtime="onnxruntime") == [MINILM_INT8.name]
    for file in (MINILM_INT8.weights, MINILM_INT8.tokenizer, E5_SMALL_4BIT.weights):
        assert file is not None
        (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.path).touch()
    assert names() == [E5_SMALL_4BIT.name, MINILM_INT8.name]
    assert names(reranker_cpu_embedding_model="english") == [MINILM_INT8.name, E5_SMALL_4BIT.name]
