"""A tool without effect that tells what it does, and waits until a test lets it go on or hangs up."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from services.tools.context import ToolContext
from services.tools.models import Policy

SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "tells",
        "description": "Tells.",
        "parameters": {"type": "object", "properties": {"times": {"type": "integer"}}},
    },
}
POLICY = Policy(timeout_s=60.0)


@dataclass
class Control:
    """What a test in the same process holds."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)


control = Control()


async def tells(context: ToolContext, times: int = 2) -> dict[str, Any]:
    try:
        for number in range(times):
            await context.progress(f"Step {number}.")
        await control.go_on.wait()
    finally:
        control.stopped.set()
    return {"told": times}
