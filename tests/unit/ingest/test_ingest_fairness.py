"""Shares are handed out by turns."""

import asyncio

import pytest

from services.ingest.documents.models import Lane
from services.ingest.fairness import FairShares


class Desk:
    """Who holds a share, and in which order they got one."""

    def __init__(self, limit: int, per_document: int) -> None:
        self.shares = FairShares(limit, per_document)
        self.order: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def ask(self, document: str, name: str, size: int = 1, tenant: str = "acme", lane: Lane = Lane.INTERACTIVE) -> None:
        self.gates[name] = asyncio.Event()

        async def hold() -> None:
            async with self.shares.hold(tenant, document, size, lane):
                self.order.append(name)
                await self.gates[name].wait()

        self.tasks[name] = asyncio.create_task(hold())

    async def finish(self, name: str) -> None:
        self.gates[name].set()
        await self.tasks[name]
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_small_group_gets_the_next_slot_however_many_a_large_one_asked_for_before() -> None:
    desk = Desk(limit=2, per_document=2)
    for n in range(6):
        desk.ask("book", f"book-{n}")
    await settle()
    desk.ask("note", "note-0")
    await settle()
    assert desk.order == ["book-0", "book-1"]
    await desk.finish("book-0")
    await desk.finish("book-1")
    assert desk.order == ["book-0", "book-1", "book-2", "note-0"]
    await desk.finish("note-0")
    assert desk.order[-1] == "book-3"
    for n in (2, 3, 4, 5):
        await desk.finish(f"book-{n}")
    assert len(desk.order) == 7


async def test_one_group_leaves_slots_for_others() -> None:
    desk = Desk(limit=4, per_document=2)
    for n in range(4):
        desk.ask("book", f"book-{n}")
    desk.ask("note", "note-0")
    await settle()
    assert desk.order == ["book-0", "book-1", "note-0"]
    for name in ("note-0", "book-0", "book-1", "book-2", "book-3"):
        await desk.finish(name)


async def test_tenant_with_one_document_waits_for_one_turn_of_a_tenant_with_many() -> None:
    desk = Desk(limit=1, per_document=1)
    for n in range(6):
        desk.ask(f"book-{n}", f"book-{n}")
    desk.ask("note", "note", tenant="bee")
    await settle()
    await desk.finish("book-0")
    await desk.finish("book-1")
    await desk.finish("note")
    assert desk.order == ["book-0", "book-1", "note", "book-2"]
    for n in range(2, 6):
        await desk.finish(f"book-{n}")


async def test_those_who_are_cancelled_together_leave_all_shares_free() -> None:
    desk = Desk(limit=1, per_document=1)
    for name in ("a", "b", "c"):
        desk.ask(name, name, tenant=name)
    await settle()
    for task in desk.tasks.values():
        task.cancel()
    done = await asyncio.gather(*desk.tasks.values(), return_exceptions=True)
    assert all(isinstance(error, asyncio.CancelledError) for error in done)
    async with asyncio.timeout(60), desk.shares.hold("d", "d", 1):
        pass


async def test_who_stops_waiting_loses_no_slot() -> None:
    desk = Desk(limit=1, per_document=1)
    for name in ("a", "b", "c"):
        desk.ask(name, name)
    await settle()
    desk.tasks["b"].cancel()
    await settle()
    await desk.finish("a")
    assert desk.order == ["a", "c"]
    desk.tasks["c"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await desk.tasks["c"]
    desk.ask("d", "d")
    await settle()
    assert desk.order == ["a", "c", "d"]
    await desk.finish("d")


async def test_slot_handed_out_in_the_moment_of_a_cancellation_is_given_back() -> None:
    shares = FairShares(1, 1)

    async def hold() -> None:
        async with shares.hold("acme", "x", 1):
            pytest.fail("it was cancelled before")

    async with shares.hold("acme", "y", 1):
        task = asyncio.create_task(hold())
        await settle()
    task.cancel()  # the slot is its own by now, and it does not know yet
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60), shares.hold("acme", "z", 1):
        pass


async def test_many_small_ones_fit_where_one_large_one_does_and_do_not_pass_it() -> None:
    desk = Desk(limit=8, per_document=4)
    for n in range(5):
        desk.ask(f"note-{n}", f"note-{n}")
    desk.ask("book", "book-0", size=9)
    desk.ask("note-5", "note-5")
    await settle()
    assert desk.order == [f"note-{n}" for n in range(5)], "the book waits for its four, and nobody passes it"
    await desk.finish("note-0")
    assert desk.order[5:] == ["book-0"]
    await desk.finish("note-1")
    assert desk.order[6:] == ["note-5"]
    for name in ("note-2", "note-3", "note-4", "note-5", "book-0"):
        await desk.finish(name)


async def test_single_upload_waits_for_one_turn_of_a_bulk_import_and_neither_stands_still() -> None:
    desk = Desk(limit=1, per_document=1)
    for n in range(4):
        desk.ask(f"book-{n}", f"book-{n}", lane=Lane.BULK)
    desk.ask("note-0", "note-0")
    desk.ask("note-1", "note-1")
    await settle()
    for _ in range(6):
        await desk.finish(desk.order[-1])
    assert desk.order == ["book-0", "book-1", "note-0", "book-2", "note-1", "book-3"]
