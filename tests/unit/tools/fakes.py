"""Fakes of the toolbox's ports."""

from dataclasses import replace
from datetime import UTC, datetime

from kit.errors import Unavailable
from services.tools.ports import NotedCall

START = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryCallStore:
    """CallStore in a dict. `down` makes it unreachable; `ends_lost` is how many ends it does not take."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], NotedCall] = {}
        self.forgotten: set[tuple[str, str]] = set()
        self.down = False
        self.ends_lost = 0

    async def begin(self, tenant_id: str, call_id: str, call: NotedCall) -> NotedCall | None:
        self._check()
        if (tenant_id, _caller(call_id)) in self.forgotten:
            call = replace(call, forgotten=True)
            return self.calls.setdefault((tenant_id, call_id), call)
        there = self.calls.setdefault((tenant_id, call_id), call)
        return None if there is call else there

    async def get(self, tenant_id: str, call_id: str) -> NotedCall | None:
        self._check()
        return self.calls.get((tenant_id, call_id))

    async def end(self, tenant_id: str, call_id: str, call: NotedCall) -> None:
        self._check()
        if self.ends_lost:
            self.ends_lost -= 1
            raise Unavailable("the store is away")
        if not self.calls[tenant_id, call_id].forgotten:
            self.calls[tenant_id, call_id] = call

    async def forget(self, tenant_id: str, caller: str) -> None:
        self._check()
        self.forgotten.add((tenant_id, caller))
        for (tenant, call_id), call in self.calls.items():
            if (tenant, _caller(call_id)) == (tenant_id, caller):
                self.calls[tenant, call_id] = replace(call, outcome=None, forgotten=True)

    def _check(self) -> None:
        if self.down:
            raise Unavailable("the store is away")


def _caller(call_id: str) -> str:
    return call_id.partition("/")[0]
