"""`groundwork connections`: the token is read from standard input, sent, and shown nowhere."""

from __future__ import annotations

import json

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
    server.on("GET", PATH, lambda http: http.json({"connections": [GITHUB], "services": ["github"]}))
    server.on("PUT", f"{PATH}/github", lambda http: http.json(GITHUB))
    server.on("DELETE", f"{PATH}/github", lambda http: http.json({}))


def test_service_is_connected_listed_and_forgotten(server: FakeServer) -> None:
    runner, environment = CliRunner(), {"GROUNDWORK_URL": server.url}
    added = runner.invoke(app, ["connections", "add", "github", "--shared"], input="hunter2\n", env=environment)
    assert (added.exit_code, "octocat" in added.stdout, "hunter2" in added.output) == (0, True, False)
    assert json.loads(server.requests[-1][2]) == {"secret": "hunter2", "shared": True}
    listed = runner.invoke(app, ["connections", "list"], env=environment)
    assert listed.stdout.splitlines()[1].split()[:3] == ["github", "octocat", "you"]
    assert "Can be connected: github" in listed.stderr
    removed = runner.invoke(app, ["connections", "remove", "github"], env=environment)
    assert (removed.exit_code, server.requests[-1][0]) == (0, "DELETE")
