"""What the tools of Google Drive have in common."""

from services.tools.connections.drive import GoogleDrive
from services.tools.connections.records import DRIVE, Connection, not_connected
from services.tools.context import ToolContext

CALLED_FOR_BY = (r"\b(?:google ?)?drive\b|\bgoogle (?:docs?|sheets?|slides)\b|\bshared (?:folder|drive)\b",)


async def opened(context: ToolContext) -> tuple[GoogleDrive, Connection]:
    """Google Drive, and the connection of the call's caller. Raises ToolError."""
    services, caller = context.services, context.caller
    if services.drive is None or services.connections is None:
        raise not_connected(DRIVE)
    return services.drive, await services.connections.usable(caller.tenant_id, caller.subject, DRIVE)
