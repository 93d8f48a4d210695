"""`groundwork connections`: the token is read from standard input, sent, and shown nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.unit.cli.conftest import FakeServer

PATH = "/v1/connections"
GITHUB = {
    "service": "github",
    "shared": False,
    "account": "octocat",
    "address": "https://api.github.com",
    "connected_at": "2026-11-28T00:00:00Z",
    "error": "",
}


@pytest.fixture(autouse=True)
def serving(server: FakeServer) -> None:
    server.on(
        "GET", PATH, lambda http: http.json({"connections": [GITHUB], "services": ["github"], "logins": ["github"]})
    )
    server.on("PUT", f"{PATH}/github", lambda http: http.json(GITHUB))
    server.on("DELETE", f"{PATH}/github", lambda http: http.json({}))


def test_service_is_connected_listed_and_forgotten(server: FakeServer) -> None:
    runner, environment = CliRunner(), {"GROUNDWORK_URL": server.url}
    added = runner.invoke(app, ["connections", "add", "github", "--shared"], input="hunter2\n", env=environment)
    assert (added.exit_code, "octocat" in added.stdout, "hunter2" in added.output) == (0, True, False)
    assert json.loads(server.requests[-1][2]) == {"secret": "hunter2", "shared": True, "account": ""}
    listed = runner.invoke(app, ["connections", "list"], env=environment)
    assert listed.stdout.splitlines()[1].split()[:3] == ["github", "octocat", "you"]
    assert "Can be connected: github" in listed.stderr
    removed = runner.invoke(app, ["connections", "remove", "github"], env=environment)
    assert (removed.exit_code, server.requests[-1][0]) == (0, "DELETE")


def test_service_is_connected_by_a_login_there(server: FakeServer) -> None:
    begun = {"user_code": "WDJB-MJHT", "verification_url": "https://example.com/device", "login": "one"}
    said = [{"connection": None, "login": "two"}, {"connection": GITHUB, "login": ""}]
    server.on("POST", f"{PATH}/github/login", lambda http: http.json(begun))
    server.on("POST", f"{PATH}/github/login/finish", lambda http: http.json(said.pop(0)))
    done = CliRunner().invoke(app, ["connections", "login", "github"], env={"GROUNDWORK_URL": server.url})
    assert (done.exit_code, "octocat" in done.stdout) == (0, True)
    assert "Open https://example.com/device and type the code WDJB-MJHT" in done.stderr
    assert [json.loads(each[2]) for each in server.requests[-2:]] == [{"login": "one"}, {"login": "two"}]


def test_credential_is_read_from_a_file(server: FakeServer, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text('{"type": "service_account"}\n')
    environment = {"GROUNDWORK_URL": server.url}
    done = CliRunner().invoke(app, ["connections", "add", "github", "--file", str(key)], env=environment)
    assert (done.exit_code, json.loads(server.requests[-1][2])["secret"]) == (0, '{"type": "service_account"}')
    missing = CliRunner().invoke(app, ["connections", "add", "github", "--file", "no-such"], env=environment)
    assert (missing.exit_code, "cannot be read" in missing.stderr) == (2, True)
