"""`groundwork keys`, and how every command shows its key."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.unit.cli.conftest import FakeServer, Handler

Command = Callable[..., Result]
ID = "0f" * 12
TEXT = f"gw_{ID}_{'x' * 49}"


def key(**changes: Any) -> dict[str, Any]:
    return {
        "id": ID,
        "name": "Laptop",
        "tenant_id": "acme",
        "subject": "anna",
        "scopes": ["query", "ingest"],
        "status": "active",
        "expires_at": None,
        "last_used_at": "2026-05-01T00:00:00.000Z",
        **changes,
    }


def test_a_key_is_made_and_its_text_alone_printed(server: FakeServer, groundwork: Command) -> None:
    server.on("POST", "/v1/keys", lambda http: http.json(key(key=TEXT), 201))
    options = ["--scope", "query", "-s", "ingest", "--subject", "anna", "--tenant", "acme", "--expires", "2027-01-31"]
    made = groundwork("keys", "create", "Laptop", *options)
    assert (made.exit_code, made.stdout) == (0, f"{TEXT}\n")
    assert "acme/anna: query, ingest" in made.stderr
    assert json.loads(server.requests[0][2]) == {
        "name": "Laptop",
        "scopes": ["query", "ingest"],
        "subject": "anna",
        "tenant_id": "acme",
        "expires_at": "2027-01-31",
        "groups": [],
    }
    assert json.loads(groundwork("keys", "create", "Laptop", "--json").stdout)["key"] == TEXT
    body = json.loads(server.requests[1][2])
    assert (body["scopes"], body["expires_at"]) == (["query"], None)
    assert groundwork("keys", "create", "Laptop", "--expires", "90d").exit_code == 0
    assert json.loads(server.requests[2][2])["expires_at"].endswith("+00:00")
    assert groundwork("keys", "create", "Laptop", "--expires", "xd").exit_code == 2


def test_keys_are_listed_over_all_pages_and_shown(server: FakeServer, groundwork: Command) -> None:
    pages = [{"keys": [key()], "next_page_token": "more"}, {"keys": [key(status="revoked")], "next_page_token": None}]
    server.on("GET", "/v1/keys", lambda http: http.json(pages["page_token=more" in http.path]))
    lines = [line.split() for line in groundwork("keys", "list", "--tenant", "acme").stdout.splitlines()]
    assert [line[1] for line in lines] == ["status", "active", "revoked"]
    assert lines[1][-1] == "Laptop"
    assert all("tenant_id=acme" in path for path in server.asked("GET"))
    server.on("GET", f"/v1/keys/{ID}", lambda http: http.json(key()))
    assert ["scopes", "query,", "ingest"] in [
        each.split() for each in groundwork("keys", "show", ID).stdout.splitlines()
    ]


def test_a_key_is_rotated_with_an_overlap_and_revoked(server: FakeServer, groundwork: Command) -> None:
    until = "2026-05-01T00:00:00.000Z"
    server.on("POST", f"/v1/keys/{ID}/rotate", lambda http: http.json(key(key=TEXT, old_text_until=until)))
    rotated = groundwork("keys", "rotate", ID, "--keep-old", "12h")
    assert (rotated.stdout, json.loads(server.requests[0][2])) == (f"{TEXT}\n", {"keep_old_for_s": 43_200})
    assert f"good until {until}" in rotated.stderr
    server.on("DELETE", f"/v1/keys/{ID}", lambda http: http.json({}))
    assert groundwork("keys", "revoke", ID).stdout == f"revoked {ID}\n"
    refused = groundwork("keys", "revoke", TEXT)
    assert (refused.exit_code, "not its id" in refused.stderr, TEXT in refused.stderr) == (2, True, False)


def test_every_command_shows_the_key_of_the_environment_or_the_command_line(
    server: FakeServer, groundwork: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str | None] = []

    def answer(http: Handler) -> None:
        shown.append(http.headers.get("authorization"))
        http.json({"operations": [], "providers": []})

    server.on("GET", "/v1/models", answer)
    groundwork("models")
    monkeypatch.setenv("GROUNDWORK_API_KEY", TEXT)
    groundwork("models")
    groundwork("--api-key", "gw_other", "models")
    assert shown == [None, f"Bearer {TEXT}", "Bearer gw_other"]
    monkeypatch.setenv("GROUNDWORK_API_KEY", f"{TEXT} x")
    refused = groundwork("models")
    assert (refused.exit_code, TEXT in refused.stderr, "is no API key" in refused.stderr) == (2, False, True)


@pytest.mark.parametrize(
    ("status", "reason", "exit_code", "advice"),
    [
        (401, "API_KEY_MISSING", 2, "export GROUNDWORK_API_KEY=gw_…"),
        (403, "SCOPE_MISSING", 1, "words of the server"),
        (429, "TOO_MANY_WRONG_API_KEYS", 1, "words of the server"),
    ],
)
def test_a_refusal_says_what_to_do(
    status: int, reason: str, exit_code: int, advice: str, server: FakeServer, groundwork: Command
) -> None:
    server.on("GET", "/v1/models", lambda http: http.problem(status, reason, "words of the server"))
    refused = groundwork("models")
    assert refused.exit_code == exit_code
    assert f"words of the server ({reason})" in refused.stderr
    assert advice in refused.stderr
