"""Memory of the GPU in the metrics: asked of torch whenever they are read, and never in the way of the others."""

import math
import sys
from types import ModuleType, SimpleNamespace

import pytest
from prometheus_client import REGISTRY

from services.reranker.adapters.sentence_transformers import show_device_memory


def told(kind: str) -> float | None:
    return REGISTRY.get_sample_value("groundwork_reranker_device_memory_bytes", {"kind": kind})


class Cuda(SimpleNamespace):
    """As torch.cuda answers."""

    is_lost = False

    def mem_get_info(self, device: str) -> tuple[int, int]:
        if self.is_lost:
            raise RuntimeError("CUDA error: device lost")
        return 3, 10

    def memory_reserved(self, device: str) -> int:
        return 4


def test_memory_is_told_as_it_is_and_as_unknown_once_the_device_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    torch, cuda = ModuleType("torch"), Cuda()
    torch.cuda = cuda  # type: ignore[attr-defined] # the real one is gigabytes
    monkeypatch.setitem(sys.modules, "torch", torch)
    show_device_memory("cuda:0")
    assert [told(kind) for kind in ("free", "total", "ours")] == [3, 10, 4]
    cuda.is_lost = True
    assert math.isnan(told("free") or 0.0)
    assert told("ours") == 4


def test_processor_has_no_memory_of_a_device() -> None:
    show_device_memory("cpu")
