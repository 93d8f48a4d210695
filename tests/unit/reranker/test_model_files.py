"""A model file is used only when it is the right one."""

import hashlib
from pathlib import Path

import pytest

from services.reranker.errors import ModelFileCorrupt, ModelFileMissing
from services.reranker.model_files import ModelFile, read_verified


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
