"""Costs of runs in a NATS key-value bucket: `<tenant>.<user>.<day>.<run>`, so that the server lists a day of one user or of all."""

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import date

from kit.jetstream import KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from services.orchestrator.models import RunKey
from services.orchestrator.runs.tally import RunCost
from services.orchestrator.state import COSTS

_DAY_S = 86_400.0


class KeyValueTally:
    """Tally over a bucket whose entries vanish after `retention_days`."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    @classmethod
    async def open(cls, nats: Nats, *, retention_days: float) -> "KeyValueTally":
        return cls(await KeyValue.open(nats, COSTS.name, ttl_s=retention_days * _DAY_S))

    async def put(self, cost: RunCost) -> None:
        place = f"{cost.key.tenant_id}.{_word(cost.subject)}.{cost.day.isoformat()}.{cost.key.run_id}"
        await self._bucket.put(place, _encode(cost))

    async def of_day(self, tenant_id: str, subject: str, day: date) -> AsyncGenerator[RunCost, None]:
        user = _word(subject) if subject else "*"
        async with aclosing(self._bucket.entries(f"{tenant_id}.{user}.{day.isoformat()}.*")) as entries:  # type: ignore[type-var] # a generator in fact
            async for entry in entries:
                try:
                    yield _decode(entry.key, entry.value or b"")
                except UNREADABLE as error:
                    set_aside(COSTS.name, entry.key, error)


def _word(subject: str) -> str:
    """A user's name in letters that a key may have."""
    return base64.urlsafe_b64encode(subject.encode()).decode().rstrip("=")


def _encode(cost: RunCost) -> bytes:
    return json.dumps(
        {
            "subject": cost.subject,
            "thread_id": cost.thread_id,
            "model": cost.model,
            "prompt_tokens": cost.prompt_tokens,
            "completion_tokens": cost.completion_tokens,
            "cost_usd": cost.cost_usd,
        }
    ).encode()


def _decode(place: str, value: bytes) -> RunCost:
    """Raises one of UNREADABLE."""
    tenant_id, _, day, run_id = place.split(".")
    data = json.loads(value)
    return RunCost(
        RunKey(tenant_id, run_id),
        data["subject"],
        date.fromisoformat(day),
        data["thread_id"],
        data["model"],
        int(data["prompt_tokens"]),
        int(data["completion_tokens"]),
        float(data["cost_usd"]),
    )
