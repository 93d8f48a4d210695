"""A collection's embedding model changed while it is searched, written and deleted from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import pytest

from kit.errors import GroundworkError, Unavailable
from services.retriever.errors import IndexUnavailable, InvalidRequest, PointerConflict
from services.retriever.model_change.collection_embedding import CollectionEmbedding, Stage
from services.retriever.model_change.embedding_builder import EmbeddingBuilder
from services.retriever.model_change.embedding_changes import EmbeddingChanges, EmbeddingStatus
from services.retriever.model_change.evaluation import Comparison, Evaluation, Quality, Question
from services.retriever.model_change.evaluator import Evaluator
from services.retriever.models import Activation, EmbeddingSpace, IndexBatch, RevisionKey, SearchScope, Strategy
from services.retriever.ports import EmbeddingEntry
from services.retriever.revisions.indexing import IndexHeader
from tests.unit.retriever.core_over_fakes import Core, texts
from tests.unit.retriever.fakes import MODEL, SPACE, FakeDense, embed, make_batch, make_chunk

OTHER = EmbeddingSpace("other-model", 16)
KEYS = [RevisionKey("local", f"d{n}", f"r{n}") for n in range(3)]
SENTENCE = "The solar panel of house number {} stands on its own southern roof."


class FakeStore:
    """EmbeddingStore in a dict."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], EmbeddingEntry] = {}
        self.version = 0

    async def get(self, tenant_id: str, collection_id: str) -> EmbeddingEntry | None:
        return self.entries.get((tenant_id, collection_id))

    async def put(
        self, tenant_id: str, collection_id: str, record: CollectionEmbedding, expected_version: int | None
    ) -> EmbeddingEntry:
        stored = self.entries.get((tenant_id, collection_id))
        if (stored.version if stored else None) != expected_version:
            raise PointerConflict(collection_id)
        self.version += 1
        entry = EmbeddingEntry(tenant_id, collection_id, record, self.version)
        self.entries[tenant_id, collection_id] = entry
        return entry

    async def remove(self, tenant_id: str, collection_id: str) -> None:
        del self.entries[tenant_id, collection_id]


class Held:
    """A lease that is never lost, unless `is_lost`."""

    is_lost = False

    def check(self) -> None:
        if self.is_lost:
            raise Unavailable("the lease is lost")


@dataclass
class World:
    """A core with what changes models in it."""

    core: Core
    store: FakeStore
    changes: EmbeddingChanges
    builder: EmbeddingBuilder
    lease: Held

    async def round(self) -> bool:
        return await self.builder.round(self.lease)

    async def until(self, stage: Stage) -> EmbeddingStatus:
        for _ in range(20):
            assert await self.round()
            status = await self.status()
            if status.record.stage is stage:
                return status
        raise AssertionError(status.record)

    async def status(self) -> EmbeddingStatus:
        return await self.changes.status("local", "default")

    async def change(self, model: str = OTHER.model, questions: Sequence[Question] = ()) -> EmbeddingStatus:
        return await self.changes.change("local", "default", model, questions, 0.02)

    def in_space(self, space: EmbeddingSpace) -> set[str]:
        """Documents that have rows there."""
        index = next((each for each in self.core.spaces._store.indexes if each.space == space), None)
        assert index is None or isinstance(index, FakeDense)
        return {row.stored.document_id for row in index.rows} if index else set()

    async def found(self, query_text: str = "solar panel") -> set[str]:
        result = await self.core.search(query_text, strategy=Strategy.DENSE, top_k=50)
        assert not result.degraded
        assert len(texts(result)) == len({hit.chunk.chunk_id for hit in result.hits})
        return {hit.chunk.document_id for hit in result.hits}


@pytest.fixture
async def world() -> World:
    core = Core()
    core.models.others = (OTHER,)
    store = FakeStore()
    changes = EmbeddingChanges(
        store, core.collection_models, core.revisions, core.models, core.rights, clock=core.clock
    )
    builder = EmbeddingBuilder(
        store,
        core.collection_models,
        core.revisions,
        core.spaces,
        core.copier,
        Evaluator(core.make_searcher(), core.lexical, core.revisions),
        core.switch.place,
        core.writing,
        core.rights,
        clock=core.clock,
    )
    world = World(core, store, changes, builder, Held())
    for n, key in enumerate(KEYS):
        await publish(world, key, [SENTENCE.format(n)])
    return world


async def publish(world: World, key: RevisionKey, lines: Sequence[str], number: int = 1, **fields: object) -> None:
    chunks = [
        make_chunk(line, ordinal, key=key, **{"embedded_prefix": "", "content_hash": line} | fields)
        for ordinal, line in enumerate(lines)
    ]
    await world.core.activate(key, number, await world.core.index_chunks(key, chunks))


async def test_whole_change_from_start_to_drop(world: World) -> None:
    status = await world.status()
    assert (status.record.model, status.is_recorded, status.record.stage) == (MODEL, False, Stage.SETTLED)
    assert status.available == (MODEL, OTHER.model)
    status = await world.change()
    assert (status.record.other, status.record.stage, status.in_other.documents) == (OTHER.model, Stage.BUILDING, 0)
    status = await world.until(Stage.READY)
    assert (status.whole.documents, status.in_model.chunks, status.in_other.chunks) == (3, 3, 3)
    assert set(status.searched) == {MODEL}
    evaluation = status.record.evaluation
    assert evaluation is not None
    assert (evaluation.question_count, evaluation.are_made) == (3, True)
    assert evaluation.vectors.before.ndcg_at_10 > 0.5
    status = await world.changes.swap("local", "default", force=False)
    assert (status.record.model, status.record.other, set(status.searched)) == (OTHER.model, MODEL, {OTHER.model})
    world.core.models.calls = 0
    assert await world.found() == {"d0", "d1", "d2"}
    assert world.core.models.calls == 1
    status = await world.changes.roll_back("local", "default")
    assert (status.record.model, status.record.stage, set(status.searched)) == (MODEL, Stage.READY, {MODEL})
    await world.changes.swap("local", "default", force=False)
    await world.changes.drop("local", "default")
    status = await world.until(Stage.SETTLED)
    assert (status.record.model, status.record.other, status.is_recorded) == (OTHER.model, "", True)
    assert (world.in_space(SPACE), world.in_space(OTHER)) == (set(), {"d0", "d1", "d2"})
    pointer = world.core.revisions.get("local", "d0")
    assert pointer is not None
    assert pointer.models == (OTHER.model,)
    assert await world.found() == {"d0", "d1", "d2"}


async def test_nothing_is_found_twice_or_left_out_at_any_stage(world: World) -> None:
    await world.change()
    for stage in (Stage.BUILDING, Stage.EVALUATING, Stage.READY):
        assert await world.found() == {"d0", "d1", "d2"}, stage
        await world.round()
    hybrid = await world.core.search("solar panel", top_k=50, diversity=0.5)
    assert len(hybrid.hits) == 3
    assert not hybrid.degraded


async def test_documents_that_come_go_and_change_while_it_is_built_are_as_they_should_be(world: World) -> None:
    await world.change()
    await world.round()
    await publish(world, RevisionKey("local", "late", "r9"), ["solar panel that came late"])
    await publish(world, replace(KEYS[1], revision_id="r1b"), ["solar panel replaced"], 2)
    await world.core.switch.delete("local", "d2")
    await world.until(Stage.READY)
    assert world.in_space(OTHER) >= {"d0", "d1", "late"}
    await world.changes.swap("local", "default", force=True)
    assert await world.found() == {"d0", "d1", "late"}
    await publish(world, RevisionKey("local", "later", "r10"), ["solar panel after the swap"])
    assert await world.found() == {"d0", "d1", "late", "later"}, "searched where it lies until it is copied"
    await world.round()
    assert "later" in world.in_space(OTHER)
    await world.changes.roll_back("local", "default")
    assert await world.found() == {"d0", "d1", "late", "later"}


async def test_deletion_while_a_document_is_copied_leaves_nothing_of_it(world: World) -> None:
    place = world.core.switch.place

    async def deleted_first(*args: object) -> object:
        await world.core.switch.delete("local", "d0")
        return await place(*args)  # type: ignore[arg-type]

    world.builder._place = deleted_first  # type: ignore[assignment]
    await world.change()
    await world.round()
    assert "d0" not in world.in_space(OTHER)


async def test_what_was_copied_before_a_kill_is_not_embedded_again(world: World) -> None:
    async def killed(*_: object) -> None:
        raise IndexUnavailable("killed")

    place, world.builder._place = world.builder._place, killed  # type: ignore[assignment]
    await world.change()
    assert not await world.round()
    assert (await world.status()).record.problem == "killed"
    assert len(world.in_space(OTHER)) == 3
    world.builder._place = place
    world.core.models.calls = 0
    await world.round()
    assert world.core.models.calls == 0
    status = await world.until(Stage.READY)
    assert status.record.problem == ""


async def test_worse_model_is_not_swapped_in_unless_forced(world: World) -> None:
    await world.change(questions=[Question("house number", ("d1",))])
    status = await world.until(Stage.READY)
    assert status.record.evaluation is not None
    assert (status.record.evaluation.question_count, status.record.evaluation.are_made) == (1, False)
    worse = replace(
        status.record.evaluation,
        vectors=Comparison(Quality(0.9, 0.9), Quality(0.5, 0.5)),
        both=Comparison(Quality(), Quality()),
    )
    entry = world.store.entries["local", "default"]
    world.core.collection_models.apply(
        await world.store.put("local", "default", replace(status.record, evaluation=worse), entry.version)
    )
    with pytest.raises(GroundworkError, match=r"vectors alone 0\.500 against 0\.900") as refused:
        await world.changes.swap("local", "default", force=False)
    assert refused.value.reason == "EMBEDDING_WORSE"
    assert (await world.changes.swap("local", "default", force=True)).record.model == OTHER.model


async def test_given_questions_are_asked_again_on_command(world: World) -> None:
    await world.change()
    await world.until(Stage.READY)
    status = await world.changes.evaluate("local", "default", [Question("house number 1", ("d1",))], 0.5)
    assert (status.record.stage, status.record.margin, status.record.evaluation) == (Stage.EVALUATING, 0.5, None)
    status = await world.until(Stage.READY)
    assert status.record.evaluation is not None
    assert not status.record.evaluation.are_made


async def test_comparison_waits_while_a_part_of_the_search_is_down(world: World) -> None:
    await world.change(questions=[Question("house number", ("d1",))])
    await world.round()
    await world.round()
    assert (await world.status()).record.stage is Stage.EVALUATING
    world.core.lexical.error = IndexUnavailable("down")
    assert not await world.round()
    assert "cannot be compared now" in (await world.status()).record.problem
    world.core.lexical.error = None
    assert (await world.until(Stage.READY)).record.problem == ""


async def test_document_of_which_the_embedded_text_is_not_known_stays_where_it_is(world: World) -> None:
    await publish(world, RevisionKey("local", "old", "r5"), ["solar panel of an earlier version"], embedded_prefix=None)
    await world.change()
    status = await world.until(Stage.READY)
    assert (status.whole.documents, status.in_other.documents) == (4, 3)
    await world.changes.swap("local", "default", force=True)
    assert await world.found() == {"d0", "d1", "d2", "old"}
    await world.changes.drop("local", "default")
    await world.until(Stage.SETTLED)
    assert await world.found() == {"d0", "d1", "d2", "old"}
    assert world.in_space(SPACE) == {"old"}


async def test_change_that_is_given_up_leaves_nothing(world: World) -> None:
    await world.change()
    await world.round()
    await world.changes.drop("local", "default")
    status = await world.until(Stage.SETTLED)
    assert (status.record.model, world.in_space(OTHER)) == (MODEL, set())


async def test_remains_of_a_copy_that_no_pointer_names_go_with_the_drop(world: World) -> None:
    async def killed(*_: object) -> None:
        raise IndexUnavailable("killed")

    place, world.builder._place = world.builder._place, killed  # type: ignore[assignment]
    await world.change()
    await world.round()
    world.builder._place = place
    await world.changes.drop("local", "default")
    await world.until(Stage.SETTLED)
    assert world.in_space(OTHER) == set()
    assert world.in_space(SPACE) == {"d0", "d1", "d2"}


async def test_revision_written_again_is_copied_again(world: World) -> None:
    await world.change()
    await world.until(Stage.READY)
    await publish(world, KEYS[0], [SENTENCE.format(0)])
    pointer = world.core.revisions.get("local", "d0")
    assert pointer is not None
    assert pointer.copies == ()
    assert "d0" not in world.in_space(OTHER)
    await world.round()
    assert "d0" in world.in_space(OTHER)


async def test_vectors_that_ingestion_reuses_are_those_of_the_model_it_asks_for(world: World) -> None:
    await world.change()
    await world.until(Stage.READY)
    for space in (SPACE, OTHER):
        (part,) = [part async for part in world.core.revision_reader.vectors("local", "d0", space.model)]
        assert part[1].shape == (1, space.dimension)


async def test_lost_copies_are_missed_and_made_again(world: World) -> None:
    await world.change()
    await world.until(Stage.READY)
    index = next(each for each in world.core.spaces._store.indexes if each.space == OTHER)
    assert isinstance(index, FakeDense)
    index.rows = []
    await world.core.reconciler.reconcile()
    await world.core.refiller.fill()
    assert world.in_space(OTHER) == world.in_space(SPACE) == {"d0", "d1", "d2"}


async def test_collections_with_and_without_the_model_are_searched_together(world: World) -> None:
    key = RevisionKey("local", "elsewhere", "r7")

    async def batches() -> AsyncIterator[IndexBatch]:
        chunk = make_chunk("solar panel elsewhere", key=key, collection_id="other", embedded_prefix="")
        yield replace(make_batch([chunk]), vectors=embed(["solar panel elsewhere"], OTHER.dimension))

    await world.core.writer.index(IndexHeader(key, "other", OTHER.model), batches())
    await world.core.switch.activate(Activation(key, "other", 1, 1))
    await world.change()
    await world.until(Stage.READY)
    scope = SearchScope("local", ("default", "other"))
    result = await world.core.search("solar panel", scope=scope, strategy=Strategy.DENSE, top_k=50)
    assert sorted(hit.chunk.document_id for hit in result.hits) == ["d0", "d1", "d2", "elsewhere"]


async def test_lost_lease_ends_the_round(world: World) -> None:
    await world.change()
    world.lease.is_lost = True
    with pytest.raises(Unavailable, match="lease"):
        await world.round()
    assert world.in_space(OTHER) == set()


async def test_record_goes_with_its_collection(world: World) -> None:
    await world.change()
    await world.until(Stage.READY)
    await world.changes.drop("local", "default")
    await world.until(Stage.SETTLED)
    for key in KEYS:
        await world.core.switch.delete("local", key.document_id)
    await world.round()
    assert world.store.entries, "empty, and still there"
    world.core.rights.gone.add(("local", "default"))
    await world.round()
    assert not world.store.entries


async def test_remembered_answers_are_void_after_a_swap(world: World) -> None:
    world.core.options = replace(world.core.options, cache_bytes=1_000_000)
    await world.change()
    await world.until(Stage.READY)
    await world.found()
    world.core.models.calls = 0
    await world.found()
    assert world.core.models.calls == 0, "remembered"
    await world.changes.swap("local", "default", force=True)
    await world.found()
    assert world.core.models.calls == 1


@dataclass(frozen=True)
class Refusal:
    """A command at a stage, and how it is refused."""

    stage: Stage
    command: str
    reason: str


REFUSALS = [
    Refusal(Stage.SETTLED, "unchanged", "EMBEDDING_UNCHANGED"),
    Refusal(Stage.SETTLED, "unknown", "EMBEDDING_MODEL_UNKNOWN"),
    Refusal(Stage.SETTLED, "swap", "EMBEDDING_NOT_READY"),
    Refusal(Stage.SETTLED, "evaluate", "EMBEDDING_NOT_READY"),
    Refusal(Stage.SETTLED, "roll back", "NOTHING_TO_ROLL_BACK"),
    Refusal(Stage.SETTLED, "drop", "NOTHING_TO_DROP"),
    Refusal(Stage.BUILDING, "change", "EMBEDDING_CHANGE_UNDER_WAY"),
    Refusal(Stage.BUILDING, "swap", "EMBEDDING_NOT_READY"),
    Refusal(Stage.EVALUATING, "swap", "EMBEDDING_NOT_READY"),
    Refusal(Stage.READY, "change", "EMBEDDING_CHANGE_UNDER_WAY"),
    Refusal(Stage.READY, "roll back", "NOTHING_TO_ROLL_BACK"),
    Refusal(Stage.SWAPPED, "change", "EMBEDDING_CHANGE_UNDER_WAY"),
    Refusal(Stage.SWAPPED, "swap", "EMBEDDING_NOT_READY"),
    Refusal(Stage.SWAPPED, "evaluate", "EMBEDDING_NOT_READY"),
    Refusal(Stage.DROPPING, "change", "EMBEDDING_CHANGE_UNDER_WAY"),
    Refusal(Stage.DROPPING, "swap", "EMBEDDING_NOT_READY"),
    Refusal(Stage.DROPPING, "roll back", "NOTHING_TO_ROLL_BACK"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case.command} when {case.stage.value}")
async def test_commands_that_do_not_fit_are_refused_and_change_nothing(world: World, case: Refusal) -> None:
    if case.stage is not Stage.SETTLED:
        other = CollectionEmbedding(MODEL, OTHER.model, case.stage)
        world.core.collection_models.apply(await world.store.put("local", "default", other, None))
    before = dict(world.store.entries)
    commands = {
        "unchanged": lambda: world.change(MODEL),
        "unknown": lambda: world.change("nothing-like-it"),
        "change": world.change,
        "swap": lambda: world.changes.swap("local", "default", force=True),
        "evaluate": lambda: world.changes.evaluate("local", "default", (), 0.02),
        "roll back": lambda: world.changes.roll_back("local", "default"),
        "drop": lambda: world.changes.drop("local", "default"),
    }
    with pytest.raises(GroundworkError) as refused:
        await commands[case.command]()
    assert refused.value.reason == case.reason
    assert world.store.entries == before


async def test_collection_of_somebody_else_is_not_there(world: World) -> None:
    world.core.rights.closed = {"default"}
    for command in (world.status, world.change, lambda: world.changes.drop("local", "default")):
        with pytest.raises(GroundworkError) as refused:
            await command()
        assert refused.value.reason == "COLLECTION_NOT_FOUND"


@pytest.mark.parametrize(
    "questions",
    [[Question(" ", ("d1",))], [Question("x" * 501, ("d1",))], [Question("why")], [Question("w", ("d1",))] * 201],
)
async def test_questions_that_break_a_rule_are_refused(world: World, questions: list[Question]) -> None:
    with pytest.raises(InvalidRequest):
        await world.change(questions=questions)


def test_evaluation_tells_where_the_new_model_is_worse() -> None:
    same, worse = Comparison(Quality(0.8, 0.8), Quality(0.8, 0.8)), Comparison(Quality(0.8, 0.8), Quality(0.7, 0.8))
    evaluation = Evaluation("a", "b", 10, False, same, worse, 0)
    assert evaluation.worse(0.2) == ()
    assert evaluation.worse(0.05) == ("nDCG@10 by vectors and words 0.700 against 0.800",)
