"""The images that `make test-images` has built, and a whole system in containers of them, told what compose.yaml says."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from kit.testing.harness import free_ports
from tests.images import compose
from tests.images.containers import Container, Containers, Order, available
from tests.images.dockerfile import REPOSITORY
from tests.integration.api import Api

VARIABLE = "TEST_IMAGES"
"""Set to the images' names with {} for the service, by `make test-images`."""
START_TIMEOUT_S = 180.0
POLL_S = 0.2
LOOPBACK = "127.0.0.1"
SERVICES = [name for name in compose.ours() if name not in {"keys", "nats"}]


@pytest.fixture(scope="session")
def containers() -> Iterator[Containers]:
    if not os.environ.get(VARIABLE):
        pytest.skip("the images are built for it: make test-images")
    with available() as found:
        if found is None:
            pytest.skip("nothing runs containers here: it takes docker, podman, or buildah and root")
        yield found


def name_of(target: str) -> str:
    return os.environ[VARIABLE].format(target)


@dataclass
class System:
    """All services of compose.yaml that are built here, each on ports of its own of this machine."""

    containers: Containers
    folder: Path
    ports: dict[str, int]
    ops_ports: dict[str, int]
    running: dict[str, Container] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.ports['http']}"

    def nats_url(self, user: str) -> str:
        return f"nats://{user}:development@{LOOPBACK}:{self.ports['nats']}"

    def order(self, service: str, *arguments: str, program: tuple[str, ...] = ()) -> Order:
        """A container of that service, as compose.yaml has it."""
        told = compose.services()[service]
        return Order(
            name_of(told["build"]["target"]),
            arguments or tuple(told.get("command", ())),
            self.environment(service),
            self._mounts(service),
            program,
        )

    def environment(self, service: str) -> Mapping[str, str]:
        """What compose.yaml says, on ports of this machine and with the search engines that need no server."""
        told = {
            name: self._here(value)
            for name, value in compose.environment(service).items()
            if name.partition("_")[2].split("_")[0] not in {"QDRANT", "ELASTICSEARCH"}
        }
        if service == "nats":
            return told
        told |= {
            "GROUNDWORK_GRPC_ADDRESS": f"{LOOPBACK}:{self.ports[service]}",
            "GROUNDWORK_HOST": LOOPBACK,
            "GROUNDWORK_OPS_HOST": LOOPBACK,
            "GROUNDWORK_OPS_PORT": str(self.ops_ports[service]),
        }
        return told | {"GROUNDWORK_PORT": str(self.ports["http"])} if service == "gateway" else told

    def start(self, service: str, *arguments: str) -> None:
        order = self.order(service, *arguments)
        self.running[service] = self.containers.start(order, self.folder / f"{service}.log")

    def wait_until_ready(self, service: str) -> None:
        until = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready(service):
            container = self.running[service]
            assert not container.has_ended(), f"{service} ended:\n{container.output()}"
            assert time.monotonic() < until, f"{service} is not ready:\n{container.output()}"
            time.sleep(POLL_S)

    def command_line(self, *arguments: str) -> str:
        """What `groundwork` prints in a container, beside the system's message store."""
        environment = {"GROUNDWORK_NATS_URL": self.nats_url("groundwork")}
        mounts = {self.folder / "keys": "/data"}
        done = self.containers.run(Order(name_of("cli"), arguments, environment, mounts))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _mounts(self, service: str) -> dict[Path, str]:
        if service == "nats":
            told = (volume.split(":") for volume in compose.services()["nats"]["volumes"])
            return {REPOSITORY / source: target for source, target, *_ in told if "/" in source}
        return {self.folder / "keys": "/keys"}

    def _here(self, value: str) -> str:
        """The same on this machine, for an address."""
        host = (urlsplit(value if "://" in value else f"//{value}").hostname) or ""
        if host not in self.ports:
            return value
        port = urlsplit(value if "://" in value else f"//{value}").port
        return value.replace(f"{host}:{port}", f"{LOOPBACK}:{self.ports[host]}")

    def _is_ready(self, service: str) -> bool:
        try:
            return httpx.get(f"http://{LOOPBACK}:{self.ops_ports[service]}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False


@pytest.fixture(scope="session")
def system(containers: Containers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("containers")
    keys = folder / "keys"
    keys.mkdir()
    keys.chmod(0o777)  # the containers' user is not the one of the tests
    names = ["http", "nats", "monitor", *SERVICES]
    ports = free_ports(len(names) + len(SERVICES))
    system = System(
        containers,
        folder,
        dict(zip(names, ports, strict=False)),
        dict(zip(SERVICES, ports[len(names) :], strict=True)),
    )
    system.command_line("signing-keys", "ensure", "--folder", "/data")
    nats = (*compose.services()["nats"]["command"], f"--addr={LOOPBACK}", f"--port={system.ports['nats']}")
    try:
        system.start("nats", *nats, f"--http_port={system.ports['monitor']}")
        for service in SERVICES:
            system.start(service)
        for service in SERVICES:
            system.wait_until_ready(service)
        yield system
    finally:
        for container in reversed(system.running.values()):
            container.stop()


@pytest.fixture(scope="session")
def api(system: System) -> Iterator[Api]:
    """With the key that compose.yaml names."""
    headers = {"Authorization": f"Bearer {compose.environment('gateway')['GROUNDWORK_BOOTSTRAP_KEY']}"}
    with httpx.Client(base_url=system.base_url, headers=headers, timeout=60.0, trust_env=False) as http:
        yield Api(http)
