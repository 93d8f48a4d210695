"""Why a sync failed as a whole, in words for the person whose source it is."""

import asyncio
from collections.abc import Awaitable

import structlog

from kit.errors import GroundworkError, Internal
from services.ingest.errors import SourceAway
from services.ingest.sources.models import SourceListing

_log = structlog.get_logger()
_LISTING_S = 8 * 3600.0


async def in_time(listing: Awaitable[SourceListing]) -> SourceListing:
    """Raises SourceAway for a source that keeps a sync, and so the others, waiting without end."""
    try:
        async with asyncio.timeout(_LISTING_S):
            return await listing
    except TimeoutError as error:
        raise SourceAway(
            f"the source was not listed within {_LISTING_S / 3600:g} hours; make it smaller by a path or a prefix"
        ) from error


def why_failed(errors: BaseExceptionGroup[Exception]) -> GroundworkError:
    """The first of the errors, logged; one that nobody foresaw as Internal."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, GroundworkError):
        _log.warning("sync_failed", reason=error.reason, error=error.message)
        return error
    _log.error("sync_failed", reason=Internal.reason, exc_info=error)
    return Internal("the sync broke on an error of this program; its log says which, and the next sync tries again")
