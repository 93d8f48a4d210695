"""The disk of the data directory full while the system works, and a child killed meanwhile: nothing acknowledged is lost, the rest
stays up, and all goes on by itself once there is room."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.api import Api
from tests.integration.system import Groundwork, running, wait_until
from tests.system.test_backup import command

pytestmark = pytest.mark.integration
DISK = "256m"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=False)
    if mounted.returncode != 0:
        pytest.skip("skipped: only root may mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(ballast: Path) -> None:
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(64 * 1024))
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x")


def test_a_full_disk_and_a_dead_child_stop_nothing_and_room_brings_everything_back(
    small_disk: Path, models_dir: Path
) -> None:
    ballast = small_disk / "ballast"
    system = Groundwork(small_disk / "data", models_dir.absolute(), {"GROUNDWORK_RESTART_BACKOFF_MAX_S": "0.4"})
    with running(system), Api.open(system.base_url) as api:
        kept = api.ingest("default", "kept.txt", b"The mooring Kugelbake lies in the harbour of Emden.")
        fill(ballast)
        refused = api.http.post(
            "/v1/collections/default/documents",
            files={
                "file": ("refused.txt", b"No room for this. " * 5_000),
            },
            timeout=300,
        )
        assert refused.status_code in {429, 503}, "nothing is acknowledged that is not kept"
        processes = {process.pid for process in system.processes()}
        orchestrator = int(system.service("orchestrator")["pid"])
        os.kill(orchestrator, signal.SIGKILL)
        wait_until(lambda: "orchestrator    died" in system.printed(), "the death is told")
        assert system.process is not None
        assert system.process.poll() is None
        assert system.printed().count("cannot be written") <= 1
        assert {process.pid for process in system.processes()} >= processes - {
            orchestrator,
            int(system.service("nats")["pid"]),
        }
        ballast.unlink()

        def is_whole_again() -> bool:
            try:
                answer = api.http.post(
                    "/v1/collections/default/documents", files={"file": ("after.txt", b"There is room again.")}
                )
            except httpx.TransportError:
                return False
            return answer.status_code < 300

        wait_until(is_whole_again, "uploads are taken again", more=system.printed)
        system.wait_until_up("orchestrator", not_pid=orchestrator)
        after = api.upload("default", "after.txt", b"There is room again.")
        assert api.settled(after["id"])["status"] == "ready"
        assert api.get(f"/v1/documents/{kept['id']}")["status"] == "ready"
        assert "Kugelbake" in api.search("default", "mooring Kugelbake")["hits"][0]["text"]
        assert "can be written again" in system.printed()
    fill(ballast)
    refused_start = command(system, "up")
    assert refused_start.returncode == 2
    assert refused_start.stderr.strip().count("\n") == 0
    assert "Free some space" in refused_start.stderr
