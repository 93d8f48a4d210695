"""Why a parsing child died, and what is said of its file: only a limit of its own and a crash that repeats itself are its fault."""

import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.errors import Unavailable
from services.ingest.errors import DocumentRejected
from services.ingest.reading.child import wire
from services.ingest.reading.pool import children
from services.ingest.reading.pool.deaths import Cause, cause_of, machine_kills
from services.ingest.reading.pool.server import Ending
from tests.unit.ingest.code_parser import CodeParser, code_parser

_LIMIT = 2 * 1024**3


@dataclass(frozen=True)
class Case:
    ending: Ending
    machine_killed: bool
    cause: Cause


_CASES = [
    Case(Ending(-signal.SIGSEGV), False, Cause.CRASH),
    Case(Ending(-signal.SIGABRT), True, Cause.CRASH),
    Case(Ending(-signal.SIGSYS), False, Cause.CRASH),
    Case(Ending(1), False, Cause.CRASH),
    Case(Ending(0), False, Cause.CRASH),
    Case(Ending(wire.OUT_OF_MEMORY), False, Cause.MEMORY_LIMIT),
    Case(Ending(-signal.SIGABRT, peak_bytes=_LIMIT * 3 // 4), False, Cause.MEMORY_LIMIT),
    Case(Ending(-signal.SIGSEGV, peak_bytes=_LIMIT // 4), False, Cause.CRASH),
    Case(Ending(-signal.SIGXCPU), False, Cause.TIME_LIMIT),
    Case(Ending(-signal.SIGKILL), True, Cause.MACHINE_MEMORY),
    Case(Ending(-signal.SIGKILL), False, Cause.SIGNAL),
    Case(Ending(-signal.SIGKILL, peak_bytes=_LIMIT), False, Cause.SIGNAL),
    Case(Ending(-signal.SIGTERM), True, Cause.SIGNAL),
    Case(Ending(None), False, Cause.SIGNAL),
]


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_cause_is_told_from_how_the_child_ended(case: Case) -> None:
    assert cause_of(case.ending, _LIMIT, machine_killed=case.machine_killed) is case.cause


def test_kills_for_want_of_memory_are_counted_where_the_kernel_counts_them() -> None:
    assert machine_kills() >= 0


_CODE = "import os\nsay(str(os.getpid()))\nresult = 'read'\n"


@pytest.fixture
async def parser(tmp_path: Path) -> AsyncIterator[CodeParser]:
    async with code_parser(tmp_path, memory_limit_bytes=_LIMIT) as made:
        yield made


class Killer:
    """Ends the first children that begin to read a file; the one after them reads another."""

    def __init__(self, parser: CodeParser, times: int, kill: Callable[[int], None]) -> None:
        self.begun = 0
        self._parser = parser
        self._times = times
        self._kill = kill

    def __call__(self, pid: str) -> None:
        self.begun += 1
        if self.begun == self._times:
            self._parser.path_of("acme").write_text(_CODE)
        if self.begun <= self._times:
            self._kill(int(pid))


def _sending(number: int) -> Callable[[int], None]:
    return lambda pid: os.kill(pid, number)


_ENDLESS = _CODE + "while True: pass"


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
async def test_child_that_is_killed_once_costs_its_file_nothing(parser: CodeParser, sent: int) -> None:
    killer = Killer(parser, 1, _sending(sent))
    assert await parser.run(_ENDLESS, on_stage=killer) == '"read"'
    assert killer.begun == 2


async def test_file_that_crashes_its_child_twice_is_at_fault(parser: CodeParser) -> None:
    killer = Killer(parser, 0, _sending(0))
    with pytest.raises(DocumentRejected, match="crash twice") as rejected:
        await parser.run(_CODE + "os.abort()", on_stage=killer)
    assert rejected.value.reason == "PARSE_CRASHED"
    assert killer.begun == 2
    assert await parser.run("result = 1") == "1"


async def test_child_that_is_stopped_twice_is_nobodys_fault(parser: CodeParser) -> None:
    with pytest.raises(Unavailable) as unavailable:
        await parser.run(_ENDLESS, on_stage=Killer(parser, 2, _sending(signal.SIGKILL)))
    assert unavailable.value.reason == "PARSER_STOPPED"


async def test_child_that_the_machine_has_no_memory_for_is_not_at_fault(
    parser: CodeParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = iter(range(100))
    monkeypatch.setattr(children, "machine_kills", lambda: next(kills))
    with pytest.raises(Unavailable, match="ran out of memory") as unavailable:
        await parser.run(_ENDLESS, on_stage=Killer(parser, 2, _sending(signal.SIGKILL)))
    assert unavailable.value.reason == "PARSER_OUT_OF_MEMORY"


@pytest.mark.parametrize("code", ["bytearray(4 * 1024**3)", "raise MemoryError"])
async def test_file_that_needs_more_memory_than_a_child_may_have_is_read_once(parser: CodeParser, code: str) -> None:
    killer = Killer(parser, 0, _sending(0))
    with pytest.raises(DocumentRejected) as rejected:
        await parser.run(_CODE + code, on_stage=killer)
    assert rejected.value.reason == "PARSE_TOO_LARGE"
    assert killer.begun == 1


async def test_server_that_dies_is_started_again_and_the_file_read_again(parser: CodeParser) -> None:
    def kill_server(_pid: int) -> None:
        assert parser.server._process is not None
        parser.server._process.kill()

    killer = Killer(parser, 1, kill_server)
    assert await parser.run(_ENDLESS, on_stage=killer) == '"read"'
    assert killer.begun == 2
