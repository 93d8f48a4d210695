"""Asks GitHub by the connection of a call's caller."""

from typing import Any

from services.tools.connections.github import Asked
from services.tools.connections.records import GITHUB, not_connected
from services.tools.context import ToolContext


async def ask(asked: Asked, context: ToolContext) -> Any:
    """GitHub's answer as JSON. Raises ToolError and CallInDoubt."""
    services, caller = context.services, context.caller
    if services.github is None or services.connections is None:
        raise not_connected(GITHUB)
    connection = await services.connections.usable(caller.tenant_id, caller.subject, GITHUB)
    return await services.github.ask(asked, connection, tenant_id=caller.tenant_id, run=context.run_id)
