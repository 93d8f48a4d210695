"""A full disk stops nothing that can go on, is said once, and is got over by itself once there is room.

As root the disk is a small tmpfs that a ballast file fills; else writing fails by injection, in the same places.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.jetstream import KeyValue, connect
from kit.testing.harness import free_port
from kit.testing.nats import nats_server_binary
from ops import nats_users
from ops.state import USERS
from services.standalone import topology
from services.standalone.adapters.health import NetworkProbe
from services.standalone.errors import DiskFull
from services.standalone.storage import disk as disk_module
from services.standalone.storage.data_dir import open_data_dir
from services.standalone.storage.disk import Disk, has_room, require_room
from services.standalone.storage.log_files import JsonLinesLog
from services.standalone.supervising.models import ChildEvent, ChildSpec, ChildState, Probe, ProbeKind
from services.standalone.supervising.state_file import StateFile
from services.standalone.supervising.supervisor import Supervisor
from tests.unit.standalone.conftest import POLICY, SLEEPER, WAIT_S, FakeDisk, Observed, Supervise, no_checks, spec

DISK_BYTES = 32 * 1024 * 1024
SAYS_DISK_FULL_ONCE = """
import pathlib, signal, sys
marker = pathlib.Path(sys.argv[1])
if not marker.exists():
    marker.touch()
    print('write failed: no space left on device', flush=True)
signal.pause()
"""


class SmallDisk:
    """A file system of 32 MB that can be filled to the last byte."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def empty(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("skipped: only root may mount a small file system")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every write of the room probe fails as on a full disk, for users who may not mount one."""

    def fail(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk_module.os, "write", fail)


def test_a_start_on_a_full_disk_ends_with_one_sentence(tmp_path: Path, no_room: None) -> None:
    with pytest.raises(DiskFull, match=r"No space left on device\. Free some space") as caught:
        require_room(tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_on_a_full_disk_is_refused_with_the_same_sentence(small_disk: SmallDisk) -> None:
    data = small_disk.folder / "data"
    small_disk.fill()
    with pytest.raises(DiskFull, match=r"No space left on device\. Free some space"), open_data_dir(data):
        pass
    small_disk.empty()
    with open_data_dir(data):  # nothing half made is in the way of the next start
        pass


def test_a_log_leaves_out_lines_while_the_disk_is_full_and_says_how_many(small_disk: SmallDisk) -> None:
    reported: list[str] = []
    log = JsonLinesLog(small_disk.folder / "one.log", report_failure=reported.append)
    log.write("stdout", b'{"event": "before"}')
    small_disk.fill()
    for number in range(3000):  # the last page of the file has room for some
        log.write("stdout", b'{"event": "meanwhile %d"}' % number)
    assert reported
    assert set(reported) == {"No space left on device (one.log)"}
    assert log.last_lines()[-1] == "info meanwhile 2999"
    small_disk.empty()
    log.write("stdout", b'{"event": "after"}')
    log.close()
    lines = [json.loads(line) for line in (small_disk.folder / "one.log").read_text().splitlines()]
    kept = [line["event"] for line in lines if line["event"].startswith("meanwhile")]
    assert [line["event"] for line in lines][-2:] == ["log_lines_left_out", "after"]
    assert lines[-2]["count"] == 3000 - len(kept) > 0


async def test_a_child_that_dies_while_the_disk_is_full_takes_nobody_with_it(
    tmp_path: Path, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with supervise([spec("one", SLEEPER), spec("other", SLEEPER)]) as running:
        observed = running.observed
        state = state_file(tmp_path, running.disk)
        async with asyncio.timeout(WAIT_S):
            await observed.all_ready.wait()
        with monkeypatch.context() as full:
            full.setattr("services.standalone.supervising.state_file.write_private", fail)
            full.setattr(disk_module, "has_room", lambda folder: False)
            ready = observed.of("one", ChildState.READY)[0]
            assert ready.pid
            os.kill(ready.pid, 9)
            await observed.until(lambda: len(observed.of("one", ChildState.READY)) == 2)
            for event in observed.events:
                state.record(event)
            assert not running.task.done()
            assert not observed.of("other", ChildState.DIED)
            assert len(running.disk.said) == 1
            assert "No space left on device (state.json)" in running.disk.said[0]
        async with asyncio.timeout(WAIT_S):
            await running.disk.working()
        now = json.loads((tmp_path / "state.json").read_text())
        assert now["services"]["one"] == {
            "service": "one",
            "address": "127.0.0.1:1",
            "ops_port": None,
            "pid": observed.of("one", ChildState.READY)[1].pid,
            "state": "ready",
            "restarts": 1,
            "stop_grace_s": 10.0,
        }
        assert "can be written again" in running.disk.said[1]
        await running.stopped()


def state_file(folder: Path, disk: Disk) -> StateFile:
    state = StateFile(
        folder / "state.json",
        [spec("one", SLEEPER), spec("other", SLEEPER)],
        supervisor_pid=os.getpid(),
        url="",
        nats_url="",
        data_dir=folder,
        report_failure=disk.report,
    )
    disk.when_it_works(state.write)
    return state


async def test_a_program_that_stays_unable_to_write_is_restarted_once_there_is_room(
    tmp_path: Path, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildSpec(
        name="store",
        command=[sys.executable, "-I", "-S", "-c", SAYS_DISK_FULL_ONCE, str(tmp_path / "marker")],
        environment=dict(os.environ),
        probe=Probe(ProbeKind.HTTP, "127.0.0.1", 1),
        write_failure_pattern=topology.NATS_WRITE_FAILURE,
    )
    room = asyncio.Event()
    monkeypatch.setattr(disk_module, "has_room", lambda folder: room.is_set())
    async with supervise([child]) as running:
        observed = running.observed
        async with asyncio.timeout(WAIT_S):
            while not running.disk.said:
                await asyncio.sleep(0)
        assert "store says: write failed: no space left on device" in running.disk.said[0]
        assert len(observed.of("store", ChildState.STARTING)) == 1
        room.set()
        await observed.until(lambda: len(observed.of("store", ChildState.READY)) == 2)
        assert not observed.of("store", ChildState.DIED), "it was restarted, it did not crash"
        await running.stopped()


@pytest.mark.parametrize(
    ("line", "fails"),
    [
        (
            "[ERR] JetStream stream '$G > KV_RUNS' critical write error: write /data/1.blk: no space left on device",
            True,
        ),
        (
            "[ERR] JetStream stream '$G > KV_RUNS' critical write error: sequence numbers for cache load did not match",
            True,
        ),
        ("[WRN] Filestore [KV_RUNS] Stream state outdated, last block has additional entries, will rebuild", False),
    ],
)
def test_write_failures_are_known_by_what_nats_server_says(line: str, fails: bool) -> None:
    assert bool(re.search(topology.NATS_WRITE_FAILURE, line)) is fails


async def test_the_message_store_writes_again_once_the_disk_has_room(tmp_path: Path, small_disk: SmallDisk) -> None:
    port, store = free_port(), small_disk.folder / "nats"
    config = tmp_path / "nats.conf"
    passwords = dict.fromkeys((nats_users.ADMINISTRATOR, *USERS), "p")
    config.write_text(topology.nats_configuration(store, port, passwords, "10s"))
    nats = ChildSpec(
        name="nats",
        command=[nats_server_binary(), "--config", str(config)],
        environment=dict(os.environ),
        probe=Probe(ProbeKind.NATS, "127.0.0.1", port),
        write_failure_pattern=topology.NATS_WRITE_FAILURE,
    )
    observed, disk = Observed(), FakeDisk(small_disk.folder)

    def announce(event: ChildEvent) -> None:
        observed(event)

    supervisor = Supervisor(
        [nats],
        POLICY,
        probe=NetworkProbe(),
        open_log=lambda name: JsonLinesLog(small_disk.folder / f"{name}.log", report_failure=disk.report),
        announce=announce,
        on_all_ready=observed.all_ready.set,
        disk=disk,
        on_stage_ready=no_checks,
        on_stage_stopping=no_checks,
    )
    task = asyncio.create_task(supervisor.run())
    try:
        await observed.until(observed.all_ready.is_set)
        async with connect(f"nats://groundwork:p@127.0.0.1:{port}", name="test") as connection:
            bucket = await KeyValue.open(connection, "DOCUMENTS")
            await bucket.put("before", b"acknowledged")
            await asyncio.to_thread(small_disk.fill)
            # Without waiting for an answer: after such a write the server gives none.
            await connection.nc.publish("$KV.DOCUMENTS.lost", bytes(512 * 1024))
            async with asyncio.timeout(WAIT_S):
                while not disk.said:
                    await asyncio.sleep(0.01)
            await asyncio.to_thread(small_disk.empty)
            await observed.until(lambda: len(observed.of("nats", ChildState.READY)) == 2)
            await bucket.put("after", b"acknowledged")
            assert [entry.key async for entry in bucket.entries(">")] == ["before", "after"]
    finally:
        supervisor.request_stop()
        await asyncio.wait_for(task, WAIT_S)
    assert has_room(small_disk.folder)
