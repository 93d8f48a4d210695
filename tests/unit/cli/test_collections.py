"""`groundwork collections` against the scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests.unit.cli.conftest import FakeServer

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


def test_update_changes_what_is_given(server: FakeServer, groundwork: Command) -> None:
    server.on(
        "PATCH", "/v1/collections/contracts", lambda http: http.json(collection("contracts", visibility="tenant"))
    )
    result = groundwork("collections", "update", "contracts", "--visibility", "tenant")
    assert (result.exit_code, "everyone here" in result.stdout) == (0, True)
    assert json.loads(server.requests[-1][2]) == {"name": None, "visibility": "tenant"}
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
