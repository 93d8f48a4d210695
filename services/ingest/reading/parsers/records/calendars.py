"""Calendars (iCalendar, RFC 5545): each event, task or note is a row of what it is, when and where."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.office.package import damaged
from services.ingest.reading.parsers.text.plain import encoding_warnings
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_COMPONENTS = ("VEVENT", "VTODO", "VJOURNAL")
_SHOWN = (
    ("SUMMARY", "Event"), ("DTSTART", "Start"), ("DTEND", "End"), ("DUE", "Due"), ("DURATION", "Duration"), ("RRULE", "Repeats"),
    ("LOCATION", "Place"), ("ORGANIZER", "Organizer"), ("ATTENDEE", "Attendees"), ("STATUS", "Status"),
    ("DESCRIPTION", "Description"),
)  # fmt: skip
UNREADABLE_CALENDAR = (ValueError, TypeError, AttributeError, KeyError, IndexError, LookupError, OverflowError)
"""What the library raises for what is no calendar."""


def parse_calendar(source: Source, name: str) -> ParsedDocument:
    """Reads the events. Raises DocumentRejected: FILE_DAMAGED."""
    decoded = decode(source.read_bytes())
    try:
        blocks = tuple(calendar_blocks(decoded.text))
    except UNREADABLE_CALENDAR as error:
        raise damaged(name, f"it is no calendar ({error})") from error
    return ParsedDocument(title_or_name(None, name), blocks, warnings=encoding_warnings(decoded))


def calendar_blocks(text: str) -> Iterator[Block]:
    """One row an event. Raises ValueError and its like where the text is no calendar."""
    from icalendar import Calendar  # noqa: PLC0415 - 0.2 s to load, needed for few files

    for calendar in Calendar.from_ical(text, multiple=True):
        for component in calendar.walk():
            if component.name in _COMPONENTS:
                fields = [(label, _shown(component.get(key))) for key, label in _SHOWN]
                cells = [f"{label}: {value}" for label, value in fields if value]
                if cells:
                    yield Block(BlockKind.ROW, "; ".join(cells), label=cells[0][:120])


def _shown(value: Any) -> str:
    """A value as people write it: dates with their time zone, addresses with their names."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_shown, value)))
    moment = getattr(value, "dt", None)
    if isinstance(moment, dt.datetime):
        zone = f" {moment.tzname()}" if moment.tzinfo else ""
        return f"{moment:%Y-%m-%d %H:%M}{zone}"
    if moment is not None:
        return str(moment)
    if isinstance(value, dict):  # a rule of repetition
        return ", ".join(
            f"{key}={' '.join(map(str, each if isinstance(each, list) else [each]))}" for key, each in value.items()
        )
    name = getattr(value, "params", {}).get("CN", "")
    address = " ".join(str(value).split())
    return (
        f"{name} <{address.removeprefix('mailto:').removeprefix('MAILTO:')}>"
        if name
        else address.removeprefix("mailto:")
    )
