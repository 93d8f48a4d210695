"""When a source is from, as far as its metadata, its headings and its name tell."""

import re
from datetime import date

from services.orchestrator.log.events import Evidence

_DATE = re.compile(r"(?<!\d)((?:19|20)\d{2})(?:[-_.]?(0[1-9]|1[0-2])(?:[-_.]?(0[1-9]|[12]\d|3[01]))?)?(?!\d)")
"""A year, a month of a year, or a day: `2024`, `2024-05`, `20240531`."""

_DAY = len("2024-05-31")


def date_of(source: Evidence) -> str:
    """ISO 8601, as exact as it is known; empty where nothing is. Metadata tell more than headings, and those more than a name."""
    if source.origin is not None and _DATE.match(source.origin.date):
        return source.origin.date[:_DAY]
    for text in (*reversed(source.heading_path), source.document_name):
        for found in _DATE.finditer(text):
            parts = [part for part in found.groups() if part]
            if len(parts) < 3 or _is_day(parts):
                return "-".join(parts)
    return ""


def _is_day(parts: list[str]) -> bool:
    try:
        date(*map(int, parts))
    except ValueError:
        return False
    return True
