"""`groundwork up --detach` and `groundwork stop`: the system without a terminal, on the same ports from start to start."""

import json
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from services.standalone.storage.data_dir import is_in_use
from tests.integration.system import START_TIMEOUT_S, Groundwork, groundwork_command

pytestmark = [pytest.mark.integration]


def _run(place: Groundwork, *words: str) -> subprocess.CompletedProcess[str]:
    command = [groundwork_command(), *words]
    return subprocess.run(
        command, env=place.environment, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False
    )


def _ports(place: Groundwork) -> dict[str, int]:
    services = json.loads((place.data_dir / "state.json").read_text())["services"]
    return {name: each["ops_port"] for name, each in services.items()}


def test_system_runs_in_the_background_until_it_is_stopped_and_keeps_its_ports(
    tmp_path: Path, models_dir: Path
) -> None:
    place = Groundwork(tmp_path / "data", models_dir.absolute())
    refused = _run(place, "stop")
    assert (refused.returncode, "does not run" in refused.stderr) == (2, True)

    started = _run(place, "up", "--detach")
    try:
        assert started.returncode == 0, started.stderr
        assert httpx.get(f"{place.base_url}/readyz", trust_env=False).status_code == 200
        first = _ports(place)
    finally:
        stopped = _run(place, "stop")
    assert stopped.returncode == 0, stopped.stderr
    assert not is_in_use(place.data_dir)

    with socket.create_server(("127.0.0.1", first["memory"])):  # another program has it meanwhile
        again = _run(place, "up", "--detach")
        try:
            assert again.returncode == 0, again.stderr
            second = _ports(place)
        finally:
            _run(place, "stop")
    assert [name for name in first if first[name] != second[name]] == ["memory"]
