"""The retriever as a process would run it."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.reranker.v1 import reranker_pb2
from groundwork.retriever.v1 import retriever_pb2 as pb

from kit.errors import FailedPrecondition, GroundworkError, InvalidArgument, Unavailable
from kit.jetstream import KeyValue, Nats
from kit.testing.harness import running_service
from kit.testing.nats import NatsServer
from services.retriever.adapters.revisions import NatsRevisions
from services.retriever.app import run
from services.retriever.errors import PointerConflict
from services.retriever.models import Pointer, PointerEntry, PointerRemoved
from services.retriever.settings import RetrieverSettings
from services.retriever.state import ACTIVE_REVISIONS
from tests.service.retriever.conftest import FakeModelServer, Retriever, retriever_as


async def eventually(call: Callable[[], Awaitable[object]], *, fails_with: str = "") -> None:
    """Returns once the call succeeds, or fails with that reason."""
    async with asyncio.timeout(60):
        while True:
            try:
                await call()
                reason = ""
            except GroundworkError as error:
                reason = error.reason
            if reason == fails_with:
                return
            await asyncio.sleep(0.05)


async def test_indexed_activated_found_replaced_deleted(local: Retriever, models: FakeModelServer) -> None:
    assert await local.index("r1", ["solar panels on the roof", "wind turbines", "hydro", "coal"], page=2) == 4
    assert (await local.search("solar")).hits == []
    assert (await local.activate("r1", 1, 4)).activated_at.seconds > 0
    response = await local.search("solar panel", explain=True)
    best = response.hits[0]
    assert (best.chunk.text, best.chunk.page, best.chunk.document_name) == ("solar panels on the roof", 2, "d1.md")
    assert best.chunk.embedded_text == ""
    assert (best.explanation.lexical_rank, best.explanation.dense_rank) == (1, 1)
    assert not best.explanation.HasField("rerank_rank")
    assert best.dense_score == pytest.approx(best.explanation.dense_score)
    assert (response.strategy, response.fusion) == (pb.STRATEGY_HYBRID, pb.FUSION_METHOD_CONVEX)
    assert {"embed", "dense", "lexical", "fuse", "total"} == set(response.timings_ms)
    assert models.tenants == ["local", "local"]
    assert max(models.seconds_left) < 2.1

    await local.publish("r2", ["geothermal heat"], number=2)
    assert await local.texts("geothermal") == ["geothermal heat"]
    await local.stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="d1"), timeout=60)
    assert await local.texts("geothermal") == []
    with pytest.raises(FailedPrecondition) as caught:
        await local.publish("r3", ["geothermal heat"], number=3)
    assert caught.value.reason == "REVISION_SUPERSEDED"


async def test_tenants_share_ids_and_nothing_else(local: Retriever, address: str) -> None:
    await local.publish("r1", ["solar ours"])
    async with retriever_as(address, "rival") as rival:
        assert await rival.texts("solar") == []
        await rival.publish("r1", ["solar theirs", "more"])
        assert (await rival.texts("solar"))[0] == "solar theirs"
        fetched = await rival.stub.FetchChunks(pb.FetchChunksRequest(chunk_ids=["r1-0"], window=1), timeout=60)
        assert [(window.chunk.text, len(window.after)) for window in fetched.chunks] == [("solar theirs", 1)]
        await rival.stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="d1"), timeout=60)
        stats = await rival.stub.CorpusStats(pb.CorpusStatsRequest(), timeout=60)
        assert list(stats.collections) == []
    async with retriever_as(address, "local") as ours:
        assert await ours.texts("solar") == ["solar ours"]
        stats = await ours.stub.CorpusStats(pb.CorpusStatsRequest(), timeout=60)
        assert [(item.document_count, item.chunk_count) for item in stats.collections] == [(1, 1)]


async def test_a_document_is_read_from_any_position_on_until_it_is_deleted(local: Retriever) -> None:
    await local.publish("r1", ["old"], number=1)
    await local.publish("r2", ["zero", "one", "two", "three"], number=2)

    async def read(first_ordinal: int, chunk_count: int) -> tuple[list[str], int]:
        request = pb.FetchChunksRequest(document_id="d1", first_ordinal=first_ordinal, chunk_count=chunk_count)
        response = await local.stub.FetchChunks(request, timeout=60)
        return [window.chunk.text for window in response.chunks], response.document_chunk_count

    assert await read(0, 2) == (["zero", "one"], 4)
    assert await read(2, 200) == (["two", "three"], 4)
    assert await read(4, 1) == ([], 4)
    await local.stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="d1"), timeout=60)
    assert await read(0, 2) == ([], 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"document_id": "d1"},
        {"document_id": "d1", "chunk_count": 201},
        {"document_id": "d1", "chunk_count": 1, "chunk_ids": ["r1-0"]},
        {"document_id": "d1", "chunk_count": 1, "window": 1},
        {"document_id": "../d1", "chunk_count": 1},
    ],
)
async def test_a_request_for_a_document_that_breaks_a_rule_is_refused(local: Retriever, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        await local.stub.FetchChunks(pb.FetchChunksRequest(**fields), timeout=60)


async def test_the_model_server_down_leaves_lexical_hits_and_says_so(local: Retriever, models: FakeModelServer) -> None:
    await local.publish("r1", ["solar panels on the roof", "solar"])
    ranked = await local.search("solar", rerank=pb.RERANK_MODE_ON, explain=True)
    assert [hit.explanation.rerank_rank for hit in ranked.hits] == [1, 2]
    models.is_down = True
    response = await local.search("solar", rerank=pb.RERANK_MODE_ON, no_cache=True)
    assert len(response.hits) == 2
    assert [(item.part, item.reason) for item in response.degraded] == [
        ("dense", "EMBEDDER_UNAVAILABLE"),
        ("rerank", "RERANKER_UNAVAILABLE"),
    ]
    with pytest.raises(Unavailable) as caught:
        await local.search("solar", strategy=pb.STRATEGY_DENSE)
    assert caught.value.reason == "SEARCH_UNAVAILABLE"


async def test_an_incomplete_revision_is_not_activated(local: Retriever) -> None:
    await local.index("r1", ["solar"])
    with pytest.raises(FailedPrecondition) as caught:
        await local.activate("r1", 1, 2)
    assert caught.value.reason == "REVISION_INCOMPLETE"


async def test_revision_that_comes_in_one_message_is_visible_when_it_is_answered(local: Retriever) -> None:
    await local.publish("r1", ["the old text about copper"], number=1)
    answer = await local.index_and_activate(
        "r2", ["the new text about silver"], pb.Activation(revision_number=2, expected_chunk_count=1, languages=["en"])
    )
    assert answer.chunk_count == 1
    assert answer.HasField("activated_at")
    assert await local.texts("text") == ["the new text about silver"]


async def test_revision_that_comes_in_one_message_is_refused_as_an_activation_would_be(local: Retriever) -> None:
    with pytest.raises(FailedPrecondition) as incomplete:
        await local.index_and_activate("r1", ["tin"], pb.Activation(revision_number=1, expected_chunk_count=2))
    assert incomplete.value.reason == "REVISION_INCOMPLETE"
    assert await local.texts("tin") == []
    await local.publish("r5", ["lead"], number=5)
    with pytest.raises(FailedPrecondition) as superseded:
        await local.index_and_activate("r4", ["zinc"], pb.Activation(revision_number=4, expected_chunk_count=1))
    assert superseded.value.reason == "REVISION_SUPERSEDED"
    assert await local.texts("lead zinc") == ["lead"]


async def test_requests_against_the_contract_are_refused(local: Retriever) -> None:
    stub = local.stub
    with pytest.raises(InvalidArgument):
        await stub.Search(pb.SearchRequest(queries=["solar"]), timeout=60)

    async def without_header():  # type: ignore[no-untyped-def]
        yield pb.IndexChunksRequest(batch=pb.IndexBatch())

    async def short_vectors():  # type: ignore[no-untyped-def]
        yield pb.IndexChunksRequest(
            header=pb.IndexHeader(document_id="d", collection_id="c", revision_id="r", embedding_model="m")
        )
        chunk = pb.Chunk(chunk_id="x", text="a", embedded_text="a")
        yield pb.IndexChunksRequest(batch=pb.IndexBatch(chunks=[chunk], vectors=b"1234", dimension=8))

    for stream in (without_header, short_vectors):
        with pytest.raises(InvalidArgument):
            await stub.IndexChunks(stream(), timeout=60)


async def test_everything_is_there_after_a_restart_and_old_pointers_are_refused(settings: RetrieverSettings) -> None:
    for is_first in (True, False):
        async with running_service(run, settings) as address, retriever_as(address, "local") as retriever:
            if is_first:
                await retriever.publish("r1", ["solar old"])
                await retriever.publish("r2", ["solar new"], number=2)
            assert await retriever.texts("solar") == ["solar new"]
            with pytest.raises(FailedPrecondition):
                await retriever.activate("r1", 1, 1)


async def test_searches_go_on_while_nats_is_down(local: Retriever, nats: NatsServer) -> None:
    await local.publish("r1", ["solar"])
    await nats.stop(kill=True)
    assert await local.texts("solar") == ["solar"]
    await nats.start()
    async with asyncio.timeout(60):
        while True:
            try:
                await local.publish("r2", ["solar again"], number=2)
                break
            except Unavailable:
                continue
    assert await local.texts("solar") == ["solar again"]


async def test_pointers_are_compared_and_set_and_watched_in_nats(jetstream: Nats) -> None:
    store = await NatsRevisions.open(jetstream)
    pointer = Pointer("r1", 1, "default", 2, 5)
    assert await store.get("local", "d1") is None
    entry = await store.put("local", "d1", pointer, None)
    assert await store.get("local", "d1") == entry
    for expected in (None, entry.version + 1):
        with pytest.raises(PointerConflict):
            await store.put("local", "d1", pointer, expected)
    changes = store.watch()
    assert [await anext(changes), await anext(changes)] == [entry, None]
    newer = await store.put("local", "d1", Pointer("r2", 2, "default", 2, 6), entry.version)
    assert await anext(changes) == newer
    await changes.aclose()


async def test_pointers_of_other_versions_and_broken_ones_stop_nothing(jetstream: Nats) -> None:
    store = await NatsRevisions.open(jetstream)
    bucket = await KeyValue.open(jetstream, ACTIVE_REVISIONS.name)
    good = await store.put("local", "good", Pointer("r1", 1, "default", 2, 5), None)
    broken = [b"{", b"[]", b"\xff", b'{"revision_id": 5}', b"{}"]
    for number, value in enumerate(broken):
        await bucket.put(f"local.broken{number}", value)
    newer = {
        "revision_id": "r1",
        "number": 1,
        "collection_id": "c",
        "chunk_count": 2,
        "activated_at_ms": 5,
        "tier": [1],
    }
    await bucket.put("local.newer", json.dumps(newer).encode())
    changes = store.watch()
    assert await anext(changes) == good
    for number in range(len(broken)):
        entry = await anext(changes)
        assert isinstance(entry, PointerEntry)
        assert (entry.document_id, entry.pointer) == (f"broken{number}", None)
        assert await store.get("local", entry.document_id) == entry
    entry = await anext(changes)
    assert isinstance(entry, PointerEntry)
    assert entry.pointer is not None
    assert entry.pointer.newer_fields == {"tier": [1]}
    await store.put("local", "newer", replace(entry.pointer, number=2), entry.version)
    stored = await bucket.get("local.newer")
    assert stored is not None
    assert json.loads(stored.value or b"")["tier"] == [1]
    await changes.aclose()


async def test_removed_pointer_is_told_to_who_watches(jetstream: Nats) -> None:
    store = await NatsRevisions.open(jetstream)
    entry = await store.put("local", "d1", Pointer("r1", 1, "default", 2, 5), None)
    changes = store.watch()
    assert [await anext(changes), await anext(changes)] == [entry, None]
    await store.remove("local", "d1")
    assert await anext(changes) == PointerRemoved("local", "d1", await store.latest_version())
    assert await store.get("local", "d1") is None
    await changes.aclose()


async def test_retriever_that_is_cut_off_shows_nothing_until_it_is_not(
    settings: RetrieverSettings, nats: NatsServer
) -> None:
    short = settings.model_copy(update={"retriever_staleness_s": 1.0})
    async with running_service(run, short) as address, retriever_as(address, "local") as retriever:
        await retriever.publish("r1", ["solar"])
        assert await retriever.texts("solar") == ["solar"]
        await nats.stop(kill=True)
        await eventually(lambda: retriever.texts("solar"), fails_with="REVISIONS_STALE")
        await nats.start()
        await eventually(lambda: retriever.texts("solar"))


async def whole_again(retriever: Retriever, query_text: str) -> None:
    async with asyncio.timeout(60):
        while (await retriever.search(query_text, no_cache=True)).degraded:
            await asyncio.sleep(0.05)


async def test_damaged_text_index_never_fails_a_search_and_is_filled_again(
    local: Retriever, settings: RetrieverSettings
) -> None:
    texts = [f"solar panel number{number} of the roof" for number in range(30)]
    await local.publish("r1", texts)
    await local.publish("r2", texts, document_id="d2")
    for path in (settings.index_dir / "lexical").rglob("*.store"):
        content = path.read_bytes()
        with path.open("r+b") as file:  # in place, as a failing disk does it
            file.write(bytes(byte ^ 0x55 for byte in content[: len(content) // 2]))
    seen = set()
    for number in range(30):
        answer = await local.search(f"number{number}", no_cache=True)
        assert answer.hits
        seen |= {each.part for each in answer.degraded}
    assert seen == {"lexical"}
    await whole_again(local, "solar")
    answer = await local.search("number7 roof", strategy=pb.STRATEGY_LEXICAL, explain=True)
    assert answer.hits[0].chunk.text == texts[7]
    assert answer.hits[0].explanation.lexical_rank == 1
    assert len(list((settings.index_dir / "lexical").glob("*.damaged-*"))) == 1


@pytest.mark.parametrize("engine", ["lexical", "dense"])
async def test_index_whose_folder_was_removed_is_filled_again_after_a_start(
    settings: RetrieverSettings, models: FakeModelServer, engine: str
) -> None:
    texts = [f"solar panel number{number} of the roof" for number in range(40)]
    async with running_service(run, settings) as address, retriever_as(address, "local") as retriever:
        await retriever.publish("r1", texts)
    shutil.rmtree(settings.index_dir / engine)
    models.is_down = True
    async with running_service(run, settings) as address, retriever_as(address, "local") as retriever:
        if engine == "dense":  # needs the model server
            degraded = {each.part: each.reason for each in (await retriever.search("number7 roof")).degraded}
            assert degraded["dense"] == "INDEX_INCOMPLETE"
        models.is_down = False
        await whole_again(retriever, "number7 roof")
        strategy = pb.STRATEGY_LEXICAL if engine == "lexical" else pb.STRATEGY_DENSE
        answer = await retriever.search("number7 roof", strategy=strategy)
        assert answer.hits[0].chunk.text == texts[7]
    assert (reranker_pb2.EMBED_KIND_PASSAGE in models.kinds) == (engine == "dense")


async def test_a_search_is_narrowed_explained_and_remembered_until_something_changes(local: Retriever) -> None:
    texts = ["solar panels on the roof", "the roof of solar panels", "wind", "heat pumps"]
    await local.publish("r1", texts, metadata={"date": "2024-03-01", "channel": "news"})
    wanted: dict[str, Any] = {
        "must_phrases": ["Solar-Panels on"],
        "filter": pb.Filter(
            date_from=Timestamp(seconds=1_709_251_200), metadata=[pb.MetadataCondition(key="channel", values=["news"])]
        ),
        "weights": pb.EngineWeights(dense=1, lexical=3),
        "diversity": 0.5,
        "min_score": 0.1,
        "window": 1,
        "explain": True,
    }
    first = await local.search("roof", **wanted)
    (hit,) = first.hits
    assert (hit.chunk.text, [chunk.text for chunk in hit.after], list(hit.before)) == (texts[0], [texts[1]], [])
    assert (first.plan.chunk_count, first.plan.top_k, first.plan.weights.lexical) == (4, 5, 0.75)
    assert "small corpus" in first.plan.reason
    assert first.cache == pb.CACHE_OUTCOME_MISS
    again = await local.search("roof", **wanted)
    assert (again.cache, list(again.hits)) == (pb.CACHE_OUTCOME_HIT, list(first.hits))
    too_late = wanted | {"filter": pb.Filter(date_to=Timestamp(seconds=1_709_251_200))}
    assert not (await local.search("roof", **too_late)).hits
    await local.stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="d1"), timeout=60)
    assert not (await local.search("roof", **wanted)).hits


async def test_what_makes_no_sense_is_refused_with_the_field(local: Retriever) -> None:
    for field, value in (("diversity", 2.0), ("window", 11), ("must_phrases", ["?"]), ("query_weights", [1.0, 1.0])):
        with pytest.raises(InvalidArgument) as caught:
            await local.search("solar", **{field: value})
        assert caught.value.metadata["field"] == field


async def test_documents_that_searches_show_are_listed(local: Retriever) -> None:
    async def listed() -> list[str]:
        parts = local.stub.ListDocuments(pb.ListDocumentsRequest(), timeout=60)
        return [document_id async for part in parts for document_id in part.document_ids]

    assert await listed() == []
    await local.publish("r1", ["solar panels on the roof"])
    assert await listed() == ["d1"]
    await local.stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="d1"), timeout=60)
    assert await listed() == []
