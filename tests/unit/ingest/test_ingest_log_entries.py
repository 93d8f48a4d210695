"""Entries of logs are units of their own."""

from __future__ import annotations

import pytest

from services.ingest.reading.models import BlockKind
from services.ingest.reading.parsers.text.plain import parse_plain
from services.ingest.reading.source import Unpacked

ISO = ("2024-05-01 00:00:11 ERROR node-0 job=7000", "2024-05-01 00:00:12 INFO node-1", "2024-05-01T00:00:13Z INFO done")
SYSLOG = ("May  1 00:00:11 host app[12]: up", "May  1 00:00:12 host app[12]: down", "May  1 00:00:13 host app[12]: up")
ACCESS = tuple(f'10.0.0.{n} - - [10/Oct/2024:13:55:3{n} +0200] "GET / HTTP/1.1" 200 12' for n in range(4))

MINUTES = tuple(f"05.05.2024 04:0{n} INFO job={n}" for n in range(3))
EPOCH = tuple(f"171488185{n} job={n}" for n in range(3))
WEIGHTS = ("INFO  job=1", "[WARN] job=2", "ERROR: job=3")
BARE = ("job 7 started", "job 7 took 5 ms", "job 8 started")


def blocks_of(text: str, name: str = "app.log") -> list[tuple[BlockKind, str]]:
    return [
        (block.kind, block.text) for block in parse_plain(Unpacked(name, text.encode(), is_whole=True), name).blocks
    ]


@pytest.mark.parametrize("entries", [ISO, SYSLOG, ACCESS, MINUTES, EPOCH, WEIGHTS, BARE])
def test_each_entry_is_a_unit(entries: tuple[str, ...]) -> None:
    assert blocks_of("\n".join(entries) + "\n") == [(BlockKind.ROW, entry) for entry in entries]


def test_lines_without_a_time_belong_to_the_entry_before_them() -> None:
    trace = "Traceback (most recent call last):\n  ValueError: bad"
    found = blocks_of("\n".join(("# started by cron", ISO[0], trace, *ISO[1:])))
    assert found[0] == (BlockKind.TEXT, "# started by cron")
    assert found[1] == (BlockKind.ROW, f"{ISO[0]}\n{trace}")
    assert len(found) == 4


def test_long_traces_belong_to_their_entries_in_what_is_called_a_log() -> None:
    trace = (
        "java.lang.IllegalStateException: dry\n" + "\tat org.example.Pump.start(Pump.java:17)\n" * 20 + "Caused by: E-9"
    )
    text = "\n".join((ISO[0], trace, *ISO[1:]))
    assert [block for _, block in blocks_of(text)] == [f"{ISO[0]}\n{trace}", *ISO[1:]]
    assert len(blocks_of(text, "a.txt")) == 1


def test_prose_with_times_is_no_log() -> None:
    text = "The ferry left at 10:15:00.\nIt was late.\nNobody minded.\nThe next one left at 11:15:00."
    assert blocks_of(text, "ferries.txt") == [(BlockKind.TEXT, text)]
