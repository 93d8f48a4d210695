"""`groundwork sources` and `groundwork watch` against the scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.unit.cli.conftest import FakeServer

Command = Callable[..., Result]


def source(**more: Any) -> dict[str, Any]:
    return {
        "id": "5d0c7be9f2c1",
        "kind": "folder",
        "name": "contracts",
        "collection_id": "default",
        "settings": {"folder": "contracts"},
        "state": "waiting",
        "error": None,
        "sync": None,
        "next_sync_at": "2026-01-31T12:15:00.000Z",
        "file_count": 12,
        "pending_count": 0,
        "failing_count": 0,
        "failing": [],
        **more,
    }


def test_show_names_each_failing_file_with_what_to_do(server: FakeServer, groundwork: Command) -> None:
    failing = [
        {"path": "a.pdf", "reason": "FILE_UNREADABLE", "message": "give the right to read it", "document_id": None}
    ]
    error = {"reason": "SOURCE_AWAY", "message": "the folder is away"}
    found = source(state="failed", failing_count=3, failing=failing, error=error)
    server.on("GET", "/v1/sources/5d0c7be9f2c1", lambda http: http.json(found))
    result = groundwork("sources", "show", "5d0c7be9f2c1")
    assert result.exit_code == 1
    assert "a.pdf: give the right to read it (FILE_UNREADABLE)" in result.stdout
    assert "the folder is away (SOURCE_AWAY)" in result.stdout
    assert "and 2 more" in result.stdout


def test_add_sends_settings_and_asks_for_secrets_and_waits_for_the_first_sync(
    server: FakeServer, groundwork: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.commands.documents.sources._secret", lambda name: {"key": "s3cret"}[name])
    states = [source(state="syncing", next_sync_at=None), source(pending_count=2), source()]
    server.on("POST", "/v1/sources", lambda http: http.json(states[0], 201))
    server.on("GET", "/v1/sources/5d0c7be9f2c1", lambda http: http.json(states.pop(0)))
    result = groundwork("sources", "add", "folder", "folder=contracts", "--secret", "key", "--wait")
    assert result.exit_code == 0, result.output
    assert states == []
    sent = json.loads(server.requests[0][2])
    assert (sent["settings"], sent["secrets"], sent["every_s"]) == ({"folder": "contracts"}, {"key": "s3cret"}, 900)
    assert "s3cret" not in result.output
    assert groundwork("sources", "add", "folder", "contracts").exit_code == 2


def test_pause_resume_run_and_remove_say_what_they_want(server: FakeServer, groundwork: Command) -> None:
    path = "/v1/sources/5d0c7be9f2c1"
    server.on("PATCH", path, lambda http: http.json(source(state="paused")))
    server.on("POST", f"{path}/run", lambda http: http.json(source(), 202))
    server.on("DELETE", path, lambda http: http.json({}, 202))
    for command in ("pause", "resume", "run", "remove"):
        more = {"run": ["--accept-empty"], "remove": ["--yes"]}.get(command, [])
        assert groundwork("sources", command, "5d0c7be9f2c1", *more).exit_code == 0
    sent = [json.loads(body) if body else None for _, _, body in server.requests]
    assert sent == [{"paused": True}, {"paused": False}, {"accept_empty": True}, None]


def test_watch_lists_the_folder_and_makes_one_source_of_it(
    server: FakeServer, groundwork: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, data = tmp_path / "notes", tmp_path / "data"
    notes.mkdir()
    monkeypatch.setenv("GROUNDWORK_DATA_DIR", str(data))
    server.on("GET", "/v1/me", lambda http: http.json({"tenant": "local", "subject": "ann", "scopes": []}))
    there: list[dict[str, Any]] = []
    server.on("GET", "/v1/sources", lambda http: http.json({"sources": there}))
    server.on("POST", "/v1/sources", lambda http: http.json(source(), 201))
    server.on("GET", "/v1/sources/5d0c7be9f2c1", lambda http: http.json(source()))
    server.on("POST", "/v1/sources/5d0c7be9f2c1/run", lambda http: http.json(source(), 202))
    assert "GROUNDWORK_DATA_DIR" in groundwork("watch", str(notes)).stderr
    data.mkdir()
    assert groundwork("watch", str(notes), "--only", "*.md").exit_code == 0
    (listed,) = json.loads((data / "watched-folders.json").read_text()).items()
    assert listed[1] == str(notes)
    made = next(json.loads(body) for method, path, body in server.requests if (method, path) == ("POST", "/v1/sources"))
    assert f"local/{made['settings']['folder']}" == listed[0]
    assert (made["name"], made["settings"]["only"]) == ("notes", "*.md")
    there.append(source(settings=made["settings"]))
    assert groundwork("watch", str(notes), "--only", "*.md").exit_code == 0
    assert server.requests[-2][:2] == ("POST", "/v1/sources/5d0c7be9f2c1/run")
