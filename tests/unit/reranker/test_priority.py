"""Threads that compute come second."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.reranker.adapters import cpu_model
from services.reranker.model_files import MINILM_INT8
from services.reranker.settings import RerankerSettings
from tests.unit.reranker.fakes import FakeEncoder


def test_threads_that_a_runtime_starts_have_a_lower_priority_and_the_service_keeps_its_own(
    models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = niceness(), []

    def runtime(settings: RerankerSettings, weights: bytes) -> FakeEncoder:
        with ThreadPoolExecutor(1) as computing:
            seen.append(computing.submit(niceness).result())
        return FakeEncoder()

    monkeypatch.setattr(cpu_model, "_onnx_encoder", runtime)
    cpu_model.load(RerankerSettings(models_dir=models_dir), MINILM_INT8)
    has_thread_priorities = sys.platform == "linux"
    assert seen == [before + 5 if has_thread_priorities else before]
    assert niceness() == before


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)  # of the calling thread
