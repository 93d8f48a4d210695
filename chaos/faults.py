"""What is done to the system. A fault says what it did, and leaves nothing behind but what the system has to mend itself."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from chaos.system import ChaosSystem
from evals.errors import SystemNotReady

_DERIVED = ("retriever", "reranker")
"""Folders of the data directory that hold nothing but what can be made again."""
_STREAMS = (
    "KV_ACTIVE_REVISIONS",
    "KV_COLLECTIONS",
    "KV_DOCUMENTS",
    "KV_DOCUMENT_NAMES",
    "OBJ_FILES",
)
"""What the message store is the only one to hold, and is watched over entry by entry. Of runs only totals are known, which tell no
loss at the oldest end, nor a record that is there as it was before its last change. Leases expire, queues are filled again."""
_CLOCK_JUMPS_S = (5, 120, 3_700, 26 * 3_600)
"""Seconds, minutes, more than an hour (what is taken for left over is older), more than a day."""
_LONGEST_JUMP_S = 6.0
_LONGEST_FREEZE_S = 6.0
_LONGEST_FULL_S = 6.0
_MOST_FLIPPED_BYTES = 64

Fault = Callable[[ChaosSystem, random.Random], str]
"""Does it, and returns what was done, or "" when it was not possible now."""


def kill_service(system: ChaosSystem, rng: random.Random) -> str:
    """SIGKILL to one service; its supervisor starts it again."""
    name = _service(system, rng)
    return f"killed {name}" if name and _signal(system, name, signal.SIGKILL) else ""


def freeze_service(system: ChaosSystem, rng: random.Random) -> str:
    """A service stands still for a while, as one whose machine is overloaded does."""
    name, seconds = _service(system, rng), rng.uniform(0.5, _LONGEST_FREEZE_S)
    if not name:
        return ""
    pid = int(system.services()[name]["pid"])
    if not _signal(system, name, signal.SIGSTOP):
        return ""
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    return f"froze {name} for {seconds:.1f} s"


def kill_everything(system: ChaosSystem, _: random.Random) -> str:
    """All processes at once, and a start on what they left."""
    system.kill()
    system.start()
    return "killed everything"


def fill_disk(system: ChaosSystem, rng: random.Random) -> str:
    """No byte is free for a while."""
    if not system.has_own_disk:
        return ""
    filler, seconds = system.folder / "filler", rng.uniform(1.0, _LONGEST_FULL_S)
    try:
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1024 * 1024))
        with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        time.sleep(seconds)
    finally:
        filler.unlink()
    return f"filled the disk for {seconds:.1f} s"


def damage_index(system: ChaosSystem, rng: random.Random) -> str:
    """A file of an index is cut short or has wrong bytes when the system starts again."""
    system.stop()
    try:
        files = sorted(
            path for folder in _DERIVED for path in (system.data_dir / folder).rglob("*") if _has_bytes(path)
        )
        return _damaged(rng.choice(files), system.data_dir, rng) if files else ""
    finally:
        system.start()


def damage_store(system: ChaosSystem, rng: random.Random) -> str:
    """A file of the message store is cut short or has wrong bytes when the system starts again. What is lost with it is lost: the
    system has to say so. Where it cannot start on what is left, and says why, the store is put back, as from a backup."""
    system.stop()
    streams = (system.data_dir / "nats").glob("jetstream/*/streams/*")
    blocks = sorted(
        path for stream in streams if stream.name in _STREAMS for path in stream.glob("msgs/*.blk") if _has_bytes(path)
    )
    if not blocks:
        system.start()
        return ""
    with system.store_kept() as put_back:
        what = _damaged(rng.choice(blocks), system.data_dir, rng)
        said = len(system.terminal.read_bytes())
        try:
            system.start()
        except SystemNotReady:
            if b"groundwork restore" not in system.terminal.read_bytes()[said:]:
                raise
            system.kill()
            put_back()
            system.start()
            what += ", on which it did not start, and said why; put the store back"
    return what


def jump_clock(system: ChaosSystem, rng: random.Random) -> str:
    """The wall clock of the services jumps, forward or back, and after a while back to the true time or not."""
    if not system.has_own_clock:
        return ""
    offset_s = rng.choice(_CLOCK_JUMPS_S) * rng.choice((1, -1))
    system.set_clock(offset_s)
    time.sleep(rng.uniform(1.0, _LONGEST_JUMP_S))
    stays = rng.random() < 0.5
    if not stays:
        system.set_clock(0)
    return f"set the clock {offset_s:+d} s off" + ("" if stays else " and right again")


ALL_FAULTS: dict[str, Fault] = {
    "kill": kill_service,
    "freeze": freeze_service,
    "kill-all": kill_everything,
    "full-disk": fill_disk,
    "damage": damage_index,
    "damage-store": damage_store,
    "clock": jump_clock,
}
WEIGHTS = {"kill": 12, "freeze": 6, "kill-all": 2, "full-disk": 2, "damage": 2, "damage-store": 2, "clock": 4}
"""How often each happens beside the others."""


def _service(system: ChaosSystem, rng: random.Random) -> str:
    """One of those that are up."""
    names = sorted(system.services())
    return rng.choice(names) if names else ""


def _signal(system: ChaosSystem, name: str, number: int) -> bool:
    try:
        os.kill(int(system.services()[name]["pid"]), number)
    except (KeyError, ProcessLookupError):
        return False
    return True


def _has_bytes(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _damaged(path: Path, data_dir: Path, rng: random.Random) -> str:
    size, name = path.stat().st_size, path.relative_to(data_dir)
    if rng.random() < 0.5:
        kept = rng.randrange(size)
        os.truncate(path, kept)
        return f"cut {name} to {kept} of {size} bytes"
    count = min(size, rng.randrange(1, _MOST_FLIPPED_BYTES))
    with path.open("r+b") as file:
        for offset in rng.sample(range(size), count):
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1 << rng.randrange(8)]))
    return f"flipped a bit in each of {count} bytes of {name}"
