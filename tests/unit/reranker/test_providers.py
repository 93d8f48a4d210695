"""Where models run is found in a fixed order, and settings that contradict themselves are refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from services.reranker.embedding.providers import choose
from services.reranker.models import Provider
from services.reranker.settings import RerankerSettings


@pytest.mark.parametrize(
    ("asked", "remote_url", "gpu_model", "has_gpu", "chosen"),
    [
        ("auto", "", "", False, Provider.CPU),
        ("auto", "", "m", False, Provider.CPU),
        ("auto", "", "", True, Provider.CPU),
        ("auto", "", "m", True, Provider.GPU),
        ("auto", "http://h", "m", True, Provider.REMOTE),
        ("cpu", "http://h", "m", True, Provider.CPU),
        ("gpu", "http://h", "m", False, Provider.GPU),
        ("remote", "http://h", "m", True, Provider.REMOTE),
    ],
)
def test_what_is_asked_for_comes_first_then_remote_then_gpu_then_cpu(
    asked: str, remote_url: str, gpu_model: str, has_gpu: bool, chosen: Provider
) -> None:
    assert choose(asked, remote_url=remote_url, gpu_model=gpu_model, has_gpu=lambda: has_gpu) is chosen


def test_gpu_is_not_looked_for_when_nothing_would_run_on_it() -> None:
    def look() -> bool:
        raise AssertionError("torch would be imported")

    assert choose("auto", remote_url="", gpu_model="", has_gpu=look) is Provider.CPU
    assert choose("auto", remote_url="http://h", gpu_model="m", has_gpu=look) is Provider.REMOTE


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"reranker_embedding_provider": "remote"}, "set GROUNDWORK_RERANKER_REMOTE_EMBEDDING_URL"),
        ({"reranker_embedding_provider": "gpu"}, "set GROUNDWORK_RERANKER_GPU_EMBEDDING_MODEL"),
        (
            {"reranker_remote_rerank_url": "https://api"},
            "GROUNDWORK_RERANKER_REMOTE_RERANK_MODEL is not; name the model",
        ),
        ({"reranker_remote_rerank_url": "api.host"}, "must start with http"),
    ],
)
def test_incomplete_provider_is_refused_with_the_setting_to_add(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        RerankerSettings(**values)


def test_keys_are_not_shown() -> None:
    settings = RerankerSettings(reranker_remote_embedding_api_key="k-123")
    assert "k-123" not in repr(settings)
