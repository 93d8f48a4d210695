"""Runs whose client has gone and cannot come back: they are cancelled, since nobody would read what they write."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import structlog
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from starlette.types import Receive

from kit.errors import Cancelled, GroundworkError
from kit.vocabulary.run_fold import RunFold
from services.gateway.backends import Backends
from services.gateway.models import RunEvent
from services.gateway.streams.answers import fold_events
from services.gateway.streams.sse import until_gone

_cancelling: set[asyncio.Task[None]] = set()
"""So that none is collected while it works."""
_log = structlog.get_logger()

HungUp = Callable[[str], Awaitable[None]]
"""Called with the id of a run whose client has gone."""


async def cancel_run(services: Backends, run_id: str) -> None:
    """Asks a run to stop. Logs why it could not be asked."""
    request = pb.CancelRunRequest(run_id=run_id)
    try:
        await services.orchestrator.CancelRun(request, timeout=services.settings.rpc_timeout_s)
    except GroundworkError as error:
        _log.warning("run_not_cancelled", run_id=run_id, reason=error.reason)


async def cancel_abandoned(services: Backends, run_id: str) -> None:
    """Asks a run to stop, also when the request that it answers is cancelled meanwhile."""
    task = asyncio.create_task(cancel_run(services, run_id))
    _cancelling.add(task)
    task.add_done_callback(_cancelling.discard)
    await asyncio.shield(task)


async def fold_unless_gone(events: AsyncIterator[RunEvent], receive: Receive, hung_up: HungUp) -> RunFold:
    """The run at its end, or as soon as it waits. Raises what the stream raises, and Cancelled once the client has hung up."""
    fold = RunFold()
    folding = asyncio.ensure_future(fold_events(events, fold))
    gone = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({folding, gone}, return_when=asyncio.FIRST_COMPLETED)
        if folding.done():
            return folding.result()
    finally:
        for task in (folding, gone):
            task.cancel()
        await asyncio.gather(folding, gone, return_exceptions=True)
    if fold.run_id:
        await hung_up(fold.run_id)
    raise Cancelled(f"the client hung up before run {fold.run_id} had answered", reason="RUN_CANCELLED")
