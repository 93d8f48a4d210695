"""Reads event streams in tests."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Received:
    event: str
    data: dict[str, Any]
    id: str | None


async def received(response: httpx.Response) -> AsyncIterator[Received]:
    """Events as they arrive."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if not line:
            if "data" in fields:
                yield Received(fields["event"], json.loads(fields["data"]), fields.get("id"))
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


async def ids(response: httpx.Response) -> list[str | None]:
    return [each.id async for each in received(response)]
