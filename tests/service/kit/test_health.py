"""The health command of images, against a real operations port."""

import os
import subprocess
import sys

import pytest

from kit.observability.health import unready
from kit.observability.ops import OpsServer, Trouble


def asked(port: int, host: str = "0.0.0.0") -> str:
    return unready({"GROUNDWORK_OPS_HOST": host, "GROUNDWORK_OPS_PORT": str(port)})


def test_ready_service_is_healthy_under_every_address_that_it_may_listen_on() -> None:
    for host in ("0.0.0.0", "127.0.0.1", "127.0.0.9"):
        with OpsServer(host, 0, ready=lambda: True) as door:
            assert asked(door.port, host) == ""


def test_trouble_of_a_ready_service_leaves_it_healthy() -> None:
    with OpsServer("127.0.0.1", 0, ready=lambda: True, troubles=lambda: [Trouble("index", "is being filled")]) as door:
        assert asked(door.port) == ""


def test_waiting_service_is_not_healthy_and_says_what_it_waits_for() -> None:
    with OpsServer("127.0.0.1", 0, ready=lambda: False, troubles=lambda: [Trouble("NATS", "is away")]) as door:
        assert "NATS: is away" in asked(door.port)


def test_port_where_nobody_listens_is_not_healthy() -> None:
    with OpsServer("127.0.0.1", 0, ready=lambda: True) as door:
        port = door.port
    assert asked(port).startswith(f"127.0.0.1:{port} does not answer")


@pytest.mark.parametrize("environment", [{}, {"GROUNDWORK_OPS_PORT": "0"}, {"GROUNDWORK_OPS_PORT": "http"}])
def test_port_that_cannot_be_known_is_named(environment: dict[str, str]) -> None:
    assert "GROUNDWORK_OPS_PORT" in unready(environment)


@pytest.mark.parametrize("ready", [True, False])
def test_command_ends_with_the_code_that_docker_reads(ready: bool) -> None:
    with OpsServer("127.0.0.1", 0, ready=lambda: ready, troubles=lambda: [Trouble("NATS", "is away")]) as door:
        environment = os.environ | {"GROUNDWORK_OPS_HOST": "0.0.0.0", "GROUNDWORK_OPS_PORT": str(door.port)}
        command = [sys.executable, "-m", "kit.observability.health"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if ready else 1)
    assert ("NATS: is away" in done.stderr) is not ready
