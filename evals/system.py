"""The system under test: the real processes, started as a user starts them, on a data directory of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import psutil

from evals.errors import SystemNotReady
from kit.access.key_folder import KeyFolder
from kit.access.keys import KeySource, parse_signing_key
from kit.access.principal import ADMIN, Principal, use_principal
from kit.access.tokens import TokenSigner
from kit.rpc.channel import Channel, open_channel
from kit.testing.harness import free_port

READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.02
HTTP_TIMEOUT_S = 60.0
_PRINCIPAL = Principal("local", "evals", frozenset({ADMIN}))
"""Sees all: what the evals put into the indexes themselves has no collection that says whose it is."""


@dataclass(frozen=True)
class RunningSystem:
    """An instance that is ready."""

    url: str
    data_dir: Path
    supervisor: psutil.Process
    ready_s: float
    """From the start of `groundwork up` to the first 200 of /readyz."""
    signer: TokenSigner
    """Signs with a key of its own, which the system knows until its next start."""

    def services(self) -> dict[str, Any]:
        """The processes as the supervisor sees them: name → address, pid, state."""
        state: dict[str, Any] = json.loads((self.data_dir / "state.json").read_text("utf-8"))
        services: dict[str, Any] = state["services"]
        return services

    def processes(self) -> list[tuple[str, psutil.Process]]:
        """All processes of the instance by name, children of a service after it."""
        named = [(name, psutil.Process(service["pid"])) for name, service in self.services().items()]
        below = [(f"{name} (child)", child) for name, process in named for child in process.children(recursive=True)]
        return [("supervisor", self.supervisor), *named, *below]

    def http(self) -> httpx.AsyncClient:
        """A client of the gateway."""
        return httpx.AsyncClient(base_url=self.url, timeout=HTTP_TIMEOUT_S, trust_env=False)

    @asynccontextmanager
    async def channel(self, service: str) -> AsyncIterator[Channel]:
        """A gRPC channel to a service, as the gateway has one; calls in the block are the local tenant's."""
        address = self.services()[service]["address"]
        async with open_channel(address, self.signer) as channel:
            with use_principal(_PRINCIPAL):
                yield channel


@contextmanager
def running_system(
    kept_data_dir: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[RunningSystem]:
    """Starts the system and stops it: on an empty data directory that is thrown away, or on one that is kept; with these
    environment variables besides the user's. Raises SystemNotReady. SIGTERM ends this program as Ctrl-C does, and the system with
    it."""
    if threading.current_thread() is threading.main_thread():  # nowhere else may a program say what a signal does
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="groundwork-evals-", ignore_cleanup_errors=True) as folder:
        data_dir, log, port = kept_data_dir or Path(folder, "data"), Path(folder, "up.log"), free_port()
        url = f"http://127.0.0.1:{port}"
        with log.open("wb") as output:
            started_at = time.perf_counter()
            process = subprocess.Popen(
                [Path(sys.executable).with_name("groundwork"), "up"],
                env={**system_environment(data_dir, port), **settings},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                wait_until_ready(url, process, log)
                ready_s = time.perf_counter() - started_at
                yield RunningSystem(url, data_dir, psutil.Process(process.pid), ready_s, own_signer(data_dir))
            finally:
                stop(process)


def own_signer(data_dir: Path) -> TokenSigner:
    """Adds a key of ours to those of a running system."""
    keys = KeyFolder(data_dir / "secrets" / "keys")
    keys.add("evals", ["memory/*", "reranker/*", "retriever/*"])
    return TokenSigner(KeySource(parse_signing_key, path=keys.signing_key_file("evals"), setting="evals"))


def system_environment(data_dir: Path, port: int) -> dict[str, str]:
    """The user's environment without a language model: what is measured is the extractive answer."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDWORK_LLM_")}
    return {**inherited, "GROUNDWORK_DATA_DIR": str(data_dir), "GROUNDWORK_PORT": str(port)}


def wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Asks /readyz every 20 ms until it answers 200."""
    give_up_at = time.perf_counter() + READY_TIMEOUT_S
    with httpx.Client(base_url=url, timeout=2.0, trust_env=False) as client:
        while time.perf_counter() < give_up_at and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if client.get("/readyz").is_success:
                    return
            time.sleep(POLL_INTERVAL_S)
    said = log.read_text("utf-8", "replace")[-3000:]
    raise SystemNotReady(f"the system was not ready within {READY_TIMEOUT_S:.0f} s; it said:\n{said}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does, to all of its group if it leads one; kills what does not stop (children die with the supervisor)."""
    if process.poll() is not None:
        return
    send = os.killpg if os.getpgid(process.pid) == process.pid else os.kill
    send(process.pid, signal.SIGINT)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        send(process.pid, signal.SIGKILL)
        process.wait()
