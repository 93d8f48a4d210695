"""Turns of a conversation, one at a time: the run of each is followed and cut into pieces, and a new turn breaks off the last."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from starlette.websockets import WebSocketDisconnect

from kit.errors import GroundworkError
from services.gateway.backends import Backends
from services.gateway.errors import StreamInterrupted
from services.gateway.models import Json, RunEvent
from services.gateway.problems import logged, problem
from services.gateway.streams.abandoned import cancel_run
from services.gateway.streams.events import interrupted
from services.gateway.streams.following import follow
from services.gateway.streams.streaming import first_event, policy, started
from services.gateway.voice.pieces import Pieces, Speakable


class TurnListener(Protocol):
    """Receives what happens in a turn. Each call waits until the client takes what it is sent."""

    async def said(self, piece: Speakable, run_id: str, seq: int) -> None:
        """A piece is to be said; it comes before the event `seq` that made it."""

    async def happened(self, event: RunEvent) -> None:
        """The next event of the run."""

    async def ended(self, ending: Json) -> None:
        """All of the run has been spoken."""

    async def failed(self, data: Json) -> None:
        """The run could not begin, or its stream is lost."""

    async def interrupted(self, run_id: str, reason: str) -> None:
        """Nothing more of the turn follows."""


@dataclass(frozen=True)
class Heard:
    """What the client has already of a run."""

    after: int = 0
    after_piece: int = -1


async def _nothing() -> None: ...


class Turns:
    """The turns of one conversation. What is typed and what is heard may come at once, so each change of turn waits for the one
    before. Its tasks end with `close`."""

    def __init__(self, services: Backends, listener: TurnListener) -> None:
        self._services = services
        self._listener = listener
        self._turn: asyncio.Task[None] | None = None
        self._run_id = ""
        self._cancelling: set[asyncio.Task[None]] = set()
        self._changing = asyncio.Lock()
        self._leaves_run = False
        """The client has gone, and may come back for a run whose id it does not know yet."""

    @property
    def is_busy(self) -> bool:
        """Whether a turn goes on."""
        return self._turn is not None and not self._turn.done()

    async def begin(
        self,
        request: Callable[[], Awaitable[pb.StartRunRequest]],
        language: str,
        before: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        """Starts a run, after what went on was broken off and `before` was done."""
        async with self._changing:
            await self._interrupt("message")
            await before()
            self._turn = asyncio.create_task(self._guarded(self._ask(request, language)))

    async def resume(self, run_id: str, language: str, heard: Heard, before: Callable[[], Awaitable[None]]) -> None:
        """Goes on with a run, after `before`. The run that went on here is left alone: another client may follow it."""
        log = self._services.run_log
        async with self._changing:
            await self._break_off()
            await before()
            # From its first event, since the pieces are those of the whole answer.
            events = follow(
                log.attach(run_id, 0), log.attach, run_id=run_id, after_seq=0, policy=policy(self._services)
            )
            self._turn = asyncio.create_task(self._guarded(self._tell(events, Pieces(language), heard)))

    async def interrupt(self, reason: str) -> None:
        """Breaks off the turn at once, and cancels its run. Nothing happens where none goes on."""
        async with self._changing:
            await self._interrupt(reason)

    async def close(self, *, cancels: bool) -> None:
        """Ends all tasks, once the runs that were broken off are cancelled. With `cancels` that is true of the run that goes on,
        too; otherwise the client may come back for it."""
        self._leaves_run = not cancels
        if cancels:
            self._cancel_run()
        await self._break_off()
        if self._cancelling:
            _, late = await asyncio.wait(self._cancelling, timeout=self._services.settings.rpc_timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _interrupt(self, reason: str) -> None:
        run_id = self._cancel_run()
        if await self._break_off():
            await self._listener.interrupted(run_id, reason)

    def _cancel_run(self) -> str:
        """Id of the run that goes on, empty where none has one. The turn is to be broken off next."""
        run_id = self._run_id if self.is_busy else ""
        if run_id:
            self._in_background(cancel_run(self._services, run_id))
        return run_id

    async def _break_off(self) -> bool:
        """Whether a turn went on."""
        turn, self._turn, self._run_id = self._turn, None, ""
        if turn is None or turn.done():
            return False
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        return True

    async def _guarded(self, telling: Awaitable[None]) -> None:
        try:
            await telling
        except StreamInterrupted as error:
            metadata = error.metadata
            await self._listener.failed(interrupted(metadata["run_id"], int(metadata["after_seq"]), error.message))
        except GroundworkError as error:
            await self._fail(error)
        except WebSocketDisconnect:
            return  # who reads the client's messages learns of it, too
        except Exception as error:
            await self._fail(logged("turn_failed", error))

    async def _fail(self, error: GroundworkError) -> None:
        body = problem(error)
        await self._listener.failed({**body, "run_id": self._run_id or None, "message": body["detail"]})

    async def _ask(self, request: Callable[[], Awaitable[pb.StartRunRequest]], language: str) -> None:
        events = started(self._services, await request())
        beginning = asyncio.ensure_future(first_event(events))
        try:
            first = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            if self._leaves_run:
                beginning.cancel()
            else:
                self._in_background(self._cancel_begun(beginning))
            raise
        await self._tell(_with(first, events), Pieces(language), Heard())

    async def _tell(self, events: AsyncIterator[RunEvent], pieces: Pieces, heard: Heard) -> None:
        async with aclosing(events):  # type: ignore[type-var] # `follow` is an async generator
            async for event in events:
                self._run_id = event.run_id
                for piece in pieces.add(event):
                    if piece.index > heard.after_piece:
                        await self._listener.said(piece, event.run_id, event.seq)
                if event.seq > heard.after:
                    await self._listener.happened(event)
        await self._listener.ended(pieces.ending())

    def _in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def _cancel_begun(self, beginning: "asyncio.Future[RunEvent]") -> None:
        """Cancels a run that was broken off before it said its id."""
        try:
            first = await beginning
        except GroundworkError:
            return
        await cancel_run(self._services, first.run_id)


async def _with(first: RunEvent, events: AsyncIterator[RunEvent]) -> AsyncIterator[RunEvent]:
    async with aclosing(events):  # type: ignore[type-var] # `follow` is an async generator
        yield first
        async for event in events:
            yield event
