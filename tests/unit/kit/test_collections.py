"""Who may read and change a collection, as one table."""

from dataclasses import dataclass

import pytest

from kit.access.principal import ADMIN, INGEST, MAX_GROUPS, OPERATOR, QUERY, Principal, usable_groups
from kit.rpc.server import MAX_METADATA_BYTES
from kit.stores.collections import (
    CollectionAccess,
    Member,
    Role,
    Visibility,
    decode_access,
    is_reserved,
    may_edit,
    may_manage,
    may_read,
    own_id,
    role_of,
)
from kit.testing.harness import make_signer

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
    assert may_edit(case.caller, case.collection_id, case.record) is case.changes
    assert may_manage(case.caller, case.collection_id, case.record) is case.changes


CAROL = Principal("acme", "carol", frozenset({QUERY}), groups=frozenset({"/staff", "sales"}))
RANKS = [None, *Role]


@pytest.mark.parametrize("visibility", Visibility)
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(
    ("kind", "name", "caller", "is_member"),
    [
        ("subject", "bob", BOB, True),
        ("subject", "carol", BOB, False),
        ("group", "bob", BOB, False),
        ("group", "sales", CAROL, True),
        ("group", "/staff", CAROL, True),
        ("group", "staff", CAROL, False),
        ("subject", "sales", CAROL, False),
        ("role", "sales", CAROL, False),
    ],
)
def test_member_has_the_role_that_it_was_given(
    visibility: Visibility, role: Role, kind: str, name: str, caller: Principal, *, is_member: bool
) -> None:
    record = CollectionAccess("ann", visibility, members=(Member(kind, name, role),))
    without = Role.VIEWER if visibility is Visibility.TENANT else None
    held = role if is_member else without
    assert role_of(caller, "papers", record) is held
    for needed, may in ((Role.VIEWER, may_read), (Role.EDITOR, may_edit), (Role.OWNER, may_manage)):
        assert may(caller, "papers", record) is (RANKS.index(held) >= RANKS.index(needed))


def test_highest_of_several_roles_counts_and_one_of_a_newer_version_does_not() -> None:
    members = (
        Member("group", "sales", "viewer"),
        Member("group", "/staff", "editor"),
        Member("subject", "carol", "steward"),
    )
    assert role_of(CAROL, "papers", CollectionAccess("ann", members=members)) is Role.EDITOR
    assert role_of(CAROL, "papers", CollectionAccess("ann", members=members[2:])) is None


def test_groups_that_cannot_be_any_are_left_out() -> None:
    names = ["/staff", "Sales EMEA", "", " staff", "a\nb", "x" * 129, *(f"g{number:03}" for number in range(600))]
    found = usable_groups(names)
    assert len(found) == MAX_GROUPS
    assert {"/staff", "Sales EMEA"} <= found


@pytest.mark.parametrize("letter", ["x", "ж", "😀", '"'])
def test_token_with_all_usable_groups_fits_into_a_call(letter: str) -> None:
    found = usable_groups(f"{number:03}" + letter * 125 for number in range(600))
    assert len(found) >= (MAX_GROUPS if letter == "x" else 80)
    assert len(make_signer().sign(Principal("acme", "ann", groups=found), "retriever")) < MAX_METADATA_BYTES * 3 / 4


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
    "value",
    [
        *(b"", b"[]", b"\xff", b'{"owner": 1}', b'{"visibility": null}', b'{"deleting": "no"}'),
        *(
            b'{"members": 1}',
            b'{"members": ["ann"]}',
            b'{"members": [{"kind": "subject", "name": 1, "role": "owner"}]}',
        ),
    ],
)
def test_damaged_record_gives_no_rights(value: bytes) -> None:
    assert decode_access(value) is None


def test_record_from_before_owners_is_everybodys() -> None:
    assert decode_access(b'{"name": "Papers", "deleting": false}') == EVERYBODYS
