"""What the service tests share: a real language model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.llm.endpoint.endpoint import EndpointConfig
from tests.real_models import llama_cpp, other_server


@pytest.fixture(scope="session", params=["llama.cpp", "TEST_OPENAI_BASE_URL"])
def real_model(request: pytest.FixtureRequest, models_dir: Path) -> Iterator[EndpointConfig]:
    """A real model server: the same tests run against each there is."""
    if request.param == "llama.cpp":
        with llama_cpp(models_dir) as config:
            yield config
    else:
        yield other_server()
