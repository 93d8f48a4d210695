"""`groundwork chat`, `approvals`, `tools` and `runs follow` against a small scripted server, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable

import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.client import asking
from cli.main import app
from tests.unit.cli.chats import ASKED, CALL, CAME, STARTED, approval, finished, parked, pending, wait_for_a_person
from tests.unit.cli.conftest import FakeServer, Handler, run_event

Command = Callable[..., Result]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "RESUME_DELAY_S", 0.01)
    monkeypatch.setattr(asking, "RESUME_FOR_S", 1.0)


@pytest.fixture
def waiting(server: FakeServer) -> FakeServer:
    wait_for_a_person(server)
    return server


def test_one_message_shows_its_steps_its_answer_and_what_it_cost(server: FakeServer, groundwork: Command) -> None:
    failure = {"reason": "SMTP_REFUSED", "message": "the server takes no mail"}
    mail = run_event("tool", 4, call_id="r1/b", name="send_email", arguments={"to": "ann"}, step="round2/call1")
    failed = run_event("tool_result", 5, call_id="r1/b", ok=False, summary="", duration_ms=20.0, error=failure)
    server.on("POST", "/v1/chat", lambda http: http.stream(STARTED, CALL, CAME, mail, failed, *finished(6)))
    result = groundwork("chat", "Mail it", "--tool", "search", "--tool", "send_email", "-c", "hr")
    assert (result.exit_code, result.stdout) == (0, "Done. [1]\n\n")
    assert result.stderr.splitlines() == [
        '→ search the documents (query="leave", top_k=3)',
        "  ✓ search the documents: 2 passages of handbook.pdf  1.5 s",
        '→ send an e-mail (to="ann")',
        "  ✗ send an e-mail: the server takes no mail (SMTP_REFUSED)  20 ms",
        "2 tool calls · 1200 + 56 tokens · $0.0020 · 2.5 s · qwen",
    ]
    sent = json.loads(server.requests[0][2])
    assert sent == {
        "message": "Mail it",
        "thread_id": None,
        "tools": ["search", "send_email"],
        "collection_ids": ["hr"],
    }


def test_without_options_all_tools_and_collections_are_offered(server: FakeServer, groundwork: Command) -> None:
    server.on("POST", "/v1/chat", lambda http: http.stream(STARTED, *finished(2)))
    assert groundwork("chat", "Hi", "--thread", "0123456789ab").exit_code == 0
    sent = json.loads(server.requests[0][2])
    assert sent == {"message": "Hi", "thread_id": "0123456789ab", "tools": None, "collection_ids": None}


def test_a_dropped_connection_is_taken_up_again_and_no_step_is_shown_twice(
    server: FakeServer, groundwork: Command
) -> None:
    server.on("POST", "/v1/chat", lambda http: http.stream(STARTED, CALL))
    server.on("GET", "/v1/runs/r1/events", lambda http: http.stream(CALL, CAME, *finished(4)))
    result = groundwork("chat", "Hi", "--json")
    assert server.asked("GET") == ["/v1/runs/r1/events?after=2"]
    told = json.loads(result.stdout)
    assert (told["answer"], told["thread_id"], told["approvals"]) == ("Done. [1]", "0123456789ab", [])
    (call,) = told["tool_calls"]
    assert (call["name"], call["arguments"], call["ok"]) == ("search", {"query": "leave", "top_k": 3}, True)


def test_lines_of_a_pipe_are_a_conversation_on_one_thread(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_URL", server.url)
    server.on("POST", "/v1/threads", lambda http: http.json({"id": "0123456789ab"}, 201))
    server.on("POST", "/v1/chat", lambda http: http.stream(STARTED, *finished(2, "Yes.")))
    result = CliRunner().invoke(app, ["chat"], input="Hello\n\n  \nAnd then?\n", catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (0, "Yes.\n\nYes.\n\n")
    assert ">" not in result.stderr, "nobody is prompted"
    bodies = [json.loads(body) for _, path, body in server.requests if path == "/v1/chat"]
    assert [(each["message"], each["thread_id"]) for each in bodies] == [
        ("Hello", "0123456789ab"),
        ("And then?", "0123456789ab"),
    ]
    assert server.asked("POST").count("/v1/threads") == 1
    result = CliRunner().invoke(app, ["chat", "--json"], input="Hello\nAnd then?\n", catch_exceptions=False)
    assert [json.loads(line)["answer"] for line in result.stdout.splitlines()] == ["Yes.", "Yes."]


def test_a_line_that_the_server_refuses_does_not_end_what_is_piped_in(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_URL", server.url)
    server.on("POST", "/v1/threads", lambda http: http.json({"id": "0123456789ab"}, 201))
    for status, asked in ((400, 2), (401, 1)):
        server.requests.clear()
        server.on("POST", "/v1/chat", lambda http, status=status: http.problem(status, "REFUSED", "no"))
        result = CliRunner().invoke(app, ["chat"], input="One\nTwo\n", catch_exceptions=False)
        assert (result.exit_code, server.asked("POST").count("/v1/chat")) == (2, asked)


def test_a_thread_that_is_not_there_is_told_before_anything_is_said(server: FakeServer, groundwork: Command) -> None:
    server.on("GET", "/v1/threads/x", lambda http: http.problem(404, "THREAD_NOT_FOUND", "there is no thread x"))
    result = groundwork("chat", "--thread", "x")
    assert (result.exit_code, result.stderr) == (1, "there is no thread x (THREAD_NOT_FOUND)\n")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [(("ask", ""), "question"), (("ask", " "), "question"), (("chat", ""), "message"), (("search", ""), "query")],
)
def test_an_empty_text_is_told_in_the_words_of_the_command(
    server: FakeServer, groundwork: Command, arguments: tuple[str, ...], what: str
) -> None:
    result = groundwork(*arguments)
    assert (result.exit_code, server.requests) == (2, [])
    assert f"{what} is empty" in result.stderr


@pytest.mark.parametrize(
    ("field", "called"),
    [
        ("tools.0", "--tool"),
        ("filters.date_from", "--from"),
        ("scopes.0", "--scope"),
        ("thread_id", "the thread"),
        ("new.member", "new.member"),
    ],
)
def test_what_the_server_refuses_is_told_by_the_option_it_came_from(
    server: FakeServer, groundwork: Command, field: str, called: str
) -> None:
    errors = [{"field": field, "message": "it is wrong", "type": "value_error"}]
    problem = {"reason": "VALIDATION_FAILED", "detail": f"the request is not valid: {field}: …", "errors": errors}
    server.on("POST", "/v1/chat", lambda http: http.json(problem, 400))
    result = groundwork("chat", "Hi", "--tool", "a b")
    assert (result.exit_code, result.stderr) == (
        2,
        f"That cannot be asked: {called}: it is wrong (VALIDATION_FAILED)\n",
    )


def test_a_port_that_is_none_is_told_as_the_start_tells_it(
    groundwork: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_PORT", "eighty")
    result = groundwork("status")
    assert (result.exit_code, result.stderr) == (
        2,
        "GROUNDWORK_PORT=eighty is not valid: it must be a whole number\n",
    )


def test_a_run_that_waits_is_left_where_nobody_can_be_asked(waiting: FakeServer, groundwork: Command) -> None:
    result = groundwork("chat", "Mail it")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "send an e-mail: needs your approval" in result.stderr
    assert "groundwork approvals" in result.stderr
    assert "groundwork runs follow r1" in result.stderr
    told = json.loads(groundwork("chat", "Mail it", "--json").stdout)
    assert (told["status"], told["approvals"][0]["id"], told["run_id"]) == ("waiting", "ap1", "r1")
    assert "/v1/runs/r1/cancel" not in waiting.asked("POST"), "it goes on waiting"


def test_approvals_are_listed_shown_in_full_and_decided_about_with_their_hash(
    waiting: FakeServer, groundwork: Command
) -> None:
    listed = [re.split(r"\s{2,}", line.strip())[:4] for line in groundwork("approvals").stdout.splitlines()]
    assert listed == [["id", "call", "expires", "decides"], ["ap1", "send an e-mail", ASKED["expires_at"], "you"]]
    assert json.loads(groundwork("approvals", "list", "--json").stdout) == {"approvals": [pending()]}
    result = groundwork("approvals", "allow", "ap1")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "send an e-mail waits for a decision before 2026-01-01T01:00:00.000Z:",
        "  to: ann@example.org",
        "  text: Hello",
        "    \ufffd[2JAnn",
    ]
    assert result.stdout == "allowed ap1; see: groundwork runs follow r1\n"
    (body,) = (json.loads(body) for method, path, body in waiting.requests if path == "/v1/approvals/ap1")
    assert body == {"decision": "allow", "arguments_hash": "ab12"}
    late = groundwork("approvals", "deny", "ap1")
    assert (late.exit_code, "No approval ap1 waits" in late.stderr) == (1, True)
    assert groundwork("approvals").stdout == "Nothing waits for a decision.\n"


def test_approvals_come_in_pages_and_say_who_decides(server: FakeServer, groundwork: Command) -> None:
    def pages(http: Handler) -> None:
        last = "page_token=next" in http.path
        others = pending(id="b", yours_to_decide=False, may_decide=["olga"], arguments=None)
        http.json({"approvals": [others if last else pending(id="a")], "next_page_token": None if last else "next"})

    server.on("GET", "/v1/approvals", pages)
    table = groundwork("approvals").stdout.splitlines()
    assert [re.split(r"\s{2,}", line)[3] for line in table] == ["decides", "you", "olga"]
    told = json.loads(groundwork("approvals", "--json").stdout)
    assert [each["id"] for each in told["approvals"]] == ["a", "b"]


def test_a_run_is_found_again_and_what_was_decided_is_not_asked_again(waiting: FakeServer, groundwork: Command) -> None:
    assert groundwork("runs", "follow", "r1").exit_code == 4
    groundwork("approvals", "deny", "ap1")
    result = groundwork("runs", "follow", "r1")
    assert (result.exit_code, result.stdout) == (0, "Done. [1]\n\n")
    assert "  send an e-mail: denied by ann" in result.stderr.splitlines()


def test_a_run_that_waits_again_is_read_past_where_it_waited_before(server: FakeServer, groundwork: Command) -> None:
    second = run_event("parked", 9, waits_for="approval", approval_ids=["ap2"], until=None)
    resumed = run_event("thinking", 7, phase="resume", text="Going on where this answer had stopped.", degraded=None)
    events = [STARTED, CALL, CAME, approval(4), parked(5), resumed, approval(8, approval_id="ap2"), second]
    events.insert(5, approval(6, "allowed", decided_by="ann"))
    server.on("GET", "/v1/runs/r1/events", lambda http: http.stream(*events[int(http.path.rpartition("=")[2]) :]))
    server.on("GET", "/v1/approvals", lambda http: http.json({"approvals": [pending(id="ap2")]}))
    told = json.loads(groundwork("runs", "follow", "r1", "--json").stdout)
    assert (told["status"], [each["id"] for each in told["approvals"]]) == ("waiting", ["ap2"])
    assert "  Going on where this answer had stopped." in groundwork("runs", "follow", "r1").stderr.splitlines()


def test_tools_are_listed(server: FakeServer, groundwork: Command) -> None:
    mail = {"name": "send_email", "description": "Sends a mail.\nMore.", "effect": "once", "needs_approval": True}
    clock = {"name": "time_now", "description": "Tells the time.", "effect": "none", "needs_approval": False}
    server.on("GET", "/v1/tools", lambda http: http.json({"tools": [mail, clock]}))
    lines = [" ".join(line.split()) for line in groundwork("tools").stdout.splitlines()]
    assert lines == [
        "name effect asks first what it does",
        "send_email acts once yes Sends a mail.",
        "time_now reads only Tells the time.",
    ]
    assert json.loads(groundwork("tools", "--json").stdout) == {"tools": [mail, clock]}


def test_agents_are_listed(server: FakeServer, groundwork: Command) -> None:
    legal = {"name": "legal", "description": "Reads contracts.", "modes": ["grounded"], "is_default": False}
    server.on("GET", "/v1/agents", lambda http: http.json({"agents": [legal], "modes": []}))
    lines = [" ".join(line.split()) for line in groundwork("agents").stdout.splitlines()]
    assert lines == ["name default modes what it is for", "legal grounded Reads contracts."]
    assert json.loads(groundwork("agents", "--json").stdout) == {"agents": [legal], "modes": []}


def test_agent_over_several_collections_is_refused(groundwork: Command) -> None:
    result = groundwork("ask", "Why?", "--agent", "legal", "-c", "one", "-c", "two")
    assert result.exit_code != 0
    assert "one --collection" in result.stderr


def test_agent_that_does_not_exist_is_refused_with_those_that_do(server: FakeServer, groundwork: Command) -> None:
    problem = {
        "title": "Bad Request",
        "status": 400,
        "reason": "INVALID_REQUEST",
        "detail": "use auto, or one of legal",
    }
    server.on("POST", "/v1/collections/default/chat", lambda http: http.json(problem, 400))
    result = groundwork("ask", "Why?", "--agent", "nobody")
    assert result.exit_code != 0
    assert "one of legal" in result.stderr


async def test_a_run_that_was_silent_on_a_sound_stream_is_not_lost() -> None:
    position = asking.Position(run_id="r1")
    position.heard_at = asyncio.get_running_loop().time() - 2 * asking.RESUME_FOR_S
    assert position.is_lost()
    position.note_break(opened_at=asyncio.get_running_loop().time())
    assert position.is_lost(), "it broke at once"
    position.note_break(opened_at=position.heard_at)
    assert not position.is_lost()
