"""When a source is from, as far as its name and its headings tell."""

import re
from datetime import date

from services.orchestrator.conflicts.disagreement import Source

_DATE = re.compile(r"(?<!\d)((?:19|20)\d{2})(?:[-_.]?(0[1-9]|1[0-2])(?:[-_.]?(0[1-9]|[12]\d|3[01]))?)?(?!\d)")
"""A year, a month of a year, or a day: `2024`, `2024-05`, `20240531`."""


def date_of(source: Source) -> str:
    """ISO 8601, as exact as it is known; empty where nothing is. The innermost heading tells more than the document's name."""
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
