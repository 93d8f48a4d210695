"""A runtime that is not installed is said so, with the way out."""

import sys
from collections.abc import Callable

import pytest

from services.reranker.adapters.onnxruntime import OnnxRuntimeEncoder
from services.reranker.adapters.openvino import OpenVinoEncoder
from services.reranker.errors import RuntimeMissing
from services.reranker.ports import Encoder


@pytest.mark.parametrize(("module", "adapter"), [("openvino", OpenVinoEncoder), ("onnxruntime", OnnxRuntimeEncoder)])
def test_missing_runtime_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, adapter: Callable[[bytes, int, int], Encoder]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RuntimeMissing, match="is not installed; run `pip install"):
        adapter(b"", 1, 1)
