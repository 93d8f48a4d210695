"""The gateway's own domain: events on their way to a client, and what a service's health check said."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = dict[str, Any]
"""A JSON object."""


@dataclass(frozen=True)
class RunEvent:
    """One entry of a run's log, ready to be sent."""

    run_id: str
    seq: int
    kind: str
    """Name of the payload in the contract's RunEvent."""
    data: Json
    """run_id, seq, at and the payload's fields."""

    @property
    def is_last(self) -> bool:
        return self.kind == "done"


class HealthState(StrEnum):
    """What a service's health check said."""

    SERVING = "serving"
    NOT_SERVING = "not_serving"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Health:
    """State of one service."""

    state: HealthState
    detail: str = ""
    kinds: tuple[str, ...] = ()
