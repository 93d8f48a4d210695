"""`groundwork collections` against the scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.unit.cli.conftest import FakeServer, Handler, run_event

Command = Callable[..., Result]


def collection(id_: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "name": id_.title(), "created_at": None, "owner": "ann", "visibility": "private", **more}


def test_list_shows_whose_they_are_and_who_reads_them(server: FakeServer, groundwork: Command) -> None:
    found = [
        collection("contracts", visibility="tenant"),
        collection("default"),
        collection("old", owner=None, visibility="tenant"),
    ]
    server.on("GET", "/v1/collections", lambda http: http.json({"collections": found}))
    result = groundwork("collections", "list")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[1] == ["contracts", "Contracts", "ann", "everyone", "here"]
    assert rows[2] == ["default", "Default", "ann", "its", "owner"]
    assert rows[3] == ["old", "Old", "everyone", "here", "everyone", "here"]
    assert json.loads(groundwork("collections", "list", "--json").stdout) == {"collections": found}


def test_create_is_private_unless_it_is_said_otherwise(server: FakeServer, groundwork: Command) -> None:
    server.on("POST", "/v1/collections", lambda http: http.json(collection("contracts"), 201))
    assert groundwork("collections", "create", "contracts").exit_code == 0
    assert groundwork("collections", "create", "--name", "Contracts", "--visibility", "tenant").exit_code == 0
    bodies = [json.loads(body) for _, _, body in server.requests]
    assert [(each["id"], each["visibility"]) for each in bodies] == [("contracts", "private"), ("", "tenant")]
    assert groundwork("collections", "create").exit_code == 2


def test_collection_is_shared_listed_and_unshared(server: FakeServer, groundwork: Command) -> None:
    members = [{"kind": "group", "name": "sales", "role": "editor"}]
    path = "/v1/collections/contracts/members"
    server.on("PUT", path, lambda http: http.json({"members": members}))
    server.on("GET", path, lambda http: http.json({"members": members}))
    server.on("DELETE", path, lambda http: http.json({"members": []}))
    shared = groundwork("collections", "share", "contracts", "--group", "sales", "--role", "editor")
    assert shared.stdout.splitlines()[1].split() == ["editor", "group", "sales"]
    assert json.loads(server.requests[-1][2]) == members[0]
    assert groundwork("collections", "members", "contracts").stdout == shared.stdout
    assert groundwork("collections", "unshare", "contracts", "--group", "sales").exit_code == 0
    unclear = groundwork("collections", "share", "contracts", "--group", "sales", "--subject", "bob")
    assert unclear.exit_code == 2


@pytest.mark.parametrize("status", [201, 409])
def test_ingest_makes_a_collection_only_where_there_is_none(
    server: FakeServer, groundwork: Command, tmp_path: Path, status: int
) -> None:
    (tmp_path / "a.txt").write_text("Leave is 28 days.")
    document = {"id": "a", "name": "a.txt", "status": "queued", "updated_at": "2026-01-01T00:00:00.000Z"}
    made = (lambda http: http.json(collection("contracts"), 201)) if status == 201 else _exists
    server.on("POST", "/v1/collections", made)
    server.on("POST", "/v1/collections/contracts/documents", lambda http: http.json({"document": document}, 202))
    result = groundwork("ingest", str(tmp_path), "--collection", "contracts", "--create", "--no-wait")
    assert result.exit_code == 0, result.output
    assert server.asked("POST") == ["/v1/collections", "/v1/collections/contracts/documents"]


def _exists(http: Handler) -> None:
    http.problem(409, "COLLECTION_EXISTS", "there is a collection contracts already")


def test_update_changes_what_is_given(server: FakeServer, groundwork: Command) -> None:
    server.on(
        "PATCH", "/v1/collections/contracts", lambda http: http.json(collection("contracts", visibility="tenant"))
    )
    assert groundwork("collections", "update", "contracts", "--visibility", "tenant").exit_code == 2, "nobody agreed"
    assert not server.asked("PATCH")
    result = groundwork("collections", "update", "contracts", "--visibility", "tenant", "--yes")
    assert (result.exit_code, "everyone here" in result.stdout) == (0, True)
    unchanged = {"name": None, "memory": None, "local_models_only": None}
    assert json.loads(server.requests[-1][2]) == {**unchanged, "visibility": "tenant"}
    assert groundwork("collections", "update", "contracts").exit_code == 2


def test_refusal_is_said_as_the_server_words_it(server: FakeServer, groundwork: Command) -> None:
    said = "collection contracts is shared with you to read"
    server.on("PATCH", "/v1/collections/contracts", lambda http: http.problem(403, "NOT_YOURS", said))
    result = groundwork("collections", "update", "contracts", "--name", "Mine")
    assert result.exit_code != 0
    assert said in result.stderr


def test_delete_removes_a_collection(server: FakeServer, groundwork: Command) -> None:
    server.on("DELETE", "/v1/collections/contracts", lambda http: http.json({}, 202))
    assert groundwork("collections", "delete", "contracts", "--yes").stdout == "deleted contracts\n"
    assert server.asked("DELETE") == ["/v1/collections/contracts"]


REFUSED = (
    run_event("answer", 1, text="The documents do not say.", citations=[], support_status="insufficient"),
    run_event("done", 2, status="refused"),
)


@pytest.fixture
def refusing(server: FakeServer) -> FakeServer:
    """A server that finds nothing, with two collections besides Ann's own."""
    server.on("POST", "/v1/qa", lambda http: http.stream(*REFUSED))
    server.on("POST", "/v1/collections/default/chat", lambda http: http.stream(*REFUSED))
    server.on("POST", "/v1/search", lambda http: http.json({"hits": []}))
    server.on("GET", "/v1/collections/default", lambda http: http.json(collection("default-ann")))
    listed = [collection(each) for each in ("contracts", "default-ann", "demo")]
    server.on("GET", "/v1/collections", lambda http: http.json({"collections": listed}))
    return server


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ((), "No document is in the collection default yet: "),
        (("processing",), "No document in the collection default is ready: "),
        (("processing", "ready"), ""),
    ],
)
@pytest.mark.parametrize("command", ["ask", "search"])
def test_where_nothing_was_found_it_is_said_what_could_not_be(
    refusing: FakeServer, groundwork: Command, states: tuple[str, ...], told: str, command: str
) -> None:
    def documents(http: Handler) -> None:
        found = [each for each in states if each == "ready" or "status=ready" not in http.path]
        http.json({"documents": [{"id": each} for each in found[:1]], "next_page_token": None})

    refusing.on("GET", "/v1/collections/default/documents", documents)
    result = groundwork(command, "How long?")
    lines = [line for line in result.stderr.splitlines() if "collection" in line]
    assert lines[-1].endswith("contracts, demo (--collection)")
    assert [line.startswith(told) for line in lines[:-1]] == ([True] if told else [])
    assert "collection" not in groundwork(command, "How long?", "--json").stderr


def test_an_answer_stands_where_it_cannot_be_told_what_else_there_is(refusing: FakeServer, groundwork: Command) -> None:
    refusing.on("GET", "/v1/collections", lambda http: http.problem(503, "RPC_UNAVAILABLE", "away"))
    result = groundwork("search", "How long?")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Nothing found.\n", "")
