"""Which agents an operator has switched off (`AGENT_SWITCHES`, one key an agent): every orchestrator follows that bucket, and after
a restart it still holds."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from kit import deadline
from kit.errors import Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.jetstream.opening import patient
from kit.records import UNREADABLE, set_aside
from services.orchestrator.errors import InvalidRequest
from services.orchestrator.state import AGENT_SWITCHES

SWITCHABLE = ("research",)
"""Agents that can be switched off: without them a question is answered by one search."""
_log = structlog.get_logger()
_RETRY_AFTER_S = 1.0
_APPLIED_WITHIN_S = 5.0


@dataclass(frozen=True)
class SwitchedOff:
    """That an agent is off, since when, and who did it."""

    by: str
    at: datetime


class AgentSwitches:
    """Switches agents off and on, and knows what anybody has switched."""

    def __init__(self, bucket: KeyValue, now: Callable[[], datetime]) -> None:
        self._bucket = bucket
        self._now = now
        self._off: dict[str, SwitchedOff] = {}
        self._applied_revision = 0
        self._applied = asyncio.Condition()

    @classmethod
    @patient
    async def open(cls, nats: Nats, now: Callable[[], datetime]) -> "AgentSwitches":
        """With what is switched already in force. Raises Unavailable."""
        switches = cls(await KeyValue.open(nats, AGENT_SWITCHES.name), now)
        async for entry in switches._bucket.entries(">"):
            await switches._apply(entry)
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
        revision = await self._bucket.put(name, b"null" if enabled else _encoded(SwitchedOff(by, self._now())))
        try:
            async with asyncio.timeout(deadline.bounded_timeout_s(_APPLIED_WITHIN_S)), self._applied:
                await self._applied.wait_for(lambda: self._applied_revision >= revision)
        except TimeoutError as error:
            raise Unavailable(
                "the agent is switched, but this process has not heard of it yet; look again in a few seconds",
                reason="SWITCH_NOT_YET_APPLIED",
            ) from error

    async def follow(self) -> None:
        """Applies what is switched, here or elsewhere. Runs until cancelled."""
        while True:
            try:
                async with aclosing(self._bucket.watch()) as updates:
                    async for entry in updates:
                        if entry is not None:
                            await self._apply(entry)
            except Unavailable as error:
                _log.warning("agent_switches_not_followed", error=error.message)
                await asyncio.sleep(_RETRY_AFTER_S)

    async def _apply(self, entry: Entry) -> None:
        try:
            switched = _decoded(entry.value or b"null")
        except UNREADABLE as error:  # a newer version's, perhaps
            set_aside(AGENT_SWITCHES.name, entry.key, error)
        else:
            self._off.pop(entry.key, None)
            if switched is not None:
                self._off[entry.key] = switched
                _log.info("agent_switched_off", agent=entry.key, by=switched.by)
        async with self._applied:
            self._applied_revision = max(self._applied_revision, entry.revision)
            self._applied.notify_all()


def _encoded(switched: SwitchedOff) -> bytes:
    return json.dumps({"by": switched.by, "at": switched.at.isoformat()}).encode()


def _decoded(value: bytes) -> SwitchedOff | None:
    """Raises one of UNREADABLE."""
    data: dict[str, Any] | None = json.loads(value)
    return None if data is None else SwitchedOff(data["by"], datetime.fromisoformat(data["at"]))
