"""The documents that a subject may read as they change, watched once by this gateway for all who listen here in that subject's
name. A watch of their own for each listener made ingest decode and send every change once a listener, and uploads wait behind it.

A feed knows the present state of all documents, so a new listener gets them from here. A listener that falls too far behind is
not waited for: it gets the present states anew, as after a broken watch.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import structlog

from kit.access.principal import Principal, current_principal, use_principal
from kit.errors import Code, GroundworkError
from kit.observability.telemetry import current_trace_id
from services.gateway.metrics import DOCUMENT_LISTENERS_RESTARTED
from services.gateway.problems import problem, unknown_error
from services.gateway.streams.sse import ServerSentEvent

_log = structlog.get_logger()
_PASSING = {Code.UNAVAILABLE, Code.CANCELLED, Code.DEADLINE_EXCEEDED}
_REOPEN_AFTER_S = 0.5
_PAUSE_S = 0.2
"""Least time between two deliveries to the listeners. Waking one costs 0.1 ms, however much it then gets: two hundred listeners
cost a tenth of a core at most, and people do not see the delay."""
_MOST_BEHIND = 1000
"""Changes kept for a listener that is slow to take them."""

SNAPSHOT_BEGIN = ServerSentEvent("snapshot_begin", {})
SNAPSHOT_COMPLETE = ServerSentEvent("snapshot_complete", {})


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What one document is at a moment, ready to be sent to any number of listeners."""

    document_id: str
    collection_id: str
    version: int
    """Time of its last change: of two states, the later one has the higher."""
    is_settled: bool
    """Ready, failed or deleted: nothing more happens to it by itself."""
    is_deleted: bool
    wire: bytes

    def encoded(self) -> bytes:
        """The event on the wire."""
        return self.wire


Watch = Callable[[], AsyncGenerator[DocumentState | None, None]]
"""Opens ingest's watch of all documents that the present principal may read: the present states, None, then each change. Ends when
other documents may be read than before. Raises GroundworkError when it breaks."""

DocumentFilter = Callable[[DocumentState], bool]
"""Whether a listener gets the state of a document."""


class Listener:
    """One reader of a feed, with what it has not taken yet."""

    def __init__(self, feed: "DocumentFeed", matches: DocumentFilter) -> None:
        self._feed = feed
        self._matches = matches
        self._snapshot: Sequence[DocumentState] | None = None
        self._behind: deque[DocumentState] = deque()
        self._failure: ServerSentEvent | None = None
        self._news = asyncio.Event()

    def restart(self, states: Sequence[DocumentState]) -> None:
        """Makes the listener begin anew with these states."""
        self._snapshot = states
        self._behind.clear()
        self._news.set()

    def tell(self, changes: Iterable[DocumentState]) -> None:
        """Adds changes; a listener that is too far behind begins anew instead."""
        self._behind.extend(filter(self._matches, changes))
        if len(self._behind) > _MOST_BEHIND:
            DOCUMENT_LISTENERS_RESTARTED.inc()
            self.restart(self._feed.states())
        elif self._behind:
            self._news.set()

    def fail(self, event: ServerSentEvent) -> None:
        """Ends the stream with `event`, after what is still to be sent."""
        self._failure = event
        self._news.set()

    async def events(self) -> AsyncGenerator[DocumentState | ServerSentEvent, None]:
        """`snapshot_begin`, states, `snapshot_complete`, then changes; the same again whenever some may have been missed."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._snapshot is not None:
                async for event in self._begin_anew():
                    yield event
            while self._behind and self._snapshot is None:
                yield self._behind.popleft()
            if self._failure is not None and not self._behind and self._snapshot is None:
                yield self._failure
                return

    async def _begin_anew(self) -> AsyncGenerator[DocumentState | ServerSentEvent, None]:
        states, self._snapshot = self._snapshot or (), None
        yield SNAPSHOT_BEGIN
        for state in states:
            if self._snapshot is not None:
                return
            if self._matches(state):
                yield state
        yield SNAPSHOT_COMPLETE


class DocumentFeed:
    """The documents that one principal may read, and who listens."""

    def __init__(self, watch: Watch, *, reattach_for_s: float) -> None:
        self._watch = watch
        self._reattach_for_s = reattach_for_s
        self._states: dict[str, DocumentState] = {}
        self._is_current = False
        self._listeners: set[Listener] = set()
        self._changes: list[DocumentState] = []
        self._delivery: asyncio.TimerHandle | None = None

    def states(self) -> tuple[DocumentState, ...]:
        """The present states."""
        return tuple(self._states.values())

    def add(self, listener: Listener) -> None:
        """Begins to tell the listener: at once, or when the states are known."""
        if self._is_current:
            self._deliver()
            listener.restart(self.states())
        self._listeners.add(listener)

    def remove(self, listener: Listener) -> bool:
        """Stops telling the listener. Whether it was the last one."""
        self._listeners.discard(listener)
        return not self._listeners

    async def run(self) -> None:
        """Watches until cancelled, or until the watch is refused or stays broken: then all listeners get the error."""
        loop = asyncio.get_running_loop()
        broken_at: float | None = None
        try:
            while True:
                try:
                    async with aclosing(self._watch()) as changes:
                        async for _ in self._taken_in(changes):
                            broken_at = None
                    # Other documents may be read than before: until they are known, no new listener gets the old ones.
                    self._is_current = False
                except GroundworkError as error:
                    broken_at = loop.time() if broken_at is None else broken_at
                    if error.code not in _PASSING or loop.time() - broken_at > self._reattach_for_s:
                        self._fail(error)
                        return
                    _log.warning("document_watch_reopening", reason=error.reason)
                await asyncio.sleep(_REOPEN_AFTER_S)
        except Exception as error:
            trace_id = current_trace_id()
            _log.error("document_feed_failed", trace_id=trace_id, exc_info=error)
            self._fail(unknown_error(trace_id))
        finally:
            if self._delivery is not None:
                self._delivery.cancel()

    async def _taken_in(self, changes: AsyncIterator[DocumentState | None]) -> AsyncGenerator[None, None]:
        """Takes in one watch, from its snapshot on; yields after each message."""
        fresh: dict[str, DocumentState] = {}
        self._is_current = False
        async for change in changes:
            if change is None:
                self._begin(fresh)
            elif self._is_current:
                self._note(change)
            else:
                fresh[change.document_id] = change
            yield

    def _begin(self, states: dict[str, DocumentState]) -> None:
        self._states, self._is_current = states, True
        self._changes.clear()
        snapshot = self.states()
        for listener in self._listeners:
            listener.restart(snapshot)

    def _note(self, change: DocumentState) -> None:
        if change.is_deleted:
            self._states.pop(change.document_id, None)
        else:
            self._states[change.document_id] = change
        self._changes.append(change)
        if self._delivery is None:
            self._deliver()
            self._delivery = asyncio.get_running_loop().call_later(_PAUSE_S, self._deliver_again)

    def _deliver(self) -> None:
        changes, self._changes = self._changes, []
        for listener in self._listeners:
            listener.tell(changes)

    def _deliver_again(self) -> None:
        self._delivery = None
        if self._changes:
            self._deliver()
            self._delivery = asyncio.get_running_loop().call_later(_PAUSE_S, self._deliver_again)

    def _fail(self, error: GroundworkError) -> None:
        self._deliver()
        event = ServerSentEvent("error", problem(error))
        for listener in self._listeners:
            listener.fail(event)


class DocumentFeeds:
    """The feeds of this gateway, by principal: opened for the first listener, closed after the last."""

    def __init__(self, watch: Watch, *, reattach_for_s: float) -> None:
        self._watch = watch
        self._reattach_for_s = reattach_for_s
        self._feeds: dict[Principal, tuple[DocumentFeed, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def listen(self, matches: DocumentFilter) -> AsyncIterator[Listener]:
        """A listener to the documents that the present principal may read, while the block runs."""
        principal = current_principal()
        feed = self._feed(principal)
        listener = Listener(feed, matches)
        feed.add(listener)
        try:
            yield listener
        finally:
            if feed.remove(listener):
                self._end(principal, feed)

    def _feed(self, principal: Principal) -> DocumentFeed:
        known = self._feeds.get(principal)
        if known is not None and not known[1].done():
            return known[0]
        feed = DocumentFeed(self._watch, reattach_for_s=self._reattach_for_s)
        # A context of its own: the feed outlives the request that needed it first, and its deadline and span.
        task = asyncio.create_task(self._as_caller(feed, principal), context=contextvars.Context())
        self._feeds[principal] = feed, task
        return feed

    async def _as_caller(self, feed: DocumentFeed, principal: Principal) -> None:
        with use_principal(principal):
            await feed.run()

    def _end(self, principal: Principal, feed: DocumentFeed) -> None:
        known = self._feeds.get(principal)
        if known is not None and known[0] is feed:
            del self._feeds[principal]
            known[1].cancel()

    async def close(self) -> None:
        """Ends all feeds."""
        tasks = [task for _, task in self._feeds.values()]
        self._feeds.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
