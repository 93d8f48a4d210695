"""The commands of chats at a terminal, read and typed into as a person would."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.display.output import Output, verdict_lines
from kit.vocabulary.run_fold import RunFold
from tests.unit.cli.chats import CALL, STARTED, wait_for_a_person
from tests.unit.cli.conftest import FakeServer, Handler, run_event

OWN_TERMINAL = (
    "import fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); from cli.main import app; app()"
)
"""The command with its terminal as that of its session, so that Ctrl-C typed there reaches it, also where who runs the
tests ignores SIGINT, as shells have what they run in the background do."""


class Terminal:
    """The command at a terminal, read and written as a person would."""

    def __init__(self, ours: int) -> None:
        self._ours = ours
        self.text = ""
        self._expected = 0

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def expect(self, text: str) -> None:
        """Reads on until `text` has been shown after what was expected before."""
        while (at := self.text.find(text, self._expected)) < 0:
            try:
                self.text += os.read(self._ours, 4096).decode(errors="replace")
            except OSError:
                raise AssertionError(f"{text!r} was not shown: {self.text}") from None
        self._expected = at + len(text)


@contextmanager
def at_terminal(server: FakeServer, *arguments: str) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "GROUNDWORK_URL": server.url, "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-c", OWN_TERMINAL, *arguments]
    with subprocess.Popen(
        command,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        watchdog = threading.Timer(120, process.kill)  # a test that waits in vain ends, instead of the suite
        watchdog.start()
        try:
            yield Terminal(ours), process
        finally:
            watchdog.cancel()
            process.kill()
            os.close(ours)


def wait_until_it_waits(process: subprocess.Popen[bytes]) -> None:
    """Until the command sleeps: `readline()` does not notice a signal that comes just before it begins to wait."""
    status = Path(f"/proc/{process.pid}/stat")
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] == "R":
        time.sleep(0.01)


@pytest.fixture
def waiting(server: FakeServer) -> FakeServer:
    wait_for_a_person(server)
    return server


def test_a_person_is_asked_right_in_the_conversation(waiting: FakeServer) -> None:
    waiting.on("POST", "/v1/threads", lambda http: http.json({"id": "0123456789ab"}, 201))
    with at_terminal(waiting, "chat") as (terminal, process):
        terminal.expect("> ")
        terminal.type("Mail it\n")
        terminal.expect("to: ann@example.org")
        terminal.expect("[l]ater: ")
        terminal.type("maybe\n")
        terminal.expect("[l]ater: ")
        terminal.type("y\n")
        terminal.expect("send an e-mail: allowed by ann")
        terminal.expect("Done. [1]")
        terminal.expect("$0.0020")
        terminal.expect("> ")
        terminal.type("\x04")
        terminal.expect("groundwork chat --thread 0123456789ab")
        assert process.wait(60) == 0
    assert "\x1b[2J" not in terminal.text
    assert "/v1/runs/r1/events?after=5" in waiting.asked("GET"), "it read on where it had stopped"


def test_ctrl_c_cancels_the_answer_and_the_conversation_goes_on(server: FakeServer) -> None:
    cancelled = threading.Event()

    def hang(http: Handler) -> None:
        http.stream(STARTED, CALL)
        cancelled.wait(60)

    def cancel(http: Handler) -> None:
        http.json({"id": "r1"}, 202)
        cancelled.set()

    server.on("POST", "/v1/threads", lambda http: http.json({"id": "0123456789ab"}, 201))
    server.on("POST", "/v1/chat", hang)
    server.on("POST", "/v1/runs/r1/cancel", cancel)
    with at_terminal(server, "chat") as (terminal, process):
        terminal.expect("> ")
        terminal.type("Hi\n")
        terminal.expect("search the documents")
        terminal.type("\x03")
        terminal.expect("Cancelled.")
        terminal.expect("> ")
        terminal.type("\x04")
        assert process.wait(60) == 0
    assert cancelled.is_set()


def test_ctrl_c_at_the_question_cancels_the_run(waiting: FakeServer) -> None:
    waiting.on("POST", "/v1/runs/r1/cancel", lambda http: http.json({"id": "r1"}, 202))
    ended = run_event("done", 6, status="cancelled")
    waiting.on("GET", "/v1/runs/r1/events", lambda http: http.stream(ended))
    with at_terminal(waiting, "chat", "Mail it") as (terminal, process):
        terminal.expect("[l]ater: ")
        wait_until_it_waits(process)
        terminal.type("\x03")
        terminal.expect("ended as cancelled")
        assert process.wait(60) == 1
    assert waiting.asked("POST")[-1] == "/v1/runs/r1/cancel"


def test_leaving_a_run_that_is_only_followed_does_not_cancel_it(server: FakeServer) -> None:
    left = threading.Event()

    def hang(http: Handler) -> None:
        http.stream(STARTED, CALL)
        left.wait(60)

    server.on("GET", "/v1/approvals", lambda http: http.json({"approvals": []}))
    server.on("GET", "/v1/runs/r1/events", hang)
    with at_terminal(server, "runs", "follow", "r1") as (terminal, process):
        terminal.expect("search the documents")
        terminal.type("\x03")
        terminal.expect("Left; the run goes on.")
        assert process.wait(60) == 130
    left.set()
    assert not server.asked("POST")


def test_verdict_is_two_statements() -> None:
    answer = {
        "citations": [{"number": 1}],
        "support_status": "supported",
        "method": "extractive",
        "answer_status": "uncertain",
        "answer_confidence": 0.554,
        "closest": [],
    }
    assert verdict_lines(answer) == ["Quoted word for word.", "May answer your question (55%)."]
    assert verdict_lines({**answer, "citations": [], "closest": [{}]}) == []


def judged(status: str, *verdicts: str, **verification: Any) -> dict[str, Any]:
    sentences = [{"sentence": f"Claim {each}.", "verdict": each} for each in verdicts]
    return {
        "citations": [{"number": 1}],
        "support_status": status,
        "method": "model",
        "closest": [],
        "verification": {"sentences": sentences, "checked_by": None, **verification},
    }


ALIGNMENT = {"name": "alignment/1", "measured": False, "false_passed": 0.17, "true_failed": 0.31, "claims": 210}


def test_only_a_measured_judge_says_that_every_sentence_is_carried() -> None:
    measured = {**ALIGNMENT, "measured": True}
    assert "Every sentence is carried by its sources." in verdict_lines(judged("supported", checked_by=measured))
    said = verdict_lines(judged("supported", checked_by={"name": "model/m", "measured": False, "claims": 0}))
    assert not any("Every sentence is carried" in line and "model" not in line for line in said)
    assert any("not measured" in line for line in said)


def test_judge_is_named_with_its_error() -> None:
    said = verdict_lines(judged("similar_wording", checked_by=ALIGNMENT))
    assert "similar" in said[0]
    assert "alignment/1" in said[1]
    assert "17%" in said[1]
    assert "31%" in said[1]


def test_unchecked_answer_says_so() -> None:
    assert verdict_lines({**judged("", verify="off"), "support_status": None}) == ["Nothing was checked."]


def test_row_put_together_from_cells_is_from_a_table() -> None:
    answer = {
        **judged("supported", checked_by={"name": "table", "measured": True, "claims": 0}),
        "method": "extractive",
    }
    assert verdict_lines(answer) == ["From a table."]


def test_claims_are_listed_where_one_is_not_carried(capsys: pytest.CaptureFixture[str]) -> None:
    fine = judged("similar_wording", "similar_wording", "no_claim")
    Output(as_json=False).sources({**fine, "citations": []})
    assert "Claims:" not in capsys.readouterr().out
    answer = judged("partial", "supported", "not_found", "contradicted", "no_claim", removed=1)
    answer["verification"]["sentences"][2]["is_action"] = True
    Output(as_json=False).sources({**answer, "citations": []})
    shown = capsys.readouterr()
    assert "not found in the documents" in shown.out
    assert "did not happen" in shown.out
    assert "no_claim" not in shown.out
    assert "1 sentence was left out" in shown.err


def test_closest_passages_of_a_refusal_stand_under_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    passage = {"number": 1, "document_name": "tower.txt", "text": "It is high.", "quote_start": 0, "quote_end": 11}
    Output(as_json=False).grounds(RunFold(status="refused", answer={"citations": [], "closest": [passage]}))
    heading, line = capsys.readouterr().out.splitlines()
    assert heading == "Closest passages:"
    assert "tower.txt" in line


def test_conflict_names_both_sides_with_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    sides = [
        {"value": "62 euros", "citation": 2, "date": "2024", "document_name": "policy-2024.md"},
        {"value": "45 euros", "citation": 1, "date": "", "document_name": "policy.md"},
    ]
    conflict = {"what": "The allowance is … a day.", "sides": sides}
    Output(as_json=False).grounds(RunFold(status="completed", answer={"citations": [], "conflicts": [conflict]}))
    what, newest, other = capsys.readouterr().out.splitlines()
    assert "The allowance is" in what
    assert newest.split() == ["62", "euros:", "policy-2024.md,", "2024", "[2]"]
    assert other.split() == ["45", "euros:", "policy.md", "[1]"]
