"""Searches see what their caller may read: two subjects, each with a private collection that holds the same text, an administrator,
and another tenant. The records are those that ingestion writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc

from kit.access.principal import ADMIN, QUERY, Principal, use_principal
from kit.jetstream import KeyValue, Nats
from kit.shared_state import DOCUMENT_ACCESS
from kit.stores.document_access import DocumentAccess, encode
from kit.testing.harness import open_test_channel
from tests.service.retriever.conftest import SERVICES, index_batch
from tests.unit.retriever.fakes import MODEL

ANN, BOB = (Principal("local", name, frozenset({QUERY})) for name in ("ann", "bob"))
ADMINISTRATOR = Principal("local", "root", frozenset({ADMIN}))
STRANGER = Principal("rival", "ann", frozenset({QUERY}))
SAME = "the notice period is one month"
TEXTS = {
    "d1": SAME,
    "d2": SAME,
    "d3": "an old contract names a notice period of three weeks before the harvest",
    "d4": "somebody lost the page about the notice period under a green sofa",
    "d5": "kitchen rules know no notice period but ask everyone to wash cups",
}


class World:
    """The retriever, asked by anybody, and the records of collections."""

    def __init__(self, stub: retriever_pb2_grpc.RetrieverServiceStub, records: KeyValue) -> None:
        self.stub = stub
        self._records = records

    async def record(self, collection_id: str, **fields: object) -> None:
        await self._records.put(f"local.{collection_id}", json.dumps(fields).encode())

    async def publish(self, collection_id: str, document_id: str) -> None:
        header = pb.IndexHeader(
            document_id=document_id, collection_id=collection_id, revision_id=document_id, embedding_model=MODEL
        )
        header.first_batch.CopyFrom(index_batch(document_id, document_id, [TEXTS[document_id]]))
        header.activate.CopyFrom(pb.Activation(revision_number=1, expected_chunk_count=1))
        with use_principal(ANN):
            await self.stub.IndexChunks(iter([pb.IndexChunksRequest(header=header)]), timeout=60)

    async def search(
        self, caller: Principal, *collection_ids: str, query_text: str = "notice period"
    ) -> pb.SearchResponse:
        request = pb.SearchRequest(queries=[query_text], collection_ids=collection_ids, explain=True)
        with use_principal(caller):
            return await self.stub.Search(request, timeout=60)

    async def found(self, caller: Principal, *collection_ids: str) -> list[str]:
        return sorted(hit.chunk.document_id for hit in (await self.search(caller, *collection_ids)).hits)

    async def until_found(self, caller: Principal, expected: Sequence[str], *collection_ids: str) -> None:
        async with asyncio.timeout(60):
            while await self.found(caller, *collection_ids) != expected:
                await asyncio.sleep(0.01)

    async def fetched(self, caller: Principal, *chunk_ids: str) -> list[str]:
        with use_principal(caller):
            answer = await self.stub.FetchChunks(pb.FetchChunksRequest(chunk_ids=chunk_ids), timeout=60)
        return [each.chunk.document_id for each in answer.chunks]

    async def section(self, caller: Principal, document_id: str) -> pb.FetchChunksResponse:
        with use_principal(caller):
            request = pb.FetchChunksRequest(document_id=document_id, chunk_count=5)
            return await self.stub.FetchChunks(request, timeout=60)


@pytest.fixture
async def world(address: str, jetstream: Nats) -> AsyncIterator[World]:
    async with open_test_channel(address, ANN, SERVICES) as channel:
        world = World(retriever_pb2_grpc.RetrieverServiceStub(channel), await KeyValue.open(jetstream, "COLLECTIONS"))
        await world.record("anns", owner="ann", visibility="private")
        await world.record("bobs", owner="bob", visibility="private")
        await world.record("old")
        for collection_id, document_id in (
            ("anns", "d1"),
            ("bobs", "d2"),
            ("old", "d3"),
            ("lost", "d4"),
            ("default", "d5"),
        ):
            await world.publish(collection_id, document_id)
        yield world


EVERYTHING = ("anns", "bobs", "old", "lost", "default", "never")


async def test_search_finds_what_its_caller_may_read(world: World) -> None:
    await world.until_found(ANN, ["d1", "d3", "d5"], *EVERYTHING)
    await world.until_found(BOB, ["d2", "d3", "d5"], *EVERYTHING)
    assert await world.found(ADMINISTRATOR, "anns", "old", "lost", "default", "never") == ["d1", "d3", "d4", "d5"]
    assert await world.found(ADMINISTRATOR, "bobs") == ["d2"]
    assert await world.found(STRANGER, *EVERYTHING) == []
    assert await world.found(BOB, "anns") == []


async def test_foreign_collection_is_answered_like_one_that_never_was(world: World) -> None:
    foreign, never = [await world.search(BOB, each) for each in ("anns", "never")]
    for answer in (foreign, never):
        answer.timings_ms.clear()
    assert foreign == never
    beside, alone = [await world.search(BOB, *each) for each in (("bobs", "anns"), ("bobs",))]
    assert [hit.chunk.document_id for hit in beside.hits] == [hit.chunk.document_id for hit in alone.hits] == ["d2"]
    assert beside.plan == alone.plan, "not even the number of passages is told"


async def test_what_was_remembered_for_one_is_not_told_to_another(world: World) -> None:
    await world.until_found(ANN, ["d1"], "anns", "bobs")
    assert (await world.search(ANN, "anns", "bobs")).cache == pb.CACHE_OUTCOME_HIT
    assert await world.found(BOB, "anns", "bobs") == ["d2"]
    again = await world.search(BOB, "anns", "bobs", query_text="notice periods")
    assert [hit.chunk.document_id for hit in again.hits] == ["d2"]


async def test_passages_are_fetched_by_whom_their_collection_lets(world: World) -> None:
    everything = [f"d{n}-0" for n in range(1, 6)]
    assert await world.fetched(ANN, *everything) == ["d1", "d3", "d5"]
    assert await world.fetched(BOB, *everything) == ["d2", "d3", "d5"]
    assert await world.fetched(ADMINISTRATOR, *everything) == ["d1", "d2", "d3", "d4", "d5"]
    assert len((await world.section(ANN, "d1")).chunks) == 1
    assert await world.section(BOB, "d1") == await world.section(BOB, "d9")


async def test_sharing_and_its_end_take_effect_at_once(world: World) -> None:
    await world.until_found(ANN, ["d1"], "anns")
    assert await world.found(BOB, "anns") == []
    await world.record("anns", owner="ann", visibility="tenant")
    assert await world.found(BOB, "anns") == ["d1"], "a refusal is looked up where the record is kept"
    await world.record("anns", owner="ann", visibility="private")
    await world.until_found(BOB, [], "anns")
    await world.record("anns", owner="ann", visibility="private", deleting=True)
    await world.until_found(ANN, [], "anns")
    await world.until_found(ADMINISTRATOR, [], "anns")


async def test_access_list_closes_a_document_to_members_who_are_not_in_it(world: World, jetstream: Nats) -> None:
    lists = await KeyValue.open(jetstream, DOCUMENT_ACCESS.name)
    legal = replace(BOB, subject="carol", groups=frozenset({"legal"}))
    await world.record(
        "anns",
        owner="ann",
        visibility="private",
        members=[
            {"kind": kind, "name": name, "role": "viewer"} for kind, name in (("subject", "bob"), ("group", "legal"))
        ],
    )
    await world.publish("anns", "d4")
    for caller in (ANN, BOB, legal):
        await world.until_found(caller, ["d1", "d4"], "anns")
    await lists.put("local.d1", encode(DocumentAccess("anns", groups=frozenset({"legal"}))))
    await world.until_found(BOB, ["d4"], "anns")
    assert await world.found(legal, "anns") == await world.found(ANN, "anns") == ["d1", "d4"]
    assert await world.found(ADMINISTRATOR, "anns") == ["d1", "d4"]
    assert await world.fetched(BOB, "d1-0", "d4-0") == ["d4"]
    assert await world.section(BOB, "d1") == await world.section(BOB, "d9")
    assert (await world.search(BOB, "anns")).cache == pb.CACHE_OUTCOME_HIT
    await lists.purge("local.d1")
    await world.until_found(BOB, ["d1", "d4"], "anns")
