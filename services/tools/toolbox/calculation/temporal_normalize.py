"""Turns words of time into dates that a search can be narrowed by: a model counts badly, and does not know what day it is."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kit.temporal.calendar import Moment
from kit.temporal.expressions import DateOrder
from kit.temporal.reading import TEXT_CHARACTERS_MAX, Period, read_one, read_periods
from services.tools.errors import ToolError
from services.tools.models import Policy

SCHEMA = {
    "type": "function",
    "function": {
        "name": "temporal_normalize",
        "description": (
            "Finds the times that a text names (last month, в январе 2024, since March 3, between May and July, Q3 2023) and gives "
            "them as dates: from date_from on, up to and without date_to; null means no limit."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "text": {
                    "type": "string",
                    "description": "An expression, or a whole question.",
                    "minLength": 1,
                    "maxLength": TEXT_CHARACTERS_MAX,
                },
                "timezone": {
                    "type": "string",
                    "description": "IANA time zone, for example Europe/Berlin. Default: UTC.",
                    "minLength": 1,
                    "maxLength": 64,
                },
                "reference_time": {
                    "type": "string",
                    "description": "ISO 8601 time that relative expressions count from. Default: now.",
                    "minLength": 10,
                    "maxLength": 40,
                },
                "date_order": {
                    "type": "string",
                    "enum": [order.value for order in DateOrder],
                    "description": "How 03/04/2024 is read: DMY (default) or MDY.",
                },
            },
            "required": ["text"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    self_contained=True,
    worth=3,
    called_for_by=(
        r"\b(?:last|next|this|past) (?:week|month|year|quarter|spring|summer|autumn|winter)|yesterday|tomorrow|\bq[1-4]\b",
        r"\bsince (?:\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
        r"(?:letzte|nächste|vorige|diese)[nrms]? (?:woche|monat|jahr|quartal)|gestern|vorgestern",
        r"(?:semaine|mois|an(?:née)?|trimestre) derni(?:er|ère)|\bhier\b",
        r"(?:semana|mes|mês|año|ano|trimestre) pasad[oa]|\bayer\b|\bontem\b|(?:settimana|mese|anno) scors[oa]|\bieri\b",
        r"vorige (?:week|maand)|gisteren|zeszły|w zeszłym|wczoraj",
        r"прошл(?:ой|ом|ый|ую|ого)|вчера|минул(?:ого|ому)|вчора",
        r"geçen (?:hafta|ay|yıl)|\bdün\b",
        r"上周|上个月|去年|昨天|先週|先月|昨日|지난|어제|الماضي|أمس",
    ),
)


def temporal_normalize(
    text: str, timezone: str = "UTC", reference_time: str = "", date_order: str = DateOrder.DAY_FIRST.value
) -> dict[str, Any]:
    """Each time that was found, and the dates that hold all of them; both null when there is none. ISO 8601 with offset."""
    moment, order = reference_moment(timezone, reference_time), DateOrder(date_order)
    found = read_periods(text, moment, order)
    if not found and (one := read_one(text, moment, order)):
        found = [one]
    return {
        "expressions": [{"text": period.text, **_dates(period)} for period in found],
        **enclosing_dates(found),
        "timezone": timezone,
    }


def summarise(content: Mapping[str, Any]) -> str:
    """The times that were found."""
    found = [
        f"{each['text']}: {each['date_from'] or '…'} to {each['date_to'] or '…'}" for each in content["expressions"]
    ]
    return "; ".join(found) or "There is no time in it."


def reference_moment(timezone: str, reference_time: str) -> Moment:
    """The time to count from, in its zone: now unless one is given. Raises ToolError."""
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: the name of a folder, such as "Europe"
        raise ToolError(
            f"{timezone!r} is not an IANA time zone; use one like Europe/Berlin or UTC", reason="UNKNOWN_TIMEZONE"
        ) from error
    if not reference_time:
        return Moment(datetime.now(zone))
    try:
        time = datetime.fromisoformat(reference_time)
    except ValueError as error:
        raise ToolError(
            f"{reference_time!r} is not an ISO 8601 time; write it as 2024-03-05T10:00:00+01:00", reason="INVALID_TIME"
        ) from error
    return Moment(time.astimezone(zone) if time.tzinfo else time.replace(tzinfo=zone))


def enclosing_dates(periods: Iterable[Period]) -> dict[str, str | None]:
    """From the first beginning to the last end; no limit where one of them has none."""
    spans = [period.span for period in periods]
    starts, ends = [span.start for span in spans if span.start], [span.end for span in spans if span.end]
    return {
        "date_from": _text(min(starts, key=_utc)) if len(starts) == len(spans) > 0 else None,
        "date_to": _text(max(ends, key=_utc)) if len(ends) == len(spans) > 0 else None,
    }


def _dates(period: Period) -> dict[str, str | None]:
    return enclosing_dates([period])


def _text(time: datetime) -> str:
    return time.isoformat(timespec="seconds")


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC)
