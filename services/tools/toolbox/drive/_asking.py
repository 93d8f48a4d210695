"""What the tools of Google Drive have in common."""

from collections.abc import Callable, Coroutine
from typing import Any

from services.tools.connections.drive import GoogleDrive
from services.tools.connections.records import DRIVE, Answer, Connection, not_connected
from services.tools.context import ToolContext

CALLED_FOR_BY = (r"\b(?:google ?)?drive\b|\bgoogle (?:docs?|sheets?|slides)\b|\bshared (?:folder|drive)\b",)


async def ask_drive(
    context: ToolContext, ask: Callable[[GoogleDrive, Connection], Coroutine[Any, Any, Answer]]
) -> Answer:
    """Asks Google Drive by the connection of the call's caller. Raises ToolError."""
    drive, connections = context.services.drive, context.services.connections
    if drive is None or connections is None:
        raise not_connected(DRIVE)
    return await connections.ask(context.caller, DRIVE, lambda connection: ask(drive, connection))
