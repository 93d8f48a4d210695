"""One watch for all listeners: each is told everything, in order, and none is waited for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing

import pytest

from kit.access.principal import Principal, current_principal, use_principal
from kit.errors import GroundworkError, InvalidArgument, Unavailable
from services.gateway.streams import document_feed
from services.gateway.streams.document_feed import DocumentFeeds, DocumentState, Listener
from services.gateway.streams.sse import ServerSentEvent

ANN = Principal("ann", "user")
BOB = Principal("bob", "user")
Told = AsyncGenerator[DocumentState | ServerSentEvent, None]


def state(
    document_id: str, version: int = 1, *, collection_id: str = "default", deleted: bool = False
) -> DocumentState:
    return DocumentState(document_id, collection_id, version, deleted, deleted, f"{document_id}@{version}".encode())


class Ingest:
    """The other side of the watch."""

    def __init__(self) -> None:
        self.present: dict[str, list[DocumentState]] = {}
        self.changes: asyncio.Queue[DocumentState | GroundworkError | None] = asyncio.Queue()
        """None ends the watch: other documents may be read than before."""
        self.opened: list[str] = []
        self.closed: asyncio.Queue[str] = asyncio.Queue()
        self.held = asyncio.Event()
        self.held.set()

    async def watch(self) -> AsyncGenerator[DocumentState | None, None]:
        tenant_id = current_principal().tenant_id
        self.opened.append(tenant_id)
        try:
            for each in self.present.get(tenant_id, []):
                yield each
            await self.held.wait()
            yield None
            while True:
                change = await self.changes.get()
                if isinstance(change, GroundworkError):
                    raise change
                if change is None:
                    return
                yield change
        finally:
            self.closed.put_nowait(tenant_id)


@pytest.fixture
def ingest() -> Ingest:
    return Ingest()


@pytest.fixture
def feeds(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> DocumentFeeds:
    monkeypatch.setattr(document_feed, "_PAUSE_S", 0.001)
    monkeypatch.setattr(document_feed, "_REOPEN_AFTER_S", 0.001)
    return DocumentFeeds(ingest.watch, reattach_for_s=30.0)


def everything(_: DocumentState) -> bool:
    return True


async def told(events: Told, count: int) -> list[str]:
    """The next events in short: kinds, or document@version."""
    found = [await anext(events) for _ in range(count)]
    return [each.wire.decode() if isinstance(each, DocumentState) else each.event for each in found]


async def listening(stack: AsyncExitStack, feeds: DocumentFeeds, principal: Principal = ANN) -> tuple[Listener, Told]:
    with use_principal(principal):
        listener = await stack.enter_async_context(feeds.listen(everything))
    return listener, await stack.enter_async_context(aclosing(listener.events()))


async def test_listeners_of_a_tenant_share_a_watch_and_tenants_do_not(ingest: Ingest, feeds: DocumentFeeds) -> None:
    ingest.present = {"ann": [state("a")], "bob": [state("b")]}
    async with AsyncExitStack() as stack:
        listeners = [(await listening(stack, feeds))[1] for _ in range(50)]
        for events in listeners:
            assert await told(events, 3) == ["snapshot_begin", "a@1", "snapshot_complete"]
        _, bobs = await listening(stack, feeds, BOB)
        assert await told(bobs, 3) == ["snapshot_begin", "b@1", "snapshot_complete"]
        assert ingest.opened == ["ann", "bob"]


async def test_who_comes_later_is_told_the_present_states(ingest: Ingest, feeds: DocumentFeeds) -> None:
    ingest.present = {"ann": [state("a"), state("b")]}
    async with AsyncExitStack() as stack:
        _, early = await listening(stack, feeds)
        await told(early, 4)
        for change in (state("a", 2), state("b", 2, deleted=True), state("c")):
            ingest.changes.put_nowait(change)
        assert await told(early, 3) == ["a@2", "b@2", "c@1"]
        _, late = await listening(stack, feeds)
        assert await told(late, 4) == ["snapshot_begin", "a@2", "c@1", "snapshot_complete"]
        ingest.changes.put_nowait(state("a", 3))
        assert await told(early, 1) == await told(late, 1) == ["a@3"]
    assert ingest.opened == ["ann"]


async def test_who_comes_before_the_states_are_known_waits_for_them(ingest: Ingest, feeds: DocumentFeeds) -> None:
    ingest.present = {"ann": [state("a")]}
    ingest.held.clear()
    async with AsyncExitStack() as stack:
        _, events = await listening(stack, feeds)
        first = asyncio.create_task(told(events, 3))
        await asyncio.sleep(0)
        ingest.held.set()
        assert await first == ["snapshot_begin", "a@1", "snapshot_complete"]


async def test_slow_listener_begins_anew_and_holds_nobody_up(
    ingest: Ingest, feeds: DocumentFeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_feed, "_MOST_BEHIND", 10)
    ingest.present = {"ann": [state("a")]}
    async with AsyncExitStack() as stack:
        _, quick = await listening(stack, feeds)
        _, slow = await listening(stack, feeds)
        await told(quick, 3)
        await told(slow, 3)
        for version in range(2, 102):
            ingest.changes.put_nowait(state("a", version))
            assert await told(quick, 1) == [f"a@{version}"]
        retold = await told(slow, 3)
        assert (retold[0], retold[2]) == ("snapshot_begin", "snapshot_complete")
        last = retold[1]
        while last != "a@101":
            (last,) = await told(slow, 1)


async def test_listener_that_is_restarted_in_its_snapshot_begins_that_anew(
    ingest: Ingest, feeds: DocumentFeeds
) -> None:
    ingest.present = {"ann": [state("a"), state("b")]}
    async with AsyncExitStack() as stack:
        _, events = await listening(stack, feeds)
        assert await told(events, 2) == ["snapshot_begin", "a@1"]
        ingest.present = {"ann": [state("b", 2)]}
        ingest.changes.put_nowait(Unavailable("NATS is away"))
        await ingest.closed.get()
        while len(ingest.opened) < 2:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        assert await told(events, 3) == ["snapshot_begin", "b@2", "snapshot_complete"]


async def test_broken_watch_is_opened_again_and_all_begin_anew(ingest: Ingest, feeds: DocumentFeeds) -> None:
    ingest.present = {"ann": [state("a")]}
    async with AsyncExitStack() as stack:
        _, events = await listening(stack, feeds)
        await told(events, 3)
        ingest.present = {"ann": [state("b")]}
        ingest.changes.put_nowait(Unavailable("NATS is away"))
        assert await told(events, 3) == ["snapshot_begin", "b@1", "snapshot_complete"]


@pytest.mark.parametrize(
    ("error", "reason"), [(InvalidArgument("no", reason="REFUSED"), "REFUSED"), (Unavailable("gone"), "UNAVAILABLE")]
)
async def test_watch_that_is_refused_or_stays_broken_ends_all_streams_and_is_tried_for_the_next(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch, error: GroundworkError, reason: str
) -> None:
    feeds = DocumentFeeds(ingest.watch, reattach_for_s=-1.0)
    async with AsyncExitStack() as stack:
        _, events = await listening(stack, feeds)
        await told(events, 2)
        ingest.changes.put_nowait(error)
        last = [each async for each in events][-1]
        assert isinstance(last, ServerSentEvent)
        assert (last.event, last.data["reason"]) == ("error", reason)
        _, again = await listening(stack, feeds)
        assert await told(again, 2) == ["snapshot_begin", "snapshot_complete"]


async def test_bug_in_the_watch_is_told_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> AsyncGenerator[DocumentState | None, None]:
        raise KeyError("status")
        yield

    feeds = DocumentFeeds(broken, reattach_for_s=30.0)
    async with AsyncExitStack() as stack:
        _, events = await listening(stack, feeds)
        (last,) = [each async for each in events]
        assert isinstance(last, ServerSentEvent)
        assert last.data["reason"] == "INTERNAL"


async def test_who_comes_when_rights_have_just_changed_is_not_told_what_could_be_read_before(
    ingest: Ingest, feeds: DocumentFeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_feed, "_REOPEN_AFTER_S", 3600.0)
    ingest.present = {"ann": [state("shared until now")]}
    async with AsyncExitStack() as stack:
        _, early = await listening(stack, feeds)
        await told(early, 3)
        ingest.changes.put_nowait(None)
        await ingest.closed.get()
        _, late = await listening(stack, feeds)
        first = asyncio.create_task(told(late, 1))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not first.done()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)


async def test_watch_ends_with_its_last_listener(ingest: Ingest, feeds: DocumentFeeds) -> None:
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        _, events = await listening(first, feeds)
        await listening(second, feeds)
        await told(events, 2)
        await first.aclose()
        assert ingest.closed.empty()
        await second.aclose()
        assert await ingest.closed.get() == "ann"


async def test_closing_ends_every_watch(ingest: Ingest, feeds: DocumentFeeds) -> None:
    async with AsyncExitStack() as stack:
        for principal in (ANN, BOB):
            await told((await listening(stack, feeds, principal))[1], 2)
        await feeds.close()
        assert {await ingest.closed.get(), await ingest.closed.get()} == {"ann", "bob"}
