"""`groundwork cluster test` against a server whose answers each test decides; tests/integration/test_cli.py has the real system."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from cli.operating import installation_check
from tests.unit.cli.conftest import FakeServer, Handler, groundwork, server

__all__ = ["groundwork", "server"]

Command = Callable[..., Result]
COLLECTION = "/v1/collections/installation-test-0"
CITED = {"document_id": "d1", "text": installation_check.TEXT}


@pytest.fixture(autouse=True)
def _works(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server where all goes well."""
    monkeypatch.setattr(installation_check.secrets, "token_hex", lambda _: "0")
    monkeypatch.setattr(installation_check, "_POLL_S", 0.0)
    server.on("GET", "/readyz", lambda at: at.json({"status": "ready", "services": {}}))
    server.on("POST", "/v1/collections", lambda at: at.json({"id": "installation-test-0"}, 201))
    server.on("POST", f"{COLLECTION}/documents", lambda at: at.json({"document": {"id": "d1", "status": "queued"}}))
    server.on("GET", "/v1/documents/d1", lambda at: at.json({"id": "d1", "status": "ready"}))
    server.on("DELETE", COLLECTION, lambda at: at.json({}))
    answers(server, [CITED])


def answers(server: FakeServer, citations: list[dict[str, Any]]) -> None:
    body = {"answer": "It has 213 steps [1].", "method": "extractive", "citations": citations}
    server.on("POST", "/v1/qa", lambda at: at.json(body))


def in_turn(*answered: tuple[int, dict[str, Any]]) -> Callable[[Handler], None]:
    """One after the other; the last one again and again."""
    left = list(answered)

    def route(at: Handler) -> None:
        status, body = left.pop(0) if len(left) > 1 else left[0]
        at.json(body, status)

    return route


def test_each_step_is_shown_and_what_was_made_is_removed(server: FakeServer, groundwork: Command) -> None:
    result = groundwork("cluster", "test")
    assert result.exit_code == 0, result.output
    assert result.output.rstrip().endswith("passed  It works.")
    assert "It cites the passage of lighthouse.txt that says '213 steps'." in result.output
    assert server.asked("DELETE") == [COLLECTION]


def test_services_that_start_are_waited_for_and_named(server: FakeServer, groundwork: Command) -> None:
    starting = {
        "status": "not_ready",
        "services": {"retriever": {"state": "unreachable"}, "tools": {"state": "serving"}},
    }
    server.on("GET", "/readyz", in_turn((503, starting), (503, starting), (200, {"status": "ready", "services": {}})))
    result = groundwork("cluster", "test")
    assert result.exit_code == 0
    assert result.output.count("Not ready: retriever unreachable.") == 1


@pytest.mark.parametrize(
    ("citations", "said"),
    [
        ([], "does not cite the document"),
        ([{"document_id": "other", "text": installation_check.TEXT}], "does not cite the document"),
        ([{"document_id": "d1", "text": "Something else."}], "not the passage that says '213 steps'"),
    ],
)
def test_an_answer_without_its_ground_fails(
    server: FakeServer, groundwork: Command, citations: list[dict[str, Any]], said: str
) -> None:
    answers(server, citations)
    result = groundwork("cluster", "test")
    assert (result.exit_code, said in result.output) == (1, True), result.output
    assert server.asked("DELETE") == [COLLECTION]


def test_a_document_that_fails_says_why(server: FakeServer, groundwork: Command) -> None:
    failed = {"id": "d1", "status": "failed", "error": {"reason": "PARSE_FAILED", "message": "no parser answered"}}
    server.on("GET", "/v1/documents/d1", in_turn((200, {"id": "d1", "status": "processing"}), (200, failed)))
    result = groundwork("cluster", "test")
    assert result.exit_code == 1
    assert "The document is failed: no parser answered" in result.output
    assert server.asked("DELETE") == [COLLECTION]


def test_a_refused_key_and_a_leftover_are_said(server: FakeServer, groundwork: Command) -> None:
    server.on("DELETE", COLLECTION, lambda at: at.problem(503, "NATS_UNAVAILABLE", "the store is away"))
    assert "installation-test-0" in groundwork("cluster", "test").output
    server.on("POST", "/v1/collections", lambda at: at.problem(401, "API_KEY_INVALID", "there is no such key"))
    result = groundwork("cluster", "test")
    assert (result.exit_code, "there is no such key" in result.output) == (2, True)


def test_what_takes_too_long_is_given_up(
    server: FakeServer, groundwork: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = []

    def begin(_: float, timeout: Callable[[None], asyncio.Timeout] = asyncio.timeout) -> asyncio.Timeout:
        begun.append((asyncio.get_running_loop(), timeout(None)))
        return begun[0][1]

    def process(at: Handler) -> None:
        loop, timeout = begun[0]
        loop.call_soon_threadsafe(timeout.reschedule, 0.0)
        at.json({"id": "d1", "status": "processing"})

    monkeypatch.setattr(installation_check.asyncio, "timeout", begin)
    server.on("GET", "/v1/documents/d1", process)
    result = groundwork("cluster", "test", "--timeout", "10")
    assert result.exit_code == 1
    assert "not done within 10 s" in result.output
    assert server.asked("DELETE") == [COLLECTION]
