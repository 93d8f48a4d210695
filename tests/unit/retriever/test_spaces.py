"""Documents that different models embedded, side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from services.retriever.indexes.chunk_encoding import decode, encode
from services.retriever.indexes.similarity import Group, comparable, groups_of
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import (
    Activation,
    Chunk,
    EmbeddingSpace,
    FusionMethod,
    IndexBatch,
    Languages,
    RevisionKey,
    Strategy,
    Vectors,
)
from services.retriever.revisions.indexing import IndexHeader
from tests.unit.retriever.core_over_fakes import Core
from tests.unit.retriever.fakes import (
    DIMENSION,
    MODEL,
    SPACE,
    FakeDense,
    FakeSpaces,
    embed,
    make_batch,
    make_chunk,
    write_key,
)

OTHER = EmbeddingSpace("other-model", 16)
OLD, NEW = RevisionKey("local", "old", "r1"), RevisionKey("local", "new", "r2")


@pytest.fixture
def core() -> Core:
    core = Core()
    core.models.others = (OTHER,)
    return core


async def write(core: Core, key: RevisionKey, texts: Sequence[str], space: EmbeddingSpace) -> None:
    chunks = [make_chunk(text, ordinal, key=key, content_hash=text) for ordinal, text in enumerate(texts)]

    async def batches() -> AsyncIterator[IndexBatch]:
        yield replace(make_batch(chunks), vectors=embed(texts, space.dimension))

    await core.writer.index(IndexHeader(key, "default", space.model), batches())


async def publish(core: Core, key: RevisionKey, texts: Sequence[str], space: EmbeddingSpace, number: int = 1) -> None:
    await write(core, key, texts, space)
    await core.switch.activate(Activation(key, "default", number, len(texts)))


async def test_documents_of_both_models_are_found_by_their_vectors(core: Core) -> None:
    await publish(core, OLD, ["solar panel"], SPACE)
    await publish(core, NEW, ["solar roof"], OTHER)
    result = await core.search("solar", strategy=Strategy.DENSE)
    assert {hit.chunk.text for hit in result.hits} == {"solar panel", "solar roof"}
    assert all(hit.explanation.dense_score == pytest.approx(0.7, abs=0.3) for hit in result.hits), "cosines are shown"
    assert not result.degraded


async def test_pointer_names_the_model_and_queries_are_embedded_with_no_other(core: Core) -> None:
    await publish(core, OLD, ["solar panel"], SPACE)
    await publish(core, NEW, ["solar roof"], OTHER)
    pointers = [core.revisions.get("local", each) for each in ("old", "new")]
    assert [pointer.embedding_model for pointer in pointers if pointer] == [MODEL, OTHER.model]
    await core.switch.delete("local", "old")
    assert list(core.revisions.placement("local", ["default"], {}).collections) == [OTHER.model]
    core.models.calls = 0
    await core.search("solar")
    assert core.models.calls == 1


async def test_document_of_which_the_model_was_not_noted_is_looked_for_in_every_space(core: Core) -> None:
    await publish(core, OLD, ["solar panel"], SPACE)
    await publish(core, NEW, ["solar roof"], OTHER)
    entry = await core.store.get("local", "old")
    assert entry is not None
    assert entry.pointer is not None
    core.revisions.apply(
        replace(entry, pointer=replace(entry.pointer, embedding_model=""), version=entry.version + 100)
    )
    result = await core.search("solar", strategy=Strategy.DENSE)
    assert {hit.chunk.text for hit in result.hits} == {"solar panel", "solar roof"}


async def test_one_model_that_cannot_be_had_degrades_and_the_other_finds(core: Core) -> None:
    await publish(core, OLD, ["solar panel"], SPACE)
    await publish(core, NEW, ["solar roof"], OTHER)
    core.models.others = ()
    result = await core.search("solar", strategy=Strategy.DENSE)
    assert [hit.chunk.text for hit in result.hits] == ["solar panel"]
    assert [each.reason for each in result.degraded] == ["EMBEDDING_SPACE_MISMATCH"]


async def test_attempt_with_another_model_replaces_what_the_first_left(core: Core) -> None:
    await write(core, OLD, ["solar panel", "solar roof"], SPACE)
    await publish(core, OLD, ["solar panel", "solar roof"], OTHER)
    assert await core.spaces.count(OLD) == 2
    assert await core.spaces.model_of(OLD) == OTHER.model
    assert await core.dense.count(OLD) == 0


async def test_revision_that_another_process_wrote_into_a_space_of_its_own_is_found() -> None:
    one, other = FakeSpaces([FakeDense(space=SPACE)]), FakeSpaces([FakeDense(space=SPACE)])
    writer, reader = DenseSpaces(one), DenseSpaces(other)
    await writer.prepare(OTHER)
    batch = make_batch([make_chunk("solar panel", key=NEW)])
    await writer.write(write_key(NEW), replace(batch, vectors=embed(["solar panel"], OTHER.dimension), space=OTHER))
    other.unknown = one.indexes[1:]
    assert await reader.count(NEW) == 1
    assert await reader.model_of(NEW) == OTHER.model
    assert await reader.count(OLD) == 0


async def test_what_to_clean_up_is_looked_for_in_the_spaces_of_other_processes_too() -> None:
    one, other = FakeSpaces([FakeDense(space=SPACE)]), FakeSpaces([FakeDense(space=SPACE)])
    writer = DenseSpaces(one)
    await writer.prepare(OTHER)
    batch = make_batch([make_chunk("solar panel", key=NEW)])
    await writer.write(write_key(NEW), replace(batch, vectors=embed(["solar panel"], OTHER.dimension), space=OTHER))
    other.unknown = one.indexes[1:]
    assert await DenseSpaces(other).writes() == [write_key(NEW)]


async def test_vectors_are_given_back_to_who_asks_for_their_model(core: Core) -> None:
    await publish(core, OLD, ["solar panel"], SPACE)
    await publish(core, NEW, ["solar roof"], OTHER)
    found = {
        (document_id, model): [
            vectors.shape async for _, vectors in core.revision_reader.vectors("local", document_id, model)
        ]
        for document_id in ("old", "new")
        for model in (MODEL, OTHER.model)
    }
    assert found == {
        ("old", MODEL): [(1, SPACE.dimension)],
        ("old", OTHER.model): [],
        ("new", MODEL): [],
        ("new", OTHER.model): [(1, OTHER.dimension)],
    }


async def test_vectors_of_different_spaces_are_in_their_direct_sum() -> None:
    spaces = DenseSpaces(FakeSpaces([FakeDense(), FakeDense()]))
    for key, space in ((OLD, SPACE), (NEW, OTHER)):
        await spaces.prepare(space)
        batch = make_batch([make_chunk("solar panel", key=key)])
        await spaces.write(write_key(key), replace(batch, vectors=embed(["solar panel"], space.dimension), space=space))
    vectors = await spaces.vectors("local", ["r1-0", "r2-0"])
    assert {len(vector) for vector in vectors.values()} == {SPACE.dimension + OTHER.dimension}
    assert vectors["r1-0"] @ vectors["r2-0"] == 0
    assert np.linalg.norm(vectors["r2-0"]) == pytest.approx(1.0)


def test_passage_that_stands_out_in_its_space_comes_before_one_with_a_higher_cosine_that_does_not() -> None:
    minilm, e5 = EmbeddingSpace("all-MiniLM-L6-v2-int8", 384), EmbeddingSpace("multilingual-e5-small-q4-centred", 384)
    chunk = decode(encode(make_chunk("solar panel", key=OLD)))
    english = [Candidate(chunk, cosine) for cosine in (0.4, *([0.05] * 59))]
    other = [Candidate(chunk, cosine) for cosine in (0.45, *([0.40] * 59))]
    merged, levels = comparable({Group(e5): other, Group(minilm): english})
    assert merged[0].cosine == 0.4
    assert merged[1].cosine == 0.45
    assert merged[0].score > merged[1].score
    level = levels.of(minilm, "en")
    assert level is not None
    assert level.relevance(0.4) == merged[0].score


def test_languages_of_a_multilingual_space_are_searched_on_their_own_and_the_rare_ones_together() -> None:
    e5, minilm = EmbeddingSpace("multilingual-e5-small-q4-centred", 384), EmbeddingSpace("all-MiniLM-L6-v2-int8", 384)
    assert groups_of(e5, {"en": 9}) == [Group(e5)]
    assert groups_of(minilm, {"en": 9, "de": 9}) == [Group(minilm)]
    *each, rest = groups_of(e5, {"en": 9, "de": 8, "zh": 7, "ar": 6, "th": 5})
    assert [group.languages for group in each] == [Languages((code,)) for code in ("en", "de", "zh", "ar")]
    assert rest.languages == Languages(("en", "de", "zh", "ar"), are_left_out=True)


def test_language_of_one_document_in_a_hundred_is_not_searched_on_its_own() -> None:
    e5 = EmbeddingSpace("multilingual-e5-small-q4-centred", 384)
    assert groups_of(e5, {"en": 990, "de": 9, "la": 1}) == [Group(e5)]
    assert [group.languages for group in groups_of(e5, {"en": 90, "de": 9, "la": 1})] == [
        Languages(("en",)),
        Languages(("de",)),
        Languages(("en", "de"), are_left_out=True),
    ]


async def test_best_passage_of_each_language_is_a_candidate_however_many_there_are_of_another(core: Core) -> None:
    core.models.space = space = EmbeddingSpace("multilingual-e5-small", 32)
    english = [make_chunk(f"solar panel {n}", n, key=OLD, language="en") for n in range(40)]
    german = [make_chunk("solar dach", 0, key=NEW, language="de"), make_chunk("solar", 1, key=NEW)]
    for key, chunks in ((OLD, english), (NEW, german)):

        async def batches(chunks: Sequence[Chunk] = chunks) -> AsyncIterator[IndexBatch]:
            yield make_batch(chunks)

        await core.writer.index(IndexHeader(key, "default", space.model), batches())
        languages = tuple(dict.fromkeys(chunk.language for chunk in chunks if chunk.language))
        await core.switch.activate(Activation(key, "default", 1, len(chunks), languages))
    result = await core.search("solar panel", strategy=Strategy.DENSE, top_k=40)
    assert {"r2-0", "r2-1"} <= {hit.chunk.chunk_id for hit in result.hits}
    result = await core.search("solar panel", fusion=FusionMethod.CONVEX, top_k=40)
    assert result.hits[0].explanation.dense_score == pytest.approx(0.8, abs=0.21), "cosines are shown"


async def test_each_hit_has_the_noise_threshold_of_its_own_space(core: Core) -> None:
    """A cosine of 0.32 is noise to the multilingual model in English (below 0.377), and none to the English one (0.25)."""
    minilm, e5 = EmbeddingSpace("all-MiniLM-L6-v2", DIMENSION), EmbeddingSpace("multilingual-e5-small", OTHER.dimension)
    core.models.others = (e5,)
    core.models.space = minilm
    for key, space in ((OLD, minilm), (NEW, e5)):
        chunks = [make_chunk(f"solar panel of {key.document_id}", 0, key=key, language="en")]
        asked = embed(["geothermal"], space.dimension)
        row = 0.32 * asked + np.sqrt(1 - 0.32**2) * np.roll(asked, 1)

        async def batches(chunks: Sequence[Chunk] = chunks, row: Vectors = row) -> AsyncIterator[IndexBatch]:
            yield replace(make_batch(chunks), vectors=row.astype(np.float32))

        await core.writer.index(IndexHeader(key, "default", space.model), batches())
        await core.switch.activate(Activation(key, "default", 1, 1, ("en",)))
    result = await core.search("geothermal", explain=True)
    assert [hit.chunk.document_id for hit in result.hits] == ["old"]
    (dropped,) = result.dropped
    assert (dropped.chunk_id, dropped.stage) == ("r2-0", "gate")
    assert "0.320 is below 0.377" in dropped.reason
    alone = await core.search("geothermal", strategy=Strategy.DENSE)
    assert {hit.chunk.document_id for hit in alone.hits} == {"old", "new"}, "no words were asked to vouch for them"
