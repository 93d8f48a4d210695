"""`groundwork tool-servers`: what is approved is shown first, and a server without tools has its line."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.display.tool_names import in_words
from cli.main import app
from tests.unit.cli.conftest import FakeServer, Handler

Command = Callable[..., Result]
PATH = "/v1/tool-servers"
DIGEST = "ab" * 32
FIND = {
    "name": "find",
    "description": "Finds a customer.",
    "parameters": {"type": "object", "properties": {"customer": {"type": "string"}}},
    "digest": DIGEST,
    "state": "changed",
    "why": "",
    "reads_only": False,
}


def listed(name: str, *tools: dict[str, Any], error: str = "") -> dict[str, Any]:
    return {"name": name, "url": "", "error": error, "tools": list(tools), "header_names": [], "logged_in": False}


@pytest.fixture(autouse=True)
def serving(server: FakeServer) -> None:
    servers = [listed("crm", FIND), listed("empty"), listed("gone", error="no answer in time")]
    server.on("GET", PATH, lambda http: http.json({"servers": servers}))
    server.on("PUT", f"{PATH}/crm/tools/find", lambda http: http.json(listed("crm", FIND)))


def approved(server: FakeServer) -> list[Any]:
    return [json.loads(body)["digest"] for method, _, body in server.requests if method == "PUT"]


def test_each_server_has_a_line_with_its_state(groundwork: Command) -> None:
    lines = groundwork("tool-servers", "list").stdout.splitlines()
    assert lines[1].split()[:3] == ["crm", "find", "changed"]
    assert lines[2].split() == ["gone", "cannot", "be", "asked", "no", "answer", "in", "time"]
    assert lines[3].split()[:3] == ["empty", "no", "tools"]


def test_tool_is_approved_once_a_person_has_seen_what_it_says(server: FakeServer) -> None:
    runner, command = CliRunner(), ["tool-servers", "approve", "crm", "find"]
    environment = {"GROUNDWORK_URL": server.url}
    refused = runner.invoke(app, command, input="n\n", env=environment)
    assert (refused.exit_code, approved(server)) == (2, [])
    for shown in ("Finds a customer.", '"customer"', DIGEST):
        assert shown in refused.stderr
    assert runner.invoke(app, command, input="", env=environment).exit_code != 0
    assert not approved(server)
    assert runner.invoke(app, command, input="y\n", env=environment).exit_code == 0
    assert approved(server) == [DIGEST]


def test_digest_or_yes_approves_without_a_question(server: FakeServer, groundwork: Command) -> None:
    assert groundwork("tool-servers", "approve", "crm", "find", "--yes").exit_code == 0
    assert groundwork("tool-servers", "approve", "crm", "find", "--digest", "cd" * 32).exit_code == 0
    assert approved(server) == [DIGEST, "cd" * 32]


def test_login_waits_for_the_browser_and_hands_over_what_it_brings(server: FakeServer, groundwork: Command) -> None:
    def begin(http: Handler) -> None:
        asked = json.loads(http.body)
        brought = urlencode({"state": "crm.1", "code": "c1", "iss": "https://login.example"})
        threading.Thread(target=httpx.get, args=(f"{asked['redirect_uri']}?{brought}",)).start()
        http.json(
            {"authorization_url": "https://login.example/authorize?x=1", "expires_at": "2026-01-01T00:00:00.000Z"}
        )

    server.on("POST", f"{PATH}/crm/login", begin)
    server.on("POST", f"{PATH}/crm/login/answer", lambda http: http.json(listed("crm", FIND)))
    told = groundwork("tool-servers", "login", "crm", "--scope", "a")
    assert told.exit_code == 0, told.stderr
    assert "https://login.example/authorize?x=1" in told.stderr
    assert json.loads(server.requests[-1][2]) == {"state": "crm.1", "code": "c1", "iss": "https://login.example"}


def test_login_with_a_browser_elsewhere_shows_the_address_alone(server: FakeServer, groundwork: Command) -> None:
    begun = {"authorization_url": "https://login.example/authorize?x=1", "expires_at": "2026-01-01T00:00:00.000Z"}
    server.on("POST", f"{PATH}/crm/login", lambda http: http.json(begun))
    told = groundwork("tool-servers", "login", "crm", "--elsewhere", "--json")
    assert json.loads(told.stdout) == begun
    assert "redirect_uri" not in json.loads(server.requests[-1][2])


@pytest.mark.parametrize(
    ("name", "words"),
    [("git__git_log", "git log"), ("files__read_file", "files read file"), ("gitea__git_log", "gitea git log")],
)
def test_words_of_server_and_tool_are_said_once(name: str, words: str) -> None:
    assert in_words(name) == words
