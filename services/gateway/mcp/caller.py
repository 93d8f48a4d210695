"""The client of the MCP request at hand, and what the tools need of it."""

from contextvars import ContextVar
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request

from services.gateway.mcp.own_api import OwnApi, Refused
from services.gateway.models import Json
from services.gateway.serving.requests import base_url, passage_url

_at_hand: ContextVar[Request | None] = ContextVar("mcp_request", default=None)
COLLECTIONS_MAX = 64
"""Collections that one search may name."""


def take_in_hand(context: ServerRequestContext[Any, Any]) -> None:
    """Has `request_at_hand` answer with the HTTP request that brought this MCP message."""
    if isinstance(context.request, Request):
        _at_hand.set(context.request)


def request_at_hand() -> Request:
    """The HTTP request that brought the MCP message. Raises RuntimeError outside of one."""
    request = _at_hand.get()
    if request is None:
        raise RuntimeError("no MCP request is at hand")
    return request


def request_of(context: Context[Any, Any]) -> Request:
    """The HTTP request that brought a call of a tool."""
    request = context.request_context.request
    if not isinstance(request, Request):
        raise TypeError("the call of a tool came without an HTTP request")
    return request


def part(id_: str) -> str:
    """The id as one part of a path. Raises ToolError where it would lead to another route."""
    if not id_ or "/" in id_ or not id_.isprintable():
        raise ToolError(f"{id_[:80]!r} is no id; take one from an earlier answer")
    return id_


class CallersApi:
    """The API as tools call it: what it refuses is an error for the model."""

    def __init__(self, api: OwnApi, public_url: str) -> None:
        """`public_url`: where people reach the gateway; empty: under the name that the request has."""
        self.own = api
        self._public_url = public_url

    async def json(self, client: Request, method: str, path: str, **options: Any) -> Json:
        """The answer as JSON. Raises ToolError."""
        try:
            return await self.own.json(client, method, path, **options)
        except Refused as refused:
            raise ToolError(str(refused)) from refused

    async def readable(self, client: Request, collection_ids: list[str] | None) -> list[str]:
        """The named collections; without names all that the client may read, at most COLLECTIONS_MAX."""
        if collection_ids:
            return collection_ids
        listed = await self.json(client, "GET", "/v1/collections")
        return [each["id"] for each in listed["collections"]][:COLLECTIONS_MAX] or ["default"]

    def base_url(self, client: Request) -> str:
        """Where the client reaches the gateway."""
        return base_url(client.scope, self._public_url)

    def passage_url(self, client: Request, chunk_id: str | None) -> str:
        """Address of a passage, for a citation."""
        return passage_url(self.base_url(client), chunk_id) if chunk_id else ""
