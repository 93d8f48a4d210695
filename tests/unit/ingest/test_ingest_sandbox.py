"""The limits of the parsing child, looked at from inside one."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")

_REPORT = """
import json, os, resource, time
from services.ingest.reading.child.sandbox import allow_processor_time, confine
confine(2 * 1024**3)
"""


def _inside(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _REPORT + code], capture_output=True, text=True, timeout=60, check=False
    )


def test_child_is_limited_in_memory_files_and_cores() -> None:
    done = _inside(
        "names = ('AS', 'CORE', 'NOFILE', 'FSIZE')\n"
        "print(json.dumps([resource.getrlimit(getattr(resource, 'RLIMIT_' + name))[1] for name in names] + [os.nice(0)]))"
    )
    memory, core, files, written, niceness = json.loads(done.stdout)
    assert memory == 2 * 1024**3
    assert core == 0
    assert files <= 256
    assert written <= 64 * 1024**2
    assert niceness >= 5


def test_child_that_computes_too_long_is_ended_by_the_kernel() -> None:
    assert _inside("allow_processor_time(0.2)\nwhile True: pass").returncode == -24  # SIGXCPU


def test_allowance_is_for_each_file_and_not_for_the_life_of_the_child() -> None:
    burn = "start = time.process_time()\nwhile time.process_time() - start < 0.6: pass\n"
    done = _inside(("allow_processor_time(1)\n" + burn) * 3 + "print('alive')")
    assert done.stdout == "alive\n"


def test_child_that_eats_memory_gets_an_error() -> None:
    assert "MemoryError" in _inside("bytearray(4 * 1024**3)").stderr


def test_child_cannot_write_large_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("written") / "big"
    done = _inside(f"open({str(path)!r}, 'wb').write(bytes(80 * 1024**2))")
    assert "File too large" in done.stderr


def test_child_dies_with_its_parent() -> None:
    """The parent starts a confined child that sleeps, prints its id and is gone."""
    child = (
        "import time; from services.ingest.reading.child.sandbox import confine; "
        "confine(2**31); print(1, flush=True); time.sleep(60)"
    )
    parent = (
        "import subprocess, sys, os\n"
        f"p = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "p.stdout.read(1); print(p.pid, flush=True); os._exit(0)"
    )
    # The child holds the pipe that `run` reads to its end: this returns when the child is dead.
    done = subprocess.run(
        [sys.executable, "-c", parent.replace("stdout=subprocess.PIPE", "stdout=subprocess.PIPE, stderr=sys.stdout")],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.stdout.strip().isdigit()
