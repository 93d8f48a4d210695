"""`groundwork mcp`: the server's MCP over standard input and output, for desktop assistants that start a program."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import mcp_types as types
import typer
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from cli.client.gateway import is_this_machine
from cli.errors import ServerUnreachable
from cli.running import given_key, tell
from cli.settings import CliSettings
from kit.version import release

_CALL_TIMEOUT_S = 3600.0
_CONNECT_TIMEOUT_S = 10.0
Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None


def serve_stdio() -> None:
    """Serves until standard input ends, and leaves with an exit code."""
    settings = CliSettings()
    try:
        asyncio.run(_serve(settings))
    except* (httpx2.HTTPError, MCPError, OSError) as group:
        error = ServerUnreachable(
            f"{settings.base_url}/mcp cannot be reached ({_first(group)}). Is the server running?"
        )
        tell(error)
        raise typer.Exit(error.exit_code) from None


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _serve(settings: CliSettings) -> None:
    key = given_key() or settings.api_key.get_secret_value()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = httpx2.Timeout(_CALL_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S)
    trust_env = not is_this_machine(settings.base_url)
    async with httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=trust_env) as http:
        transport = streamable_http_client(f"{settings.base_url}/mcp", http_client=http)
        async with Client(transport, cache=None) as upstream, stdio_server() as (read, write):
            server = _passing_on(upstream)
            await server.run(read, write, server.create_initialization_options())


def _passing_on(upstream: Client) -> Server[Any]:
    """A server that passes each request on to `upstream`."""

    async def call_tool(context: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        async def tell_on(progress: float, total: float | None, message: str | None) -> None:
            await context.session.report_progress(progress, total, message)

        return await upstream.call_tool(call.name, call.arguments, progress_callback=tell_on)

    async def list_tools(_: Context, page: Page) -> types.ListToolsResult:
        return await upstream.list_tools(cursor=_cursor(page))

    async def list_resources(_: Context, page: Page) -> types.ListResourcesResult:
        return await upstream.list_resources(cursor=_cursor(page))

    async def list_templates(_: Context, page: Page) -> types.ListResourceTemplatesResult:
        return await upstream.list_resource_templates(cursor=_cursor(page))

    async def read_resource(_: Context, read: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await upstream.read_resource(read.uri)

    async def list_prompts(_: Context, page: Page) -> types.ListPromptsResult:
        return await upstream.list_prompts(cursor=_cursor(page))

    async def get_prompt(_: Context, asked: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await upstream.get_prompt(asked.name, asked.arguments)

    return Server(
        "groundwork",
        title="Groundwork",
        version=release(),
        instructions=upstream.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _cursor(page: Page) -> str | None:
    return page.cursor if page else None
