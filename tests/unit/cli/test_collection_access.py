"""`groundwork collections access` against a server with lists and etags."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from tests.unit.cli.conftest import FakeServer, Handler

Command = Callable[..., Result]
DOCUMENT = "/v1/documents/d0000001"


class Lists:
    """The access list of a document, with an etag that counts its changes."""

    def __init__(self, server: FakeServer) -> None:
        self.list: dict[str, list[str]] | None = None
        self.version = 0
        self.meanwhile: list[Callable[[], None]] = []
        """What others do before the next writes are looked at."""
        server.on("GET", DOCUMENT, lambda http: http.json({"id": "d0000001", "collection_id": "contracts"}))
        server.on("GET", "/v1/collections/contracts", lambda http: http.json({"id": "contracts"}))
        for method in ("GET", "PUT", "DELETE"):
            server.on(method, f"{DOCUMENT}/access", self.handle)

    @property
    def etag(self) -> str:
        return f'"{self.version:032x}"'

    def set(self, **lists: list[str]) -> None:
        self.list, self.version = {"subjects": [], "groups": [], **lists}, self.version + 1

    def handle(self, http: Handler) -> None:
        if http.command != "GET":
            if self.meanwhile:
                self.meanwhile.pop()()
            if http.headers.get("If-Match", self.etag) != self.etag:
                return http.problem(412, "ACCESS_CHANGED", "somebody else has changed this list")
            self.list, self.version = json.loads(http.body) if http.body else None, self.version + 1
        lists = self.list or {"subjects": [], "groups": []}
        return http.tagged({"restricted": self.list is not None, **lists}, self.etag)


@pytest.fixture
def lists(server: FakeServer) -> Lists:
    return Lists(server)


def test_names_come_onto_a_document_s_list_and_leave_it(lists: Lists, groundwork: Command) -> None:
    at = ("contracts", "--document", "d0000001")
    assert "who may read the collection" in groundwork("collections", "access", "show", *at).stdout
    assert groundwork("collections", "access", "revoke", *at, "--subject", "bob").exit_code == 0
    assert lists.list is None, "nobody was on a list, so none is made that would shut everybody out"
    groundwork("collections", "access", "grant", *at, "--subject", "ann")
    shown = groundwork("collections", "access", "grant", *at, "--group", "legal")
    assert [line.split() for line in shown.stdout.splitlines()[1:]] == [["subject", "ann"], ["group", "legal"]]
    groundwork("collections", "access", "revoke", *at, "--subject", "ann")
    assert lists.list == {"subjects": [], "groups": ["legal"]}
    assert groundwork("collections", "access", "revoke", *at, "--all").exit_code == 0
    assert lists.list is None


def test_change_is_made_to_what_somebody_else_has_left(lists: Lists, groundwork: Command) -> None:
    lists.set(subjects=["ann"])
    lists.meanwhile = [lambda: lists.set(subjects=["ann", "bob"])]
    groundwork("collections", "access", "grant", "contracts", "--document", "d0000001", "--subject", "carol")
    assert lists.list == {"subjects": ["ann", "bob", "carol"], "groups": []}


def test_change_of_a_state_that_is_named_is_refused_where_it_is_no_more(lists: Lists, groundwork: Command) -> None:
    at = ("contracts", "--document", "d0000001")
    etag = json.loads(groundwork("collections", "access", "show", *at, "--json").stdout)["etag"]
    lists.set(subjects=["ann"])
    refused = groundwork("collections", "access", "grant", *at, "--subject", "bob", "--if-match", etag)
    assert refused.exit_code == 1
    assert "ACCESS_CHANGED" in refused.stderr
    assert lists.list == {"subjects": ["ann"], "groups": []}


def test_roles_on_a_collection_are_granted_and_revoked_with_the_etag(server: FakeServer, groundwork: Command) -> None:
    sent = []

    def members(http: Handler) -> None:
        sent.append((http.command, http.headers.get("If-Match")))
        http.tagged({"members": [{"kind": "group", "name": "sales", "role": "editor"}]}, '"ab"')

    for method in ("GET", "PUT", "DELETE"):
        server.on(method, "/v1/collections/contracts/members", members)
    groundwork("collections", "access", "show", "contracts")
    groundwork(
        "collections", "access", "grant", "contracts", "--group", "sales", "--role", "editor", "--if-match", "ab"
    )
    groundwork("collections", "access", "revoke", "contracts", "--group", "sales")
    assert sent == [("GET", None), ("PUT", '"ab"'), ("DELETE", None)]
    assert json.loads(server.requests[1][2]) == {"kind": "group", "name": "sales", "role": "editor"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("grant", "contracts", "--document", "d0000001", "--subject", "bob", "--role", "viewer"),
        ("grant", "contracts", "--subject", "bob", "--group", "sales"),
        ("revoke", "contracts", "--all"),
        ("show", "other", "--document", "d0000001"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    lists: Lists, server: FakeServer, groundwork: Command, arguments: tuple[str, ...]
) -> None:
    server.on("GET", "/v1/collections/other", lambda http: http.json({"id": "other"}))
    assert groundwork("collections", "access", *arguments).exit_code == 2
    assert server.asked("PUT") + server.asked("DELETE") == []
