"""The command as a process among others: its streams, its order, its ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.unit.cli.conftest import FakeServer, run_event
from tests.unit.cli.test_commands import CITATION, FINISHED, STARTED

GONE = 141


def run_in_shell(server: FakeServer, line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The line in a shell that knows the command as $GROUNDWORK, and as `$?` its exit code in a pipe."""
    command = f"{sys.executable} -m cli.main"
    given = {**os.environ, "GROUNDWORK": command, "GROUNDWORK_URL": server.url, **environment}
    script = f"set -o pipefail\n{line}"
    return subprocess.run(["bash", "-c", script], env=given, capture_output=True, timeout=120, check=False)


@pytest.fixture
def answering(server: FakeServer) -> FakeServer:
    note = run_event("thinking", 2, text="", degraded={"part": "llm", "reason": "R", "message": "no model"})
    server.on("POST", "/v1/collections/default/chat", lambda http: http.stream(STARTED, note, *FINISHED))
    server.on("GET", "/v1/threads", lambda http: http.json({"threads": [], "next_page_token": None}))
    return server


@pytest.mark.parametrize("line", ["$GROUNDWORK ask hi | true", "$GROUNDWORK search --help | true"])
@pytest.mark.parametrize("both", ["", "2>&1"])
def test_a_reader_that_has_gone_ends_the_command_without_a_word(answering: FakeServer, line: str, both: str) -> None:
    done = run_in_shell(answering, line.replace(" |", f" {both} |"))
    assert (done.returncode, done.stderr) == (GONE, b"" if both or "help" in line else done.stderr)
    assert b"Broken" not in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_letter_that_the_terminal_lacks_is_no_traceback(answering: FakeServer) -> None:
    done = run_in_shell(
        answering, "$GROUNDWORK ask 'Geschäft?'", LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert b"[1] handbook.pdf, page 3: ?Staff get 30 days of leave.?" in done.stdout
    assert '"message":"Geschäft?"' in answering.requests[0][2].decode(), "what was asked is read as it was written"


def test_where_both_streams_go_to_one_place_they_keep_their_order(answering: FakeServer) -> None:
    lines = run_in_shell(answering, "$GROUNDWORK ask hi 2>&1 | cat").stdout.decode().splitlines()
    assert lines[:2] == ["30 days. [1]", ""]
    assert lines[2].startswith(f"[1] {CITATION['document_name']}")
    assert lines[-1] == "degraded llm: no model"
