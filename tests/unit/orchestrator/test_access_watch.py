"""A run whose caller may not read its documents any more ends, wherever it is; others go on."""

import asyncio

from kit.errors import Unavailable
from kit.stores.forgetting import Source
from services.orchestrator.log.events import Done, Evidence, RunError, RunStatus
from services.orchestrator.models import Dependent
from services.orchestrator.runs.access import AccessWatch
from services.orchestrator.runs.execution import Execution
from tests.unit.orchestrator.fakes import FakeLibrary, FakeSources
from tests.unit.orchestrator.test_execution import KEY, Desk, ends, writes_and_hangs

PASSAGE = Evidence(1, "c1", "d1", "ferry.txt", "The ferry was built in 1911.")


class Watched(Desk):
    """One run that reads a document, and who looks after it."""

    def __init__(self) -> None:
        super().__init__()
        self.library = FakeLibrary({"d1": [PASSAGE]})
        self.sources = FakeSources()
        self.under_way: list[Execution] = []
        self.watch = AccessWatch(lambda: self.under_way, self.sources, self.library, every_s=0.0)

    async def begin(self) -> Execution:
        """A run that has written of the document and is not done."""
        made = await self.execution(writes_and_hangs)
        self.under_way.append(made)
        await self.sources.depend(Dependent(KEY), [Source.document("d1")])
        while not made.journal.progress.shown:
            await asyncio.sleep(0)
        return made


async def test_run_ends_once_its_caller_may_not_read_what_it_reads() -> None:
    desk = Watched()
    made = await desk.begin()
    await desk.watch.look()
    assert made.task is not None
    assert not made.task.cancelling()
    desk.library = desk.watch._library = FakeLibrary({})
    await desk.watch.look()
    await made.task
    payloads = [event.payload for event in desk.log.events[KEY]]
    (error,) = (each for each in payloads if isinstance(each, RunError))
    assert (error.code, error.reason, error.retryable) == ("PERMISSION_DENIED", "ACCESS_WITHDRAWN", False)
    assert payloads[-1] == Done(RunStatus.FAILED)
    assert desk.memory.remembered == [("t1", KEY.run_id, "q", "The ferry was built")]


async def test_run_goes_on_while_it_cannot_be_told_what_may_be_read() -> None:
    class Silent(FakeLibrary):
        async def readable(self, document_ids: object) -> set[str]:
            raise Unavailable("ingestion is away")

    desk = Watched()
    made = await desk.begin()
    desk.watch._library = Silent()
    await desk.watch.look()
    assert made.task is not None
    assert not made.task.cancelling()
    made.cancel()
    await made.task


async def test_run_that_has_ended_stays_as_it_ended() -> None:
    desk = Watched()
    made = await desk.execution(ends)
    assert made.task is not None
    await made.task
    made.withdraw()
    assert desk.log.events[KEY][-1].payload == Done(RunStatus.COMPLETED)
