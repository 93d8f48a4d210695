"""Why a sync failed as a whole, in words for the person whose source it is."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import structlog

from kit.errors import GroundworkError, Internal
from services.ingest.errors import SourceAway

_log = structlog.get_logger()
_LISTING_S = 8 * 3600.0
_Answer = TypeVar("_Answer")


async def in_time(listing: Awaitable[_Answer]) -> _Answer:
    """Raises SourceAway for a source that keeps a sync, and so the others, waiting without end."""
    try:
        async with asyncio.timeout(_LISTING_S):
            return await listing
    except TimeoutError as error:
        raise SourceAway(
            f"the source was not listed within {_LISTING_S / 3600:g} hours; make it smaller by a path or a prefix"
        ) from error


def why_failed(errors: BaseExceptionGroup[Exception], event: str = "sync_failed") -> GroundworkError:
    """The first of the errors, logged; one that nobody foresaw as Internal."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, GroundworkError):
        _log.warning(event, reason=error.reason, error=error.message)
        return error
    _log.error(event, reason=Internal.reason, exc_info=error)
    return Internal("an error of this program broke it; the log says which, and the next attempt comes by itself")
