"""What tools rely on: the same of their fakes and of the real services behind their adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2 as pb

from kit.testing.harness import free_port, open_test_channel, running_service, running_servicer
from kit.testing.nats import nats_server
from services.reranker.app import run as run_models
from services.reranker.settings import RerankerSettings
from services.retriever.app import run
from services.retriever.settings import RetrieverSettings
from services.tools.adapters.services.reranker import RerankerModels
from services.tools.adapters.services.retriever import RetrieverPassages
from services.tools.errors import ToolError
from services.tools.passages.retrieval import SearchQuery, Strategy
from services.tools.ports import ModelServer, Retriever
from tests.service.retriever.conftest import FakeModelServer, retriever_as
from tests.unit.tools.search_fakes import FakeModels, FakeRetriever

TEXTS = ["The notice period is six weeks.", "Probation ends after six months.", "Leave is 28 days."]
PATIENCE_S = 60.0
"""A busy machine is no service that is away."""
QUERY = SearchQuery(["notice period"], ["default"], 1)


@dataclass
class _Held:
    """A retriever with one document of three passages, and a way to delete it."""

    retriever: Retriever
    ids: Sequence[str]
    delete: Callable[[], Awaitable[object]]


@pytest.fixture(params=["fake", "service"])
async def held(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[_Held]:
    metadata = {"author": "Ann", "date": "2024-05-01"}
    if request.param == "fake":
        fake = FakeRetriever()
        ids = fake.add("d1", *TEXTS, metadata=metadata, page=2, heading_path=["House"])

        async def forget() -> None:
            del fake.documents["d1"]

        yield _Held(fake, ids, forget)
        return

    async with _running(tmp_path) as address, retriever_as(address, "local") as running:
        await running.publish("r1", TEXTS, metadata=metadata, page=2, heading_path=["House"])

        async def delete() -> None:
            await running.stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="d1"), timeout=60)

        async with open_test_channel(address) as channel:
            yield _Held(
                RetrieverPassages(channel, timeout_s=PATIENCE_S), [f"r1-{ordinal}" for ordinal in range(3)], delete
            )


@asynccontextmanager
async def _running(data_dir: Path) -> AsyncIterator[str]:
    """The address of a retriever with engines of its own."""
    async with nats_server() as nats, _running_models(FakeModelServer()) as models_address:
        settings = RetrieverSettings(
            grpc_address=f"127.0.0.1:{free_port()}",
            nats_url=nats.url,
            reranker_address=models_address,
            data_dir=data_dir,
        )
        async with running_service(run, settings) as address:
            yield address


def _running_models(models: FakeModelServer) -> AbstractAsyncContextManager[str]:
    return running_servicer(reranker_pb2_grpc.add_RerankerServiceServicer_to_server, models)


async def test_a_search_finds_the_passage_with_all_that_is_known_of_it(held: _Held) -> None:
    found = await held.retriever.search(QUERY)
    [passage] = found.passages
    assert (passage.chunk_id, passage.text, passage.ordinal) == (held.ids[0], TEXTS[0], 0)
    assert (passage.document_id, passage.document_name, passage.collection_id) == ("d1", "d1.md", "default")
    assert (passage.page, passage.heading_path, passage.metadata["author"]) == (2, ("House",), "Ann")
    assert passage.score > 0
    assert passage.hit.chunk.text == TEXTS[0]
    assert passage.hit.score == pytest.approx(passage.score)
    assert (found.strategy, found.degraded) == ("hybrid", ())


async def test_every_condition_must_hold(held: _Held) -> None:
    first_of_may, next_day = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 2, tzinfo=UTC)
    conditions: list[tuple[dict[str, Any], bool]] = [
        ({"collection_ids": ["attic"]}, False),
        ({"document_ids": ["d1"]}, True),
        ({"document_ids": ["d2"]}, False),
        ({"metadata": {"author": ["Bo", "Ann"]}}, True),
        ({"metadata": {"author": ["Bo"]}}, False),
        ({"date_from": first_of_may, "date_to": next_day}, True),
        ({"date_from": next_day}, False),
        ({"date_to": first_of_may}, False),
        ({"must_phrases": ["six weeks"]}, True),
        ({"must_phrases": ["ten weeks"]}, False),
        ({"strategy": Strategy.LEXICAL}, True),
    ]
    for given, is_found in conditions:
        found = await held.retriever.search(replace(QUERY, **given))
        ids = [passage.chunk_id for passage in found.passages]
        assert ids == ([held.ids[0]] if is_found else []), given


async def test_chunks_come_in_the_order_of_their_ids_with_neighbours_and_without_what_there_is_not(held: _Held) -> None:
    windows = await held.retriever.fetch([held.ids[2], "gone", held.ids[0]], 1)
    assert [window.passage.chunk_id for window in windows] == [held.ids[2], held.ids[0]]
    assert [passage.text for passage in windows[0].before] == [TEXTS[1]]
    assert [passage.text for passage in windows[1].after] == [TEXTS[1]]
    assert (list(windows[0].after), list(windows[1].before)) == ([], [])
    assert windows[0].before[0].hit.chunk.text == TEXTS[1]


async def test_a_section_follows_the_document_to_its_end(held: _Held) -> None:
    for first, count, texts in ((0, 2, TEXTS[:2]), (1, 200, TEXTS[1:]), (3, 1, [])):
        section = await held.retriever.section("d1", first, count)
        assert ([passage.text for passage in section.passages], section.document_chunk_count) == (texts, 3)


async def test_nothing_of_a_deleted_document_is_left(held: _Held) -> None:
    await held.delete()
    assert list((await held.retriever.search(QUERY)).passages) == []
    assert list(await held.retriever.fetch(held.ids)) == []
    section = await held.retriever.section("d1", 0, 3)
    assert (list(section.passages), section.document_chunk_count) == ([], 0)


@pytest.fixture(params=["fake", "service"])
async def model_server(request: pytest.FixtureRequest, models_dir: Path) -> AsyncIterator[ModelServer]:
    if request.param == "fake":
        yield FakeModels()
        return
    settings = RerankerSettings(grpc_address=f"127.0.0.1:{free_port()}", models_dir=models_dir, reranker_store_bytes=0)
    async with running_service(run_models, settings) as address, open_test_channel(address) as channel:
        yield RerankerModels(channel, timeout_s=PATIENCE_S)


async def test_every_text_has_a_score_and_a_vector_of_length_one(model_server: ModelServer) -> None:
    scores = await model_server.rerank("notice period", [*TEXTS[::-1]])
    assert max(range(3), key=scores.__getitem__) == 2
    assert list(await model_server.rerank("notice period", TEXTS, ["", "", ""])) == pytest.approx(
        [*scores][::-1], abs=1e-3
    )
    vectors = [*await model_server.embed_passages(TEXTS), (await model_server.embed_query("notice period")).vector]
    assert {vector.shape for vector in vectors} == {vectors[0].shape}
    assert np.linalg.norm(np.stack(vectors), axis=1) == pytest.approx(1.0, abs=1e-5)


async def test_a_query_and_a_passage_are_embedded_as_what_they_are() -> None:
    models = FakeModelServer()
    async with _running_models(models) as address, open_test_channel(address) as channel:
        server = RerankerModels(channel, timeout_s=PATIENCE_S)
        await server.embed_query("notice")
        await server.embed_passages(TEXTS)
    assert models.kinds == [reranker_pb2.EMBED_KIND_QUERY, reranker_pb2.EMBED_KIND_PASSAGE]


async def test_services_that_are_away_are_named_by_reason() -> None:
    async with open_test_channel(f"127.0.0.1:{free_port()}", patience_s=0.1) as channel:
        retriever, server = RetrieverPassages(channel), RerankerModels(channel)
        calls = {
            "SEARCH_UNAVAILABLE": [
                lambda: retriever.search(QUERY),
                lambda: retriever.fetch(["c1"]),
                lambda: retriever.section("d1", 0, 1),
            ],
            "MODEL_SERVER_UNAVAILABLE": [
                lambda: server.rerank("a", ["b"]),
                lambda: server.embed_query("a"),
                lambda: server.embed_passages(["a"]),
            ],
        }
        for reason, those in calls.items():
            for call in those:
                with pytest.raises(ToolError, match="does not answer now") as caught:
                    await call()
                assert caught.value.reason == reason
