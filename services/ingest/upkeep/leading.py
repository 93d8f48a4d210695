"""Duties that one worker does for all, as long as it lives: whoever holds the lease leads, the others wait for it to fall free.
Every duty is harmless when two do it for a moment."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from kit.errors import GroundworkError
from services.ingest.ports import HeldLease, Leases

_log = structlog.get_logger()
_LEASE = "duties.worker"
_CHECK_INTERVAL_S = 1.0
_RETRY_AFTER_S = 2.0

Duty = Callable[[], Coroutine[Any, Any, None]]
"""Runs until cancelled."""


async def lead(leases: Leases, *duties: Duty) -> None:
    """Does the duties whenever the lease is ours, until cancelled."""
    while True:
        try:
            async with leases.hold(_LEASE) as lease:
                await _do(lease, duties)
        except* GroundworkError as errors:
            _log.warning("duties_interrupted", errors=[str(error) for error in errors.exceptions])
        await asyncio.sleep(_RETRY_AFTER_S)


async def _do(lease: HeldLease, duties: tuple[Duty, ...]) -> None:
    async with asyncio.TaskGroup() as group:
        for duty in duties:
            group.create_task(duty())
        while True:
            lease.check()
            await asyncio.sleep(_CHECK_INTERVAL_S)
