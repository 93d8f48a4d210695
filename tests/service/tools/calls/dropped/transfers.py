"""A tool whose effect must not happen twice. Its process dies in the middle."""

from typing import Any

from services.tools.models import Effect, Policy
from tests.service.tools.calls.dying import SCHEMA_OF_FILE, write_and_die

SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {"name": "transfers", "description": "Transfers.", "parameters": SCHEMA_OF_FILE},
}
POLICY = Policy(timeout_s=5.0, effect=Effect.ONCE)


async def transfers(file: str) -> dict[str, Any]:
    return write_and_die(file)
