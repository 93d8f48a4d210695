"""What a campaign does to a system, as far as it can be seen without one."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chaos import system as chaos_system
from chaos.faults import jump_clock
from chaos.system import ChaosSystem

needs_faketime = pytest.mark.skipif(
    chaos_system._faketime() is None, reason="skipped: install libfaketime (Debian: faketime)"
)


@needs_faketime
def test_clock_of_started_processes_jumps_while_they_run_and_time_goes_on(tmp_path: Path) -> None:
    system = ChaosSystem(tmp_path, has_own_disk=False)
    program = "import sys, time\nfor _ in sys.stdin: print(time.time(), time.monotonic(), flush=True)"
    environment = {**os.environ, **system._clock_environment(), "FAKETIME_NO_CACHE": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for offset_s in (0, 3_700, -26 * 3_600):
            system.set_clock(offset_s)
            before, began = time.time(), time.monotonic()
            process.stdin.write("\n")
            process.stdin.flush()
            wall, monotonic = map(float, process.stdout.readline().split())
            assert before - 1 <= wall - offset_s <= time.time() + 1
            assert began <= monotonic <= time.monotonic()
        process.stdin.close()


def test_clock_is_left_alone_where_it_cannot_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_system, "_faketime", lambda: None)
    system = ChaosSystem(tmp_path, has_own_disk=False)
    assert system._clock_environment() == {}
    assert jump_clock(system, random.Random(1)) == ""
    assert list(tmp_path.iterdir()) == []


def test_store_is_put_back_as_it_was(tmp_path: Path) -> None:
    system = ChaosSystem(tmp_path, has_own_disk=False)
    block = system.data_dir / "nats" / "1.blk"
    block.parent.mkdir(parents=True)
    block.write_bytes(b"whole")
    with system.store_kept() as put_back:
        block.write_bytes(b"torn")
        block.with_name("2.blk").write_bytes(b"new")
        put_back()
    assert [path.name for path in block.parent.iterdir()] == ["1.blk"]
    assert block.read_bytes() == b"whole"
    assert not (tmp_path / "nats.kept").exists()
