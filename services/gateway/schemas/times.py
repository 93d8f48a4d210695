"""Times as clients see them."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema


def rfc3339(moment: datetime) -> str:
    """An aware time as RFC 3339 in UTC, always with three decimals: such texts sort as their times do."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Moment = Annotated[
    datetime,
    PlainSerializer(rfc3339, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time in an answer. Pydantic alone leaves the decimals out of a whole second, which then sorts after its fractions."""
