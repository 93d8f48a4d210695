"""Starts the whole system as a user would, with `groundwork up`, and looks at it from outside: its terminal, its state file, its
processes, its HTTP port."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from kit.access.key_folder import KeyFolder
from kit.access.keys import KeySource, parse_signing_key
from kit.access.tokens import TokenSigner
from kit.testing.harness import free_port

START_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 120.0
POLL_S = 0.05


def groundwork_command() -> str:
    """The installed command beside the interpreter that runs the tests."""
    return str(Path(sys.executable).with_name("groundwork"))


def clean_environment(**variables: str) -> dict[str, str]:
    """This environment without anybody's settings of Groundwork, and with `variables`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDWORK_")}
    return {**inherited, **variables}


@dataclass
class Groundwork:
    """One installation on this machine, running or not. `replicas` as for `groundwork up --replicas`, unless the test run says
    GROUNDWORK_TEST_REPLICAS for all installations."""

    data_dir: Path
    models_dir: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    replicas: str = ""
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return clean_environment(
            GROUNDWORK_PORT=str(self.port),
            GROUNDWORK_DATA_DIR=str(self.data_dir),
            GROUNDWORK_MODELS_DIR=str(self.models_dir),
            GROUNDWORK_REPLICAS=os.environ.get("GROUNDWORK_TEST_REPLICAS", self.replicas),
            **self.settings,
        )

    @property
    def terminal(self) -> Path:
        """What the system printed, over all its starts."""
        return self.data_dir.with_name(f"{self.data_dir.name}.terminal")

    def launch(self) -> None:
        """`groundwork up`, without waiting."""
        with self.terminal.open("ab") as out:
            self.process = subprocess.Popen(
                [groundwork_command(), "up"],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the test run is not the system's
            )

    def start(self) -> None:
        """Up and ready."""
        self.launch()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Until /readyz says 200 and the supervisor has seen it too."""
        assert self.process is not None
        with httpx.Client(base_url=self.base_url, trust_env=False) as http:
            wait_until(
                lambda: self._is_ready(http), "the system is ready", timeout_s=START_TIMEOUT_S, more=self.printed
            )

    def _is_ready(self, http: httpx.Client) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the system ended while starting:\n{self.printed()}"
        try:
            return http.get("/readyz").status_code == 200 and bool(self.state()["ready"])
        except (httpx.TransportError, FileNotFoundError):
            return False

    def state(self) -> dict[str, Any]:
        """The state file."""
        state: dict[str, Any] = json.loads((self.data_dir / "state.json").read_text())
        return state

    def service(self, name: str) -> dict[str, Any]:
        """A process in the state file: service, address, ops_port, pid, state, restarts. By the name of a service its first."""
        service: dict[str, Any] = self.state()["services"][name]
        return service

    def processes_of(self, service: str) -> list[dict[str, Any]]:
        """All processes of a service in the state file."""
        return [each for each in self.state()["services"].values() if each["service"] == service]

    def is_up(self, service: str, *, not_pid: int | None = None) -> bool:
        """Whether all processes of the service are ready, and none of them is `not_pid`."""
        found = self.processes_of(service)
        return all(each["state"] == "ready" and each["pid"] not in (None, not_pid) for each in found)

    def wait_until_up(self, service: str, *, not_pid: int | None = None) -> int:
        """Until all processes of the service are ready, and none of them is `not_pid`; the process id of the first."""
        wait_until(
            lambda: self.is_up(service, not_pid=not_pid),
            f"{service} is up again",
            timeout_s=START_TIMEOUT_S,
            more=self.printed,
        )
        return int(self.service(service)["pid"])

    def processes(self) -> list[psutil.Process]:
        """The supervisor and everything below it."""
        assert self.process is not None
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Asks the system to stop, checks that no process stays; its exit code."""
        assert self.process is not None
        processes = self.processes()
        self.process.send_signal(number)
        exit_code = self.process.wait(STOP_TIMEOUT_S)
        self.process = None
        assert_gone(processes)
        return exit_code

    def kill(self) -> None:
        """For teardown after a failure: nothing may survive a test."""
        if self.process is None:
            return
        processes = self.processes() if self.process.poll() is None else []
        self.process.kill()
        self.process.wait()
        self.process = None
        for process in processes:
            if process.is_running():
                process.kill()

    def printed(self) -> str:
        """What the terminal shows."""
        return self.terminal.read_text("utf-8", "replace")

    def log(self, service: str) -> str:
        """The logs of a service's processes."""
        folder = self.data_dir / "logs"
        files = [folder / f"{service}.log", *folder.glob(f"{service}-[0-9]*.log")]
        return "".join(file.read_text("utf-8", "replace") for file in files)

    @property
    def keys(self) -> KeyFolder:
        return KeyFolder(self.data_dir / "secrets" / "keys")

    def signer(self) -> TokenSigner:
        """Signs with a key of the test's, which the system knows until its next start."""
        self.keys.add("test", ["jobs/INGEST", "retriever/CorpusStats"])
        return TokenSigner(KeySource(parse_signing_key, path=self.keys.signing_key_file("test"), setting="test"))

    def service_environment(self, name: str, **variables: str) -> dict[str, str]:
        """What the supervisor tells the service `name`, for one more process beside it."""
        state = self.state()
        addresses = {
            f"GROUNDWORK_{service.upper().replace('-', '_')}_ADDRESS": ",".join(
                each["address"] for each in self.processes_of(service)
            )
            for service in {each["service"] for each in state["services"].values()}
        }
        return {
            **self.environment,
            **addresses,
            "GROUNDWORK_NATS_URL": state["nats_url"],
            "GROUNDWORK_AUTH_PUBLIC_KEYS_FILE": str(self.keys.public_keys_file),
            "GROUNDWORK_AUTH_SIGNING_KEY_FILE": str(self.keys.signing_key_file(name)),
            **variables,
        }


@contextmanager
def running(groundwork: Groundwork) -> Iterator[Groundwork]:
    """A started system; stopped in good order at the end, which is checked: exit code 0 and nobody left behind."""
    try:
        groundwork.start()
        yield groundwork
        assert groundwork.stop() == 0, groundwork.printed()
        assert " killed  " not in groundwork.printed().rpartition("Stopping")[2], "a service did not stop when told to"
    finally:
        groundwork.kill()


@contextmanager
def suspended(system: Groundwork, service: str) -> Iterator[None]:
    """A service that hangs for the block: its ports are open, and none of its processes does anything."""
    processes = [psutil.Process(each["pid"]) for each in system.processes_of(service)]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


@contextmanager
def another_gateway(groundwork: Groundwork) -> Iterator[str]:
    """A second gateway process over the same services, as a load balancer would have; its base URL."""
    port = free_port()
    environment = groundwork.service_environment(
        "gateway", GROUNDWORK_PORT=str(port), GROUNDWORK_GRPC_ADDRESS="127.0.0.1:0", GROUNDWORK_OPS_PORT="0"
    )
    log = groundwork.data_dir.with_name(f"gateway-{port}.log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.gateway"], env=environment, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(url), "the second gateway answers", more=lambda: log.read_text("utf-8", "replace"))
        yield url
        process.terminate()
        assert process.wait(STOP_TIMEOUT_S) == 0, log.read_text("utf-8", "replace")
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def wait_until(
    condition: Callable[[], bool], what: str, *, timeout_s: float = 300.0, more: Callable[[], str] = str
) -> None:
    """Polls: another process offers no event to wait on."""
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up_at, f"not within {timeout_s:g} s: {what}\n{more()}"
        time.sleep(POLL_S)


def assert_gone(processes: list[psutil.Process]) -> None:
    """None of the processes may be left. A killed one needs a moment to leave the process table."""
    _, alive = psutil.wait_procs(processes, timeout=5.0)
    left = [f"{process.pid} {' '.join(process.cmdline())}" for process in alive if process.status() != "zombie"]
    assert not left, f"left behind: {left}"
