"""The agents that an operator has switched off (`AGENT_SWITCHES`, one key an agent), the same on every orchestrator."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from kit.jetstream import Entry, Nats
from kit.stores.followed_settings import FollowedSettings
from services.orchestrator.errors import InvalidRequest
from services.orchestrator.state import AGENT_SWITCHES

SWITCHABLE = ("research",)
"""Agents that can be switched off: without them a question is answered by one search."""
_log = structlog.get_logger()


@dataclass(frozen=True)
class SwitchedOff:
    """That an agent is off, since when, and who did it."""

    by: str
    at: datetime


class AgentSwitches:
    """Switches agents off and on, and knows what anybody has switched."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        """`open` makes it."""
        self._now = now
        self._off: dict[str, SwitchedOff] = {}
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats, now: Callable[[], datetime]) -> "AgentSwitches":
        """Returns the switches with what is stored already in force. Raises Unavailable."""
        switches = cls(now)
        switches.settings = await FollowedSettings.open(nats, AGENT_SWITCHES.name, switches._apply)
        return switches

    @property
    def off(self) -> Mapping[str, SwitchedOff]:
        """The agents that are off, by name."""
        return dict(self._off)

    def is_on(self, name: str) -> bool:
        """Whether nobody has switched it off."""
        return name not in self._off

    async def set(self, name: str, *, enabled: bool, by: str) -> None:
        """Switches an agent on all replicas, and returns when this one knows. Harmless when repeated. Raises InvalidRequest."""
        if name not in SWITCHABLE:
            raise InvalidRequest(f"agent {name[:40]!r} cannot be switched; use {', '.join(SWITCHABLE)}", field="name")
        await self.settings.put(name, b"null" if enabled else _encoded(SwitchedOff(by, self._now())))

    async def _apply(self, entry: Entry) -> None:
        switched = _decoded(entry.value or b"null")
        self._off.pop(entry.key, None)
        if switched is not None:
            self._off[entry.key] = switched
            _log.info("agent_switched_off", agent=entry.key, by=switched.by)


def _encoded(switched: SwitchedOff) -> bytes:
    return json.dumps({"by": switched.by, "at": switched.at.isoformat()}).encode()


def _decoded(value: bytes) -> SwitchedOff | None:
    """Raises one of UNREADABLE."""
    data: dict[str, Any] | None = json.loads(value)
    return None if data is None else SwitchedOff(data["by"], datetime.fromisoformat(data["at"]))
