"""Kubernetes' quantities ("250m", "1Gi") and how people read them."""

from __future__ import annotations

import re
from datetime import timedelta

_QUANTITY = re.compile(r"^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-zµ]*)$")
_FACTORS = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "µ": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
    "Pi": 2.0**50,
}


def quantity(text: object) -> float:
    """The number that a quantity stands for; 0 for what is none."""
    found = _QUANTITY.match(str(text or "").strip())
    if found is None or found[2] not in _FACTORS:
        return 0.0
    return float(found[1]) * _FACTORS[found[2]]


def in_bytes(size: float) -> str:
    """`12 MiB`, `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def in_time(span: timedelta | float) -> str:
    """`40 s`, `5 min`, `3 h`, `2 d`: the largest unit that leaves a whole number of some use."""
    seconds = max(0, round(span.total_seconds() if isinstance(span, timedelta) else span))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
