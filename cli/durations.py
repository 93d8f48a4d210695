"""Spans of time as people write them on the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cli.errors import UsageError

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def is_duration(text: str) -> bool:
    """Whether the text ends like one: `12h`, and no date."""
    return text[-1:] in _UNITS_S


def seconds_of(text: str) -> int:
    """`12h` in seconds. Raises UsageError."""
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit()) or unit not in _UNITS_S:
        raise UsageError(f"{text!r} is no duration; write 90s, 30m, 12h or 7d.")
    return int(number) * _UNITS_S[unit]


def resolve_past_time(text: str) -> str:
    """A time in RFC 3339: as it is written, or as long ago as the duration says. Raises UsageError."""
    return _shift_now(-seconds_of(text)) if is_duration(text) else text


def resolve_future_time(text: str) -> str:
    """A time in RFC 3339: as it is written, or as far ahead as the duration says. Raises UsageError."""
    return _shift_now(seconds_of(text)) if is_duration(text) else text


def _shift_now(seconds: int) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds")
