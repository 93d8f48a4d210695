"""Responses that are not to be stored: the gateway deletes their runs once they are answered, or nobody reads them any more."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import structlog
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.errors import GroundworkError
from services.gateway.backends import Backends
from services.gateway.models import RunEvent
from services.gateway.streams.sse import Encoded

_PAUSES_S = (0.5, 2.0, 8.0)
_deleting: set[asyncio.Task[None]] = set()
"""So that none is collected while it works."""
_log = structlog.get_logger()


async def delete_run(services: Backends, run_id: str) -> None:
    """Removes a run for its user; one that goes on is cancelled first. Raises what the orchestrator raises."""
    request = pb.DeleteRunRequest(run_id=run_id)
    await services.orchestrator.DeleteRun(request, timeout=services.settings.rpc_timeout_s)


async def unstored(events: AsyncIterator[RunEvent], services: Backends) -> AsyncGenerator[RunEvent, None]:
    """The events of a run that is deleted behind the last one, when they break off, and when they are closed."""
    run_id = ""
    try:
        async with aclosing(events):  # type: ignore[type-var] # `follow` is an async generator
            async for event in events:
                run_id = event.run_id
                yield event
    finally:
        if run_id:
            await _delete_behind(services, run_id)


class Following:
    """Pieces made of a run's events. Closing them closes the events, also where no piece has been asked for yet."""

    def __init__(self, pieces: AsyncGenerator[Encoded, None], events: AsyncGenerator[RunEvent, None]) -> None:
        self._pieces = pieces
        self._events = events

    def __aiter__(self) -> AsyncIterator[Encoded]:
        return self

    async def __anext__(self) -> Encoded:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Harmless when repeated."""
        async with aclosing(self._events):
            await self._pieces.aclose()


async def _delete_behind(services: Backends, run_id: str) -> None:
    """Tries to delete the run, also when the caller is cancelled meanwhile. An answer that is there does not fail with it."""
    tried = asyncio.Event()
    task = asyncio.create_task(_delete_patiently(services, run_id, tried))
    _deleting.add(task)
    task.add_done_callback(_deleting.discard)
    await tried.wait()


async def _delete_patiently(services: Backends, run_id: str, tried: asyncio.Event) -> None:
    for pause_s in (*_PAUSES_S, None):
        try:
            await delete_run(services, run_id)
        except GroundworkError as error:
            _log.warning(
                "unstored_run_not_deleted",
                run_id=run_id,
                reason=error.reason,
                error=error.message,
                is_tried_again=pause_s is not None,
            )
        else:
            return
        finally:
            tried.set()
        if pause_s is not None:
            await asyncio.sleep(pause_s)
