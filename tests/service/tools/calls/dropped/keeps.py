"""A tool whose effect is there once, however often it is done. Its process dies in the middle."""

from typing import Any

from services.tools.models import Effect, Policy
from tests.service.tools.calls.dying import SCHEMA_OF_FILE, write_and_die

SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {"name": "keeps", "description": "Keeps.", "parameters": SCHEMA_OF_FILE},
}
POLICY = Policy(timeout_s=5.0, effect=Effect.IDEMPOTENT)


async def keeps(file: str) -> dict[str, Any]:
    return write_and_die(file)
