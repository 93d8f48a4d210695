"""The commands against a small scripted server, over real HTTP."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cli.client import asking, ingestion
from cli.display.output import Output
from kit.testing.certificates import Authority, CertificateFolder
from tests.unit.cli.conftest import FakeServer, Handler, event, run_event

Command = Callable[..., Result]
CITATION = {
    "number": 1,
    "document_id": "d1",
    "document_name": "handbook.pdf",
    "chunk_id": "c1",
    "page": 3,
    "text": "Staff get 30 days of leave. More text.",
    "quote_start": 0,
    "quote_end": 27,
    "heading_path": [],
}
STARTED = run_event("run", 1, mode="grounded", question="q", model="")
FINISHED = (
    run_event("answer", 4, text="30 days. [1]", citations=[CITATION], support_status="supported", method="extractive"),
    run_event("usage", 5, seconds=0.1, prompt_tokens=0),
    run_event("done", 6, status="completed"),
)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "RESUME_DELAY_S", 0.01)
    monkeypatch.setattr(asking, "RESUME_FOR_S", 1.0)
    monkeypatch.setattr(ingestion, "POLL_INTERVAL_S", 0.01)


def _document(id_: str, status: str, updated_at: str = "2026-01-01T00:00:00.000Z", **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "name": f"{id_}.txt",
        "status": status,
        "progress": 0,
        "error": None,
        "updated_at": updated_at,
    } | more


def test_an_answer_is_shown_with_its_citations_below(server: FakeServer, groundwork: Command) -> None:
    pieces = (run_event("token", 2, text="30 ", offset=0), run_event("token", 3, text="days. [1]", offset=3))
    server.on("POST", "/v1/collections/default/chat", lambda http: http.stream(STARTED, *pieces, *FINISHED))
    result = groundwork("ask", "How much leave?")
    assert result.exit_code == 0
    assert result.stdout == "30 days. [1]\n\n[1] handbook.pdf, page 3: “Staff get 30 days of leave.”\n"
    assert json.loads(server.requests[0][2])["message"] == "How much leave?"


def test_other_peoples_words_do_not_steer_the_terminal(server: FakeServer, groundwork: Command) -> None:
    evil = "30 \x1b[2J\x9b1mdays\x07\r."
    citation = {**CITATION, "document_name": "a\x1b]0;title\x07.pdf", "text": evil, "quote_start": None}
    note = run_event("thinking", 2, text="", degraded={"part": "llm", "reason": "R", "message": evil})
    answer = run_event("answer", 3, text=evil, citations=[citation], support_status="supported", method="model")
    server.on("POST", "/v1/collections/default/chat", lambda http: http.stream(STARTED, note, answer, *FINISHED[1:]))
    result = groundwork("ask", "How much leave?")
    assert "30 \ufffd[2J\ufffd1mdays\ufffd\ufffd." in result.stdout
    assert not set(result.output) & set("\x1b\x9b\x07\r")


def test_an_answer_goes_on_after_a_dropped_connection_without_doubling(server: FakeServer, groundwork: Command) -> None:
    lost = event("error", {"run_id": "r1", "reason": "STREAM_INTERRUPTED", "message": "m", "retryable": True})
    piece = run_event("token", 2, text="30 ", offset=0)
    server.on("POST", "/v1/collections/default/chat", lambda http: http.stream(STARTED, piece, lost))
    answers = iter(
        [
            lambda http: http.problem(503, "UNAVAILABLE", "starting"),
            lambda http: http.stream(piece, run_event("token", 3, text="days. [1]", offset=3), FINISHED[0][:20]),
            lambda http: http.stream(*FINISHED),
        ]
    )
    server.on("GET", "/v1/runs/r1/events", lambda http: next(answers)(http))  # noqa: PLW0108 - another answer each time
    result = groundwork("ask", "How much leave?", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["answer"] == "30 days. [1]"
    assert server.asked("GET") == [f"/v1/runs/r1/events?after={seq}" for seq in (2, 2, 3)]


def test_a_failed_run_says_why_and_exits_with_1(server: FakeServer, groundwork: Command) -> None:
    error = run_event(
        "error", 2, code="UNAVAILABLE", reason="SEARCH_UNAVAILABLE", message="search is down", retryable=True
    )
    server.on(
        "POST",
        "/v1/collections/default/chat",
        lambda http: http.stream(STARTED, error, run_event("done", 3, status="failed")),
    )
    result = groundwork("ask", "?")
    assert result.exit_code == 1
    assert "search is down (SEARCH_UNAVAILABLE)" in result.stderr


def test_ctrl_c_cancels_the_run(server: FakeServer) -> None:
    cancelled = threading.Event()

    def hang(http: Handler) -> None:
        http.stream(STARTED, run_event("token", 2, text="30 ", offset=0))
        cancelled.wait(20)

    def cancel(http: Handler) -> None:
        http.json({"id": "r1"}, 202)
        cancelled.set()

    server.on("POST", "/v1/collections/default/chat", hang)
    server.on("POST", "/v1/runs/r1/cancel", cancel)
    command = [sys.executable, "-m", "cli.main", "ask", "?"]
    environment = {**os.environ, "GROUNDWORK_URL": server.url}
    ours, terminal = pty.openpty()
    with subprocess.Popen(command, env=environment, stdout=terminal, stderr=subprocess.PIPE, text=True) as process:
        assert os.read(ours, 1) == b"3", "it has heard of its run"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=120)
    os.close(ours)
    os.close(terminal)
    assert cancelled.is_set()
    assert (process.returncode, stderr.strip()) == (130, "Cancelled.")


def test_a_folder_is_ingested_hidden_files_skipped_and_failures_told(
    server: FakeServer, groundwork: Command, tmp_path: Path
) -> None:
    (tmp_path / "sub" / ".git").mkdir(parents=True)
    for name in ("a.txt", "sub/b.txt", "sub/c.txt", ".hidden", "sub/.git/config"):
        (tmp_path / name).write_text(name)
    states = {
        "a": _document("a", "ready", "2026-01-02T00:00:00.000Z"),
        "b": _document("b", "failed", error={"reason": "EMPTY_FILE", "message": "b.txt is empty"}),
    }

    def upload(http: Handler) -> None:
        name = http.body.split(b'filename="')[1].split(b".txt")[0].decode().rpartition("/")[2]
        if name == "c":
            http.problem(415, "UNSUPPORTED_TYPE", "c.txt is not supported")
        else:
            http.json({"document": _document(name, "queued")}, 202)

    server.on("POST", "/v1/collections/default/documents", upload)
    server.on("GET", "/v1/events", lambda http: http.stream(*(event("document", each) for each in states.values())))
    for name, state in states.items():
        server.on("GET", f"/v1/documents/{name}", lambda http, state=state: http.json(state))
    result = groundwork("ingest", str(tmp_path))
    assert result.exit_code == 1
    assert "1 ready, 2 failed" in result.stdout
    assert "b.txt: b.txt is empty (EMPTY_FILE)" in result.stdout
    assert "c.txt: c.txt is not supported (UNSUPPORTED_TYPE)" in result.stdout
    assert len(server.asked("POST")) == 3


def test_what_is_said_of_a_document_is_printed_and_progress_comes_by_lines_without_a_terminal(
    server: FakeServer, groundwork: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("a")
    ready = {**_document("a", "ready", "2026-01-02T00:00:00.000Z"), "report": {"warnings": ["page 3 has no text"]}}
    server.on(
        "POST", "/v1/collections/default/documents", lambda http: http.json({"document": _document("a", "queued")}, 202)
    )
    server.on("GET", "/v1/events", lambda http: http.stream(event("document", ready)))
    server.on("GET", "/v1/documents/a", lambda http: http.json(ready))
    result = groundwork("ingest", str(tmp_path / "a.txt"))
    assert result.exit_code == 0
    assert "page 3 has no text" in result.stdout
    assert "1 of 1 uploaded, 1 ready, 0 failed" in result.stderr
    told = json.loads(groundwork("ingest", str(tmp_path / "a.txt"), "--json").stdout)
    assert told["documents"][0]["warnings"] == ["page 3 has no text"]


@pytest.mark.parametrize(("count", "lane"), [(1, b"interactive"), (21, b"bulk")])
def test_many_files_are_sent_as_an_import_with_the_encoding_that_was_named(
    server: FakeServer, groundwork: Command, tmp_path: Path, count: int, lane: bytes
) -> None:
    for number in range(count):
        (tmp_path / f"{number}.txt").write_text("a")
    server.on(
        "POST", "/v1/collections/default/documents", lambda http: http.json({"document": _document("a", "queued")}, 202)
    )
    groundwork("ingest", "--no-wait", "--encoding", "iso-8859-2", str(tmp_path))
    bodies = [body for method, _, body in server.requests if method == "POST"]
    assert len(bodies) == count
    for body in bodies:
        fields, _, _ = body.partition(b'name="file"')
        assert lane in fields
        assert b"iso-8859-2" in fields


def test_documents_are_followed_by_polling_where_the_event_stream_does_not_work(
    server: FakeServer, groundwork: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("a")
    states = iter([_document("a", "processing"), _document("a", "ready", "2026-01-02T00:00:00.000Z")])
    server.on(
        "POST", "/v1/collections/c1/documents", lambda http: http.json({"document": _document("a", "queued")}, 202)
    )
    server.on("GET", "/v1/events", lambda http: http.problem(501, "NO_EVENTS", "no event streams here"))
    server.on("GET", "/v1/documents/a", lambda http: http.json(next(states)))
    result = groundwork("ingest", str(tmp_path / "a.txt"), "--collection", "c1", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["ready"] == 1


@pytest.mark.parametrize(("status", "reason"), [(403, "SCOPE_MISSING"), (401, "API_KEY_REVOKED")])
def test_a_key_that_may_not_follow_what_it_uploads_is_told_so_instead_of_waiting_for_ever(
    server: FakeServer, groundwork: Command, tmp_path: Path, status: int, reason: str
) -> None:
    (tmp_path / "a.txt").write_text("a")
    path = "/v1/collections/default/documents"
    server.on("POST", path, lambda http: http.json({"document": _document("d1", "queued")}, 202))
    for asked in ("/v1/events", "/v1/documents/d1"):
        server.on("GET", asked, lambda http: http.problem(status, reason, "not with this key"))

    result = groundwork("ingest", str(tmp_path / "a.txt"))

    assert result.exit_code == 1
    assert reason in result.stderr
    assert "--no-wait" in result.stderr


def test_a_file_that_grows_while_it_is_sent_is_told_and_stops_no_other(
    server: FakeServer, groundwork: Command, tmp_path: Path
) -> None:
    growing = Path("/proc/self/status")
    if not growing.exists():
        pytest.skip("no file here has more in it than its size says")
    (tmp_path / "a.txt").write_text("a")
    path = "/v1/collections/default/documents"
    server.on("POST", path, lambda http: http.json({"document": _document("a", "queued")}, 202))

    result = groundwork("ingest", "--no-wait", str(growing), str(tmp_path / "a.txt"))

    assert result.exit_code == 1
    assert "it changed while it was read" in result.output
    assert "1 failed" in result.output


@pytest.mark.parametrize("later", ["2026-01-01T00:00:00.123Z", "2026-01-01T00:00:00.123456Z"])
def test_a_state_a_fraction_after_a_whole_second_is_the_newer_one(
    server: FakeServer, groundwork: Command, tmp_path: Path, later: str
) -> None:
    (tmp_path / "a.txt").write_text("a")
    queued, ready = _document("a", "queued", "2026-01-01T00:00:00Z"), _document("a", "ready", later)
    server.on("POST", "/v1/collections/default/documents", lambda http: http.json({"document": queued}, 202))
    server.on("GET", "/v1/events", lambda http: http.problem(501, "NO_EVENTS", "no event streams here"))
    server.on("GET", "/v1/documents/a", lambda http: http.json(ready))
    result = groundwork("ingest", str(tmp_path / "a.txt"), "--json")
    assert json.loads(result.stdout)["ready"] == 1


def test_a_busy_server_is_asked_again(server: FakeServer, groundwork: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content")
    answers = iter([503, 202])

    def upload(http: Handler) -> None:
        if next(answers) == 503:
            http.problem(503, "QUEUE_FULL", "try again")
        else:
            http.json({"document": _document("a", "queued")}, 202)

    server.on("POST", "/v1/collections/default/documents", upload)
    result = groundwork("ingest", "--no-wait", str(tmp_path / "a.txt"))
    assert (result.exit_code, result.stdout) == (0, "1 uploaded, 0 failed\n")
    assert all(b"content" in body for _, _, body in server.requests)


def test_an_unknown_collection_ends_the_command(server: FakeServer, groundwork: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    server.on(
        "POST", "/v1/collections/x/documents", lambda http: http.problem(404, "COLLECTION_NOT_FOUND", "there is no x")
    )
    result = groundwork("ingest", "-c", "x", "--no-wait", str(tmp_path))
    assert (result.exit_code, result.stderr) == (1, "there is no x (COLLECTION_NOT_FOUND)\n")


def test_a_path_that_does_not_exist_is_a_usage_error(groundwork: Command, tmp_path: Path) -> None:
    result = groundwork("ingest", str(tmp_path / "no"))
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_search_shows_hits_with_their_explanation(server: FakeServer, groundwork: Command) -> None:
    explain = {"dense_rank": 2, "dense_score": 0.5, "lexical_rank": None, "fused_rank": 1, "fused_score": 0.03}
    hit = {**CITATION, "score": 0.03, "explain": explain}
    server.on("POST", "/v1/search", lambda http: http.json({"hits": [hit], "degraded": []}))
    result = groundwork("search", "leave", "--explain", "-k", "3")
    assert "1. handbook.pdf, page 3  score 0.0300" in result.stdout
    assert "dense #2 (0.5000)   fused #1 (0.0300)" in result.stdout
    assert json.loads(server.requests[0][2])["top_k"] == 3


def test_search_sends_what_narrows_it_and_shows_what_was_decided(server: FakeServer, groundwork: Command) -> None:
    plan = {"strategy": "hybrid", "fusion": "convex", "reason": "12 chunks", "rerank_reason": "skipped: switched off"}
    dropped = [{"stage": "top_k"}, {"stage": "top_k"}, {"stage": "gate"}]
    answer = {"hits": [], "degraded": [], "plan": plan, "cache": "hit", "dropped": dropped}
    server.on("POST", "/v1/search", lambda http: http.json(answer))
    narrowed = (
        "--must",
        "two weeks",
        "--where",
        "author=Ann",
        "--where",
        "author=Bo",
        "--from",
        "2024-01-01",
        "-d",
        "0f3a5c7e9b1d",
    )
    result = groundwork("search", "leave", *narrowed, "--strategy", "lexical", "--diversity", "0.5", "--explain")
    assert result.exit_code == 0, result.stderr
    sent = json.loads(server.requests[0][2])
    assert sent["filters"] == {
        "document_ids": ["0f3a5c7e9b1d"],
        "metadata": {"author": ["Ann", "Bo"]},
        "date_from": "2024-01-01",
        "date_to": None,
    }
    assert (sent["must"], sent["strategy"], sent["diversity"]) == (["two weeks"], "lexical", 0.5)
    assert "hybrid, convex: 12 chunks; cache: hit" in result.stdout
    assert "left out: 2 top_k, 1 gate" in result.stdout


def test_a_condition_without_a_value_is_refused(groundwork: Command) -> None:
    result = groundwork("search", "leave", "--where", "author")
    assert result.exit_code != 0
    assert "is not KEY=VALUE" in result.stderr


def test_documents_are_listed_over_all_pages_shown_and_deleted(server: FakeServer, groundwork: Command) -> None:
    def pages(http: Handler) -> None:
        last = "page_token=next" in http.path
        http.json(
            {"documents": [_document("b" if last else "a", "ready")], "next_page_token": None if last else "next"}
        )

    server.on("GET", "/v1/collections/default/documents", pages)
    server.on(
        "GET",
        "/v1/documents/a",
        lambda http: http.json(_document("a", "failed", error={"reason": "R", "message": "M"})),
    )
    server.on("DELETE", "/v1/documents/a", lambda http: http.json({}))
    listed = groundwork("documents", "list", "--json")
    assert [each["id"] for each in json.loads(listed.stdout)["documents"]] == ["a", "b"]
    assert "M (R)" in groundwork("documents", "show", "a").stdout
    assert groundwork("documents", "delete", "a", "--yes").stdout == "deleted a\n"
    wrong = {"status": 400, "reason": "VALIDATION_FAILED", "errors": [{"field": "document_id", "message": "is no id"}]}
    server.on("GET", "/v1/documents/wrong", lambda http: http.json(wrong, 400))
    refused = groundwork("documents", "show", "wrong")
    assert (refused.exit_code, "the document: is no id" in refused.stderr) == (2, True)
    missing = groundwork("documents", "show", "zzz")
    assert (missing.exit_code, "ROUTE_NOT_FOUND" in missing.stderr) == (1, True)


def test_runs_are_listed_and_deleted(server: FakeServer, groundwork: Command) -> None:
    run = {"id": "r1", "status": "completed", "created_at": "2026-01-01T00:00:00.000Z", "question": "How long?"}
    listed = {"runs": [{**run, "forgotten_at": None}, {**run, "id": "r2", "forgotten_at": "2026-01-02T00:00:00.000Z"}]}
    server.on("GET", "/v1/runs", lambda http: http.json(listed))
    server.on("DELETE", "/v1/runs/r1", lambda http: http.json({}))
    lines = groundwork("runs", "list", "-n", "2").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["r1", "completed"], ["r2", "forgotten"]]
    assert server.asked("GET") == ["/v1/runs?page_size=2"]
    assert json.loads(groundwork("runs", "list", "--json").stdout) == listed
    assert groundwork("runs", "delete", "r1", "--yes").stdout == "r1 is gone\n"
    assert json.loads(groundwork("runs", "delete", "r1", "-y", "--json").stdout) == {"deleted": ["r1"]}


def test_an_id_stays_in_one_piece_and_a_row_on_one_line_in_a_pipe(server: FakeServer, groundwork: Command) -> None:
    id_, name = "0123456789abcdef" * 2, "folder/" * 30 + "a.txt"
    listed = {"documents": [_document(id_, "processing", name=name, size_bytes=1)], "next_page_token": None}
    server.on("GET", "/v1/collections/default/documents", lambda http: http.json(listed))
    lines = groundwork("documents", "list").stdout.splitlines()
    assert [line.split() for line in lines] == [["id", "status", "bytes", "name"], [id_, "processing", "1", name]]
    assert [line for line in lines if line.endswith(" ")] == []


@pytest.mark.parametrize("columns", [20, 80])
def test_an_id_stays_in_one_piece_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    id_, name = "0123456789abcdef" * 2, "folder/" * 30 + "a.txt"
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    Output(as_json=False).table(["id", "status", "bytes", "name"], [[id_, "processing", "1", name]], whole={"id"})
    lines = capsys.readouterr().out.splitlines()
    assert sum(id_ in line for line in lines) == 1
    assert len(lines) > 2, "the name is folded"


def test_status_tells_each_service_and_exits_with_1_until_all_serve(server: FakeServer, groundwork: Command) -> None:
    states = {"status": "not_ready", "services": {"retriever": {"state": "unreachable", "detail": "refused"}}}
    server.on("GET", "/readyz", lambda http: http.json(states, 503))
    result = groundwork("status")
    assert result.exit_code == 1
    assert "retriever" in result.stdout
    assert "not ready" in result.stdout
    assert json.loads(groundwork("status", "--json").stdout) == states


def test_a_server_that_does_not_run_is_said_with_the_command_that_starts_it(
    groundwork: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_URL", "http://127.0.0.1:9")
    for arguments in (("status",), ("ask", "?"), ("search", "x"), ("documents", "list"), ("ingest", __file__)):
        result = groundwork(*arguments)
        assert result.exit_code == 2
        assert "http://127.0.0.1:9" in result.stderr
        assert "`groundwork up`" in result.stderr


def test_a_certificate_that_is_not_trusted_is_told_apart_from_a_server_that_does_not_run(
    server: FakeServer, groundwork: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stranger = Authority()
    files = CertificateFolder(tmp_path, stranger.issue(), [stranger])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert_file, files.key_file)
    with socket.create_server(("127.0.0.1", 0)) as plain, context.wrap_socket(plain, server_side=True) as listening:

        def refused_once() -> None:
            with suppress(ssl.SSLError):
                listening.accept()

        thread = threading.Thread(target=refused_once)
        thread.start()
        monkeypatch.setenv("GROUNDWORK_URL", f"https://127.0.0.1:{listening.getsockname()[1]}")
        result = groundwork("status")
        thread.join()
    assert (result.exit_code, "has a certificate that is not trusted" in result.stderr) == (2, True)
    monkeypatch.setenv("GROUNDWORK_URL", server.url.replace("http:", "https:"))
    result = groundwork("status")
    assert (result.exit_code, "Perhaps its address begins with http://" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "group",
    ["approvals", "collections", "documents", "embedding", "jobs", "keys", "models", "runs", "threads"],
)
def test_help_of_commands_that_ask_a_server_says_which(
    groundwork: Command, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    def names(*words: str) -> bool:
        return all(word in groundwork(group, "--help").stdout for word in words)

    monkeypatch.delenv("GROUNDWORK_URL")
    monkeypatch.delenv("GROUNDWORK_PORT", raising=False)
    assert names("GROUNDWORK_PORT", "GROUNDWORK_URL")
    monkeypatch.setenv("GROUNDWORK_PORT", "28700")
    assert names("http://127.0.0.1:28700", "GROUNDWORK_PORT")
    monkeypatch.setenv("GROUNDWORK_URL", "https://docs.example.org")
    assert names("https://docs.example.org", "GROUNDWORK_URL")
    monkeypatch.setenv("GROUNDWORK_PORT", "no")
    assert names("http://127.0.0.1:8080", "GROUNDWORK_PORT", "GROUNDWORK_URL")
