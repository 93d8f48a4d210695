"""What is listed, shown and deleted: threads, runs, and asking first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.main import app
from tests.unit.cli.conftest import FakeServer, Handler, run_event

Command = Callable[..., Result]
CITATION = {"number": 1, "document_name": "a.md", "text": "30 days.", "heading_path": []}
THREAD = {
    "id": "t1",
    "title": "Leave",
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-02T00:00:00.000Z",
    "message_count": 2,
}
RUN = {
    "id": "r1",
    "mode": "qa",
    "status": "completed",
    "question": "How long?",
    "thread_id": None,
    "created_at": "2026-01-01T00:00:00.000Z",
    "finished_at": "2026-01-01T00:00:01.000Z",
    "forgotten_at": None,
}


def test_threads_are_listed_and_shown_with_sources(server: FakeServer, groundwork: Command) -> None:
    messages = [
        {"role": "user", "text": "How long?", "citations": []},
        {"role": "assistant", "text": "30 days. [1]", "citations": [CITATION]},
    ]
    server.on("GET", "/v1/threads", lambda http: http.json({"threads": [THREAD], "next_page_token": None}))
    server.on("GET", "/v1/threads/t1", lambda http: http.json({**THREAD, "messages": messages}))
    assert groundwork("threads", "list").stdout.splitlines()[1].split() == ["t1", "2", THREAD["updated_at"], "Leave"]
    assert json.loads(groundwork("threads", "list", "--json").stdout) == {"threads": [THREAD]}
    assert groundwork("threads", "show", "t1").stdout.splitlines() == [
        "Leave",
        "",
        "You: How long?",
        "",
        "Groundwork: 30 days. [1]",
        "  [1] a.md: “30 days.”",
    ]
    assert json.loads(groundwork("threads", "show", "t1", "--json").stdout)["messages"] == messages


def test_a_conversation_is_exported_as_text_and_to_a_new_file(
    server: FakeServer, groundwork: Command, tmp_path: Path
) -> None:
    server.on("GET", "/v1/threads/t1/export", lambda http: http.content(f"# Leave\n{http.path}".encode()))
    assert groundwork("threads", "export", "t1").stdout == "# Leave\n/v1/threads/t1/export?format=markdown&language=en"
    file = tmp_path / "leave.docx"
    assert groundwork("threads", "export", "t1", "-o", str(file), "--language", "he").exit_code == 0
    assert file.read_bytes().endswith(b"?format=docx&language=he")
    again = groundwork("threads", "export", "t1", "-o", str(file))
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    for arguments, why in (
        (("--format", "docx"), "--output FILE.docx"),
        (("-o", str(tmp_path / "no" / "x")), "written"),
    ):
        refused = groundwork("threads", "export", "t1", *arguments)
        assert (refused.exit_code, why in refused.stderr) == (2, True)


def test_revisions_of_a_document_are_listed_newest_first(server: FakeServer, groundwork: Command) -> None:
    first = {"id": "r1", "number": 1, "state": "replaced", "size_bytes": 80, "chunk_count": 2, "queued_by": "ann"}
    error = {"reason": "PDF_ENCRYPTED", "message": "protected by a password"}
    second = {"id": "r2", "number": 2, "state": "failed", "size_bytes": 90, "error": error}
    server.on("GET", "/v1/documents/d1/revisions", lambda http: http.json({"revisions": [first, second]}))
    rows = [line.split() for line in groundwork("documents", "revisions", "d1").stdout.splitlines()]
    assert rows[1] == ["2", "failed", "90", "protected", "by", "a", "password"]
    assert rows[2] == ["1", "replaced", "80", "2", "ann"]
    assert json.loads(groundwork("documents", "revisions", "d1", "--json").stdout)["revisions"] == [first, second]


def test_a_run_is_shown_with_its_answer(server: FakeServer, groundwork: Command) -> None:
    answer = {"text": "30 days. [1]", "citations": [CITATION], "closest": []}
    shown = {**RUN, "answer": answer, "usage": {"seconds": 2.0}, "error": None}
    server.on("GET", "/v1/runs/r1", lambda http: http.json(shown))
    text = groundwork("runs", "show", "r1").stdout
    for words in ("completed", "How long?", "2.0 s", "30 days. [1]", "[1] a.md"):
        assert words in text
    assert json.loads(groundwork("runs", "show", "r1", "--json").stdout) == shown


def test_a_run_says_of_its_answer_what_was_said_when_it_was_asked(server: FakeServer, groundwork: Command) -> None:
    said = {"support_status": "supported", "method": "extractive", "answer_status": "likely", "answer_confidence": 0.9}
    answer = {"text": "30 days. [1]", "citations": [CITATION], "closest": [], **said}
    shown = {**RUN, "answer": answer, "usage": None, "error": None}
    server.on("GET", "/v1/runs/r1", lambda http: http.json(shown))
    told = groundwork("runs", "show", "r1").stderr
    assert told == "Quoted word for word.\nLikely answers your question (90%).\n"


def test_a_run_that_refused_shows_what_came_closest_as_such(server: FakeServer, groundwork: Command) -> None:
    answer = {
        "text": "The documents do not say.",
        "citations": [],
        "closest": [CITATION],
        "support_status": "insufficient",
    }
    shown = {**RUN, "status": "refused", "answer": answer, "usage": None, "error": None}
    server.on("GET", "/v1/runs/r1", lambda http: http.json(shown))
    told = groundwork("runs", "show", "r1")
    assert told.stdout.endswith("The documents do not say.\n\nClosest passages:\n[1] a.md: “30 days.”\n")
    assert told.stderr == ""


def test_a_message_of_a_thread_says_how_its_sources_carry_it(server: FakeServer, groundwork: Command) -> None:
    message = {"role": "assistant", "text": "30 days. [1]", "citations": [CITATION], "support_status": "partial"}
    server.on("GET", "/v1/threads/t1", lambda http: http.json({**THREAD, "messages": [message]}))
    assert groundwork("threads", "show", "t1").stderr == "  Some sentences were not found in their sources.\n"
    verdict = {"sentence": "30 days.", "verdict": "not_found", "checked_by": None}
    checked = message | {"verification": {"sentences": [verdict]}}
    server.on("GET", "/v1/threads/t1", lambda http: http.json({**THREAD, "messages": [checked]}))
    assert "30 days. (not found" in groundwork("threads", "show", "t1").stdout
    sure = {
        "support_status": "supported",
        "method": "extractive",
        "answer_status": "uncertain",
        "answer_confidence": 0.6,
    }
    server.on("GET", "/v1/threads/t1", lambda http: http.json({**THREAD, "messages": [message | sure]}))
    told = groundwork("threads", "show", "t1").stderr
    assert told == "  Quoted word for word.\n  May answer your question (60%).\n"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("documents", "list", "-c", ""), "collection"),
        (("documents", "show", ""), "document"),
        (("documents", "delete", "", "--yes"), "document"),
        (("collections", "show", ""), "collection"),
        (("embedding", "status", "-c", ""), "collection"),
        (("ingest", __file__, "-c", "", "--no-wait"), "collection"),
        (("ask", "Who?", "-c", ""), "collection"),
        (("ask", "Who?", "-c", "a", "-c", ""), "collection"),
        (("ask", "Who?", "--thread", ""), "thread"),
        (("search", "who", "-c", ""), "collection"),
        (("search", "who", "-d", ""), "document"),
        (("chat", "Hi", "--thread", ""), "thread"),
        (("chat", "Hi", "-c", ""), "collection"),
        (("threads", "show", ""), "thread"),
        (("threads", "delete", "", "--yes"), "thread"),
        (("runs", "show", ""), "run"),
        (("runs", "follow", ""), "run"),
        (("keys", "show", ""), "key"),
        (("jobs", "requeue", ""), "dead letter"),
    ],
)
def test_an_empty_id_is_told_in_a_sentence(
    server: FakeServer, groundwork: Command, arguments: tuple[str, ...], what: str
) -> None:
    told = groundwork(*arguments)
    assert (told.exit_code, server.requests) == (2, [])
    assert told.stderr.startswith(f"The id of the {what} is empty")


def test_a_search_in_what_is_no_document_is_told_instead_of_finding_nothing(
    server: FakeServer, groundwork: Command
) -> None:
    told = groundwork("search", "leave", "-d", "nope")
    assert (told.exit_code, server.requests) == (2, [])
    assert "--document 'nope' is no document id" in told.stderr


def test_a_status_that_is_none_is_told_with_the_choices(server: FakeServer, groundwork: Command) -> None:
    told = groundwork("documents", "list", "--status", "foo")
    assert (told.exit_code, server.requests) == (2, [])
    for words in ("--status", "foo", "queued", "processing", "ready", "failed"):
        assert words in told.stderr
    server.on("GET", "/v1/collections/default/documents", lambda http: http.json({"documents": []}))
    assert groundwork("documents", "list", "--status", "ready", "--status", "failed").exit_code == 0
    assert "status=ready&status=failed" in server.asked("GET")[0]


@pytest.mark.parametrize(("command", "what"), [("ask", "question"), ("search", "query"), ("chat", "message")])
def test_a_text_without_quotation_marks_is_told_to_be_put_in_some(
    server: FakeServer, groundwork: Command, command: str, what: str
) -> None:
    told = groundwork(command, "How", "many", "days?")
    shown = " ".join(told.stderr.replace("│", " ").split())
    assert (told.exit_code, server.requests) == (2, [])
    assert f"Put the {what} in quotation marks:" in shown
    assert f"{command} 'How many days?'" in shown


def test_a_run_that_failed_is_shown_with_its_reason(server: FakeServer, groundwork: Command) -> None:
    error = {"message": "search is down", "reason": "SEARCH_UNAVAILABLE"}
    shown = {**RUN, "status": "failed", "answer": None, "usage": None, "error": error}
    server.on("GET", "/v1/runs/r1", lambda http: http.json(shown))
    assert "search is down (SEARCH_UNAVAILABLE)" in groundwork("runs", "show", "r1").stdout


@pytest.mark.parametrize("kind", ["collections", "documents", "threads", "runs"])
def test_deleting_asks_first(server: FakeServer, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("GROUNDWORK_URL", server.url)
    server.on("DELETE", f"/v1/{kind}/a", lambda http: http.json({}))

    def delete(given: str, *options: str) -> Result:
        return CliRunner().invoke(app, [kind, "delete", "a", *options], input=given)

    nobody, no = delete(""), delete("n\n")
    assert (nobody.exit_code, no.exit_code, server.asked("DELETE")) == (2, 2, [])
    assert f"Delete the {kind[:-1]} a" in no.stderr
    assert "say --yes" in nobody.stderr
    assert "Nothing was deleted." in no.stderr
    assert (delete("y\n").exit_code, delete("", "--yes").exit_code) == (0, 0)
    assert json.loads(delete("", "-y", "--json").stdout) == {"deleted": ["a"]}
    assert server.asked("DELETE") == [f"/v1/{kind}/a"] * 3


def test_several_are_asked_about_by_their_number(server: FakeServer, groundwork: Command) -> None:
    assert "Delete 2 threads?" in groundwork("threads", "delete", "a", "b").stderr
    assert server.requests == []


def test_an_answer_that_refuses_ends_with_3(server: FakeServer, groundwork: Command) -> None:
    answer = run_event("answer", 2, text="The documents do not say.", citations=[], support_status="insufficient")
    done = run_event("done", 3, status="refused")
    server.on("POST", "/v1/collections/default/chat", lambda http: http.stream(run_event("run", 1), answer, done))
    told = groundwork("ask", "Who?")
    assert (told.exit_code, told.stdout) == (3, "The documents do not say.\n\n")
    assert groundwork("ask", "Who?", "--json").exit_code == 3


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("localhost:8080", "Write GROUNDWORK_URL=http://localhost:8080"),
        ("127.0.0.1", "lacks http:// or https://"),
        ("ftp://example.org", "is no address of a server"),
        ("http://", "is no address of a server"),
        ("http://host:port", "is no address of a server"),
    ],
)
def test_an_address_that_is_none_is_told_in_a_sentence(
    groundwork: Command, monkeypatch: pytest.MonkeyPatch, address: str, words: str
) -> None:
    monkeypatch.setenv("GROUNDWORK_URL", address)
    told = groundwork("ask", "Who?")
    assert (told.exit_code, words in told.stderr) == (2, True), told.stderr


@pytest.mark.parametrize("command", ["ask", "search", "chat"])
def test_an_empty_question_is_told_in_a_sentence(server: FakeServer, groundwork: Command, command: str) -> None:
    told = groundwork(command, " ")
    assert (told.exit_code, "is empty" in told.stderr, server.requests) == (2, True, [])


def test_an_answer_that_is_no_json_is_not_ours(server: FakeServer, groundwork: Command) -> None:
    def page(http: Handler) -> None:
        http.send_response(200)
        http.send_header("content-length", "6")
        http.end_headers()
        http.wfile.write(b"<html>")

    server.on("GET", "/v1/threads", page)
    told = groundwork("threads", "list")
    assert (told.exit_code, "it is not Groundwork" in told.stderr) == (1, True)


def test_version_and_where_the_server_is_are_told(groundwork: Command) -> None:
    assert groundwork("--version").stdout.startswith("groundwork ")
    for command in (
        (),
        ("ask",),
        ("search",),
        ("ingest",),
        ("demo",),
        ("threads",),
        ("runs",),
        ("collections",),
        ("documents",),
    ):
        text = groundwork(*command, "--help").stdout
        assert "as GROUNDWORK_URL says" in " ".join(text.split())
