"""Stored records that cannot be decoded: cut off, overwritten, or not ours. One of them never stops a listing, a sweep or a replay:
it is left out, counted, and named in the log."""

import structlog
from prometheus_client import Counter

_log = structlog.get_logger()
_SET_ASIDE = Counter("groundwork_records_set_aside", "Readings of stored records that could not be decoded", ["store"])

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""What decoders of JSON records raise for bytes that are no record of theirs."""


def set_aside(store: str, key: str, error: Exception) -> None:
    """Tells of a record that is being left out. `store` is the bucket or stream; of the error only its type is logged, since its
    text may quote the record."""
    _SET_ASIDE.labels(store=store).inc()
    _log.error("record_set_aside", store=store, key=key, error=type(error).__name__)
