"""Spans of time as people write them on the command line."""

from __future__ import annotations

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
