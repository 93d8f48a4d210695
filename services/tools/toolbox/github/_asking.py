"""Asks GitHub by the connection of a call's caller."""

from typing import Any

from services.tools.connections.github import Asked
from services.tools.connections.records import GITHUB, not_connected
from services.tools.context import ToolContext


async def ask(asked: Asked, context: ToolContext) -> Any:
    """GitHub's answer as JSON. Raises ToolError and CallInDoubt."""
    github, connections, caller = context.services.github, context.services.connections, context.caller
    if github is None or connections is None:
        raise not_connected(GITHUB)
    return await connections.ask(
        caller,
        GITHUB,
        lambda connection: github.ask(asked, connection, tenant_id=caller.tenant_id, run=context.run_id),
    )
