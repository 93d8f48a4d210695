"""`groundwork usage`."""

from __future__ import annotations

from tests.unit.cli.conftest import FakeServer
from tests.unit.cli.test_commands import Command

ROW = {"key": "ann", "runs": 3, "prompt_tokens": 1200, "completion_tokens": 80, "cost_usd": 0.0125}


def test_what_runs_cost_is_shown_by_what_was_asked_for(server: FakeServer, groundwork: Command) -> None:
    account = {"rows": [ROW, {**ROW, "key": "bob", "cost_usd": None}], "total": {**ROW, "key": "", "runs": 6}}
    server.on("GET", "/v1/usage", lambda http: http.json(account))
    result = groundwork("usage", "--by", "user", "--user", "*", "--since", "2026-01-01")
    assert result.exit_code == 0
    header, ann, bob, total = (line.split() for line in result.stdout.splitlines())
    assert header[0] == "user"
    assert (ann, bob, total[:2]) == (["ann", "3", "1200", "80", "0.0125"], ["bob", "3", "1200", "80"], ["all", "6"])
    assert set(server.asked("GET")[0].partition("?")[2].split("&")) == {
        "since=2026-01-01",
        "group_by=subject",
        "subject=%2A",
    }
