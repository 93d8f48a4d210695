"""Whatever people do, whoever is killed and however long it takes: in the end every acknowledged upload is searchable with its last
content, once, what was deleted is gone, and nothing is left over."""

import asyncio
import itertools
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from services.ingest.documents.file_users import files_of
from services.ingest.documents.models import Document, Status
from services.ingest.errors import CollectionExists, CollectionNotFound, DocumentNotFound
from services.ingest.upkeep import clearing as clearing_module
from tests.unit.ingest.faults import Process, in_process, make_killable
from tests.unit.ingest.world import ANN, TENANT, World

Place = tuple[str, str]
"""Collection and name."""

PLACES = [("default", "a.txt"), ("papers", "a.txt")]
TEXTS = ["First text.", "Second text.", "Third text."]


@dataclass(frozen=True)
class Operation:
    """One thing that happens. `killed_after` counts the calls to stores and neighbours that it still makes; None is all of them.
    `pace` is how slow it is beside others."""

    kind: str
    place: Place = PLACES[0]
    text: str = TEXTS[0]
    killed_after: int | None = None
    pace: int = 1


@dataclass(frozen=True)
class Rest:
    """Hours that pass, with the sweeps and the work of that time."""

    hours: float


Step = list[Operation] | Rest
"""What happens at once, or a time in which nothing happens."""

_KILLS = st.none() | st.none() | st.integers(1, 40)
_PACES = st.sampled_from([1, 4, 40])
_USER = st.builds(
    Operation,
    st.sampled_from(
        ["upload", "upload", "upload", "delete", "delete", "reindex", "make collection", "delete collection"]
    ),
    st.sampled_from(PLACES),
    st.sampled_from(TEXTS),
    _KILLS,
    _PACES,
)
_UPKEEP = st.builds(
    Operation, st.sampled_from(["work", "work", "sweep", "reconcile", "collect"]), killed_after=_KILLS, pace=_PACES
)
_STEPS = st.lists(_USER, min_size=1, max_size=1) | st.lists(_USER | _UPKEEP, min_size=1, max_size=4)
HISTORIES = st.lists(_STEPS | st.builds(Rest, st.sampled_from([0.02, 1.5])), min_size=5, max_size=16)


@dataclass
class Expectation:
    """What may be at each place: texts, and None for nothing. A killed operation may have happened or not; of those that ran at
    once, any may have been the last."""

    possible: dict[Place, set[str | None]] = field(default_factory=lambda: defaultdict(lambda: {None}))

    def note(self, done: list[Operation], killed: list[Operation]) -> None:
        for place in PLACES:
            certain = {effect for each in done for effect in _effects(each, place)}
            uncertain = {effect for each in killed for effect in _effects(each, place)}
            self.possible[place] = (certain or self.possible[place]) | uncertain


def _effects(operation: Operation, place: Place) -> set[str | None]:
    if operation.kind == "delete collection":
        return {None} if place[0] == "papers" else set()
    if operation.place != place:
        return set()
    return {"upload": {operation.text}, "delete": {None}}.get(operation.kind, set())  # type: ignore[return-value]


class History:
    """A world in which operations are done."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.world = World(folder)
        self.expected = Expectation()
        self.kills = 0
        make_killable(self.world, random.Random(seed))

    async def run(self, steps: Sequence[Step]) -> None:
        await self.world.catalog.create(ANN, "papers", "Papers")
        for step in steps:
            if isinstance(step, Rest):
                self.world.clock.now += timedelta(hours=step.hours)
                await self._all_upkeep("sweep", "work")
            else:
                await self._at_once(step)
            self._nothing_is_doubled()
        for _ in range(5):
            self.world.clock.now += timedelta(hours=1.5)
            await self._all_upkeep("sweep", "work", "reconcile", "collect")

    async def _all_upkeep(self, *kinds: str) -> None:
        for kind in kinds:
            await self._at_once([Operation(kind)])

    async def _at_once(self, operations: list[Operation]) -> None:
        outcomes = await asyncio.gather(*(self._attempt(each) for each in operations))
        done = [each for each, outcome in zip(operations, outcomes, strict=True) if outcome == "done"]
        killed = [each for each, outcome in zip(operations, outcomes, strict=True) if outcome == "killed"]
        self.kills += len(killed)
        self.expected.note(done, killed)

    async def _attempt(self, operation: Operation) -> str:
        work = asyncio.create_task(in_process(self._do(operation), Process(operation.killed_after, operation.pace)))
        try:
            return "done" if await work else "killed"
        except (CollectionExists, CollectionNotFound, DocumentNotFound):
            return "refused"

    async def _do(self, operation: Operation) -> None:
        world = self.world
        collection_id, name = operation.place
        match operation.kind:
            case "upload":
                await world.upload(operation.text, name, collection_id=collection_id)
            case "delete":
                await world.deletion.delete(TENANT, self._document_at(operation.place))
            case "reindex":
                await world.reviser.reindex(TENANT, self._document_at(operation.place))
            case "make collection":
                await world.catalog.create(ANN, "papers", "Papers")
            case "delete collection":
                await world.catalog.delete(ANN, "papers")
                await world.clearing.finish(TENANT, "papers")
            case _:
                await self._keep_up(operation.kind)

    async def _keep_up(self, kind: str) -> None:
        world = self.world
        match kind:
            case "work":
                for job in list(world.jobs.jobs.values()):
                    if await world.attempts.run(job, 1) is None:
                        world.jobs.jobs.pop(job.revision_id, None)
            case "sweep":
                await world.sweeper.sweep()
            case "reconcile":
                await world.reconciler.reconcile()
            case "collect":
                await world.collector.collect()

    def _document_at(self, place: Place) -> str:
        for document in self._living():
            if (document.collection_id, document.name) == place:
                return document.document_id
        raise DocumentNotFound("there is none")

    def _living(self) -> list[Document]:
        found = (stored.document for stored in self.world.store.records.values())
        return [document for document in found if document.status is not Status.DELETED]

    def _nothing_is_doubled(self) -> None:
        places = [(document.collection_id, document.name) for document in self._living()]
        assert len(places) == len(set(places))

    def check(self) -> None:
        """What must be true when everything has come to rest."""
        world = self.world
        self._nothing_is_doubled()
        living = self._living()
        assert {document.status for document in living} <= {Status.READY}
        searchable = {
            (document.collection_id, document.name): "".join(world.index.searchable(document.document_id))
            for document in living
        }
        for place in PLACES:
            assert searchable.get(place) in self.expected.possible[place], place
        # Nothing is left over: tombstones, names, files, pointers, revisions, jobs, collections.
        assert {stored.document.document_id for stored in world.store.records.values()} == set(world.index.active)
        assert {claim.document_id for claim in world.store.names.values()} == set(world.index.active)
        assert set(world.files.files) == {(TENANT, sha256) for document in living for sha256 in files_of(document)}
        assert set(world.index.revisions) == {
            (document_id, revision_id) for document_id, (_, revision_id) in world.index.active.items()
        }
        collections = {"default"} | {collection_id for _, collection_id in world.collections.collections}
        assert {document.collection_id for document in living} <= collections
        assert not world.jobs.jobs
        assert not world.letters.letters
        assert not any(collection.deleting for collection in world.collections.collections.values())


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(clearing_module, "PATIENCE_S", 0.0)
    with capture_logs():
        yield


def live_through(steps: Sequence[Step], seed: int = 0) -> int:
    """Runs a history in a world of its own, and checks how it ends. Returns how many operations were killed."""
    with tempfile.TemporaryDirectory() as folder:

        async def run() -> int:
            history = History(Path(folder), seed)
            await history.run(steps)
            history.check()
            return history.kills

        return asyncio.run(run())


@given(HISTORIES, st.integers(0, 2**32))
def test_any_history_ends_with_every_document_once_and_nothing_left_over(steps: list[Step], seed: int) -> None:
    live_through(steps, seed)


UPLOAD, WORK, DELETE, SWEEP = Operation("upload"), Operation("work"), Operation("delete"), Operation("sweep")
PAPERS = Operation("upload", PLACES[1])
MAKE, DROP = Operation("make collection"), Operation("delete collection")
AGAIN = Operation("upload", text=TEXTS[1])


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([[UPLOAD], Rest(0.02), [UPLOAD]], id="upload"),
        pytest.param([[AGAIN], [WORK], [UPLOAD], Rest(0.02), [AGAIN]], id="replace"),
        pytest.param([[AGAIN], [UPLOAD], [WORK], Rest(0.02)], id="work"),
        pytest.param([[UPLOAD], [WORK], [DELETE], Rest(1.5), [UPLOAD]], id="delete and upload again"),
        pytest.param([[UPLOAD], [DELETE], Rest(0.0), [SWEEP], [UPLOAD]], id="sweep"),
        pytest.param([[PAPERS], [WORK], [DROP], Rest(1.5), [MAKE], [PAPERS], [WORK]], id="collection made anew"),
        pytest.param(
            [[replace(PAPERS, pace=9), replace(DROP, pace=9)], Rest(1.5), [MAKE], [PAPERS]],
            id="collection deleted meanwhile",
        ),
        pytest.param([[replace(PAPERS, pace=9), replace(DROP, pace=9)], Rest(1.5)], id="collection deleted for good"),
        pytest.param([[UPLOAD, AGAIN], [WORK, DELETE], Rest(1.5), [UPLOAD, AGAIN]], id="at once"),
    ],
)
def test_kill_at_any_call_of_any_operation_loses_and_leaves_nothing(steps: list[Step]) -> None:
    """Every operation in turn is the one that is killed, at each of its calls in turn."""
    for number, step in enumerate(steps):
        for place in range(len(step) if isinstance(step, list) else 0):
            for calls in itertools.count(1):
                killed = _killed(step, place, calls)
                if not live_through([*steps[:number], killed, *steps[number + 1 :]], seed=calls):
                    assert calls > 2
                    break


def _killed(step: Step, place: int, killed_after: int) -> list[Operation]:
    assert isinstance(step, list)
    return [replace(each, killed_after=killed_after) if n == place else each for n, each in enumerate(step)]
