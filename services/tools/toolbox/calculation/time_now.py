"""The current date and time in a time zone: a model knows neither."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from services.tools.errors import ToolError
from services.tools.models import Policy, WithoutModel

SCHEMA = {
    "type": "function",
    "function": {
        "name": "time_now",
        "description": "Tells the current date, time and weekday in a time zone.",
        "parameters": {
            "type": "object",
            "properties": {
                "timezone": {
                    "type": "string",
                    "description": "IANA time zone, for example Europe/Berlin. Default: UTC.",
                    "minLength": 1,
                    "maxLength": 64,
                }
            },
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    self_contained=True,
    timeout_s=2.0,
    worth=5,
    called_for_by=(
        r"what time|what day|what date|current (?:time|date)|today|right now",
        r"wie spät|uhrzeit|wie ?viel uhr|welche[rns]? (?:wochen)?(?:tag|datum)|\bheute\b",
        r"quelle heure|quel jour|aujourd",
        r"qu[eé] hora|qu[eé] d[ií]a|\bhoy\b",
        r"che or[ae]|che giorno|\boggi\b",
        r"que horas|que dia|\bhoje\b",
        r"hoe laat|vandaag",
        r"która godzina|dzisiaj|\bdziś",
        r"который час|сколько времени|сегодня|котра година|сьогодні",
        r"saat kaç|bugün",
        r"几点|今天|何時|今日|몇 ?시|오늘|كم الساعة|اليوم",
    ),
    without_model=WithoutModel("time", ability="tell the date and time"),
)


def time_now(timezone: str = "UTC") -> dict[str, Any]:
    """ISO 8601 time with offset, weekday in English, Unix time in seconds."""
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # OSError: the name of a folder, such as "Europe"
        raise ToolError(
            f"{timezone!r} is not an IANA time zone; use one like Europe/Berlin or UTC", reason="UNKNOWN_TIMEZONE"
        ) from error
    now = datetime.now(zone)
    return {
        "timezone": timezone,
        "time": now.isoformat(timespec="seconds"),
        "weekday": now.strftime("%A"),
        "unix_s": int(now.timestamp()),
    }


def summarise(content: Mapping[str, Any]) -> str:
    """Day and time."""
    return f"It is {content['weekday']}, {content['time'][:10]}, {content['time'][11:16]} ({content['timezone']})."
