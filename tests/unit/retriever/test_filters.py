"""What a scope compiles to, for both engines at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from services.retriever.errors import InvalidRequest
from services.retriever.indexes.filters import AnyOf, compile_scope, metadata_term, parse_write_term, write_term
from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import Languages, MetadataCondition, RevisionKey, SearchScope, Vectors, WriteKey
from tests.unit.retriever.core_over_fakes import OPTIONS, Core

TENANT, COLLECTION = AnyOf("tenant", ("t",)), AnyOf("collection", ("c",))


@dataclass(frozen=True)
class Case:
    name: str
    scope: SearchScope
    clauses: tuple[AnyOf, ...]


CASES = [
    Case("tenant and collection are always there", SearchScope("t", ("c",)), (TENANT, COLLECTION)),
    Case("any of the collections", SearchScope("t", ("c", "d")), (TENANT, AnyOf("collection", ("c", "d")))),
    Case(
        "documents narrow",
        SearchScope("t", ("c",), ("d1", "d2")),
        (TENANT, COLLECTION, AnyOf("document", ("d1", "d2"))),
    ),
    Case(
        "each metadata condition is a clause of its own",
        SearchScope("t", ("c",), (), (MetadataCondition("k", ("v", "w")), MetadataCondition("l", ("x",)))),
        (TENANT, COLLECTION, AnyOf("metadata", ("k\x1fv", "k\x1fw")), AnyOf("metadata", ("l\x1fx",))),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_scope_compiles_to_clauses(case: Case) -> None:
    assert compile_scope(case.scope) == case.clauses


@pytest.mark.parametrize(
    "scope",
    [
        SearchScope("", ("c",)),
        SearchScope("t", ()),
        SearchScope("t", ("",)),
        SearchScope("t", ("c", "")),
        SearchScope("t", ("c",), (), (MetadataCondition("k", ()),)),
    ],
    ids=["no tenant", "no collection", "empty collection", "one empty collection", "condition without values"],
)
def test_scope_that_would_widen_is_refused(scope: SearchScope) -> None:
    with pytest.raises(InvalidRequest):
        compile_scope(scope)


def test_long_metadata_becomes_a_short_term_of_its_own() -> None:
    long, other = metadata_term("k", "v" * 10_000), metadata_term("k", "v" * 10_001)
    assert long != other
    assert len(long) == 64


def test_write_terms_can_be_read_back() -> None:
    key = WriteKey(RevisionKey("t", "d", "r"), 1_700_000_000_000, "attempt")
    assert parse_write_term(write_term(key)) == key


async def test_engines_are_asked_for_readable_collections_alone() -> None:
    """What the caller may not read is in no filter, no plan and no remembered answer."""
    core = Core(options=replace(OPTIONS, cache_bytes=1_000_000))
    await core.publish(RevisionKey("local", "d1", "r1"), ["solar panel"])
    scopes: list[SearchScope] = []
    search = core.dense.search

    async def seen(
        scope: SearchScope, vectors: Vectors, limit: int, languages: Languages | None
    ) -> list[list[Candidate]]:
        scopes.append(scope)
        return await search(scope, vectors, limit, languages)

    core.dense.search = seen  # type: ignore[method-assign]
    asked = SearchScope("local", ("secret", "default"))
    core.rights.closed.add("secret")
    narrowed = await core.search("solar", scope=asked)
    assert [scope.collection_ids for scope in scopes] == [("default",)]
    core.rights.closed = {"secret", "default"}
    nothing = await core.search("solar", scope=asked)
    assert (len(narrowed.hits), nothing.hits, nothing.plan.chunk_count) == (1, (), 0)
    assert len(scopes) == 1, "nothing that may be read is nothing to ask for"
