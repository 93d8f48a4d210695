"""Who may read and change a collection, as one table."""

from dataclasses import dataclass

import pytest

from kit.access.principal import ADMIN, INGEST, OPERATOR, QUERY, Principal
from kit.stores.collections import (
    CollectionAccess,
    Visibility,
    decode_access,
    is_reserved,
    may_change,
    may_read,
    own_id,
)

ANN = Principal("acme", "ann", frozenset({QUERY, INGEST}))
BOB = Principal("acme", "bob", frozenset({QUERY, INGEST}))
ADMINISTRATOR = Principal("acme", "root", frozenset({ADMIN}))
LOCAL = Principal("local", "local-user", frozenset({OPERATOR}))
PRIVATE = CollectionAccess("ann", Visibility.PRIVATE)
SHARED = CollectionAccess("ann", Visibility.TENANT)
NEWER = CollectionAccess("ann", "some-friends")
EVERYBODYS = CollectionAccess()


@dataclass(frozen=True)
class Case:
    caller: Principal
    record: CollectionAccess | None
    reads: bool
    changes: bool
    collection_id: str = "papers"


CASES = {
    "owner of a private one": Case(ANN, PRIVATE, True, True),
    "another, of a private one": Case(BOB, PRIVATE, False, False),
    "administrator, of a private one": Case(ADMINISTRATOR, PRIVATE, True, True),
    "owner of a shared one": Case(ANN, SHARED, True, True),
    "another, of a shared one": Case(BOB, SHARED, True, False),
    "another, of a visibility that is unknown here": Case(BOB, NEWER, False, False),
    "owner, of a visibility that is unknown here": Case(ANN, NEWER, True, True),
    "anybody, of one from before owners": Case(BOB, EVERYBODYS, True, True),
    "anybody, of one that is not there": Case(BOB, None, False, False),
    "administrator, of one whose record was lost": Case(ADMINISTRATOR, None, True, True),
    "anybody, of the default from before owners": Case(BOB, None, True, True, "default"),
    "another, of a default that has its owner": Case(BOB, PRIVATE, False, False, "default"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rules(case: Case) -> None:
    assert may_read(case.caller, case.collection_id, case.record) is case.reads
    assert may_change(case.caller, case.collection_id, case.record) is case.changes


def test_everybody_has_ids_of_their_own_for_the_same_name() -> None:
    assert own_id("default", LOCAL, LOCAL) == "default"
    ids = {own_id("default", each, LOCAL) for each in (ANN, BOB, Principal("acme", "local-user"))}
    assert len(ids) == 3
    assert "default" not in ids
    assert all(len(own_id("x" * 64, each, LOCAL)) <= 64 for each in (ANN, BOB))


def test_own_ids_are_kept_for_their_subject() -> None:
    anns = own_id("default", ANN, LOCAL)
    assert is_reserved(anns, BOB, LOCAL)
    assert is_reserved(own_id("notes", ANN, LOCAL), BOB, LOCAL)
    assert not is_reserved(anns, ANN, LOCAL)
    assert not is_reserved("default-report", BOB, LOCAL)
    assert is_reserved("notes", BOB, LOCAL)
    assert not is_reserved("notes", LOCAL, LOCAL)


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"\xff", b'{"owner": 1}', b'{"visibility": null}', b'{"deleting": "no"}']
)
def test_damaged_record_gives_no_rights(value: bytes) -> None:
    assert decode_access(value) is None


def test_record_from_before_owners_is_everybodys() -> None:
    assert decode_access(b'{"name": "Papers", "deleting": false}') == EVERYBODYS
