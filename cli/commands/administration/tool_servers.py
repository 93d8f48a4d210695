"""`groundwork tool-servers`: MCP servers, and which of their tools agents may use."""

from __future__ import annotations

import asyncio
import json
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from getpass import getpass
from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.client.login_answer import listening
from cli.deleting import confirm
from cli.display.output import Output
from cli.display.terminal import escape
from cli.errors import UsageError
from cli.running import WHERE, run

tool_servers = typer.Typer(no_args_is_help=True, help="MCP servers, and which of their tools agents may use.")
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Server = Annotated[str, typer.Argument(help="Name of the server.")]
Tool = Annotated[str, typer.Argument(help="Name of the tool at its server.")]
_PATH = "/v1/tool-servers"
_PERSON_TAKES_S = 600.0


@tool_servers.command("list", epilog=WHERE)
def list_servers(as_json: AsJson = False) -> None:
    """Servers and their tools: what each says of itself, and whether it is approved."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", _PATH)
        _show(output, found, found["servers"])
        return 0

    run(command)


@tool_servers.command("add", epilog=WHERE)
def add(
    server: Server,
    url: Annotated[str, typer.Argument(help="Its address, https://…")],
    header: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a header that it is sent, such as Authorization. Its value is a secret: you are asked for it."
        ),
    ] = None,
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Remove the headers that are sent to it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a server for your tenant, or change it. Its tools are offered once they are approved.

    Without a terminal the values of headers are read from standard input, one a line.
    """
    if header and no_headers:
        raise UsageError("give either --header or --no-headers")
    headers = {name: _secret(name) for name in header or ()}
    body: Json = {"url": url, "headers": headers} if header or no_headers else {"url": url}
    _change("PUT", server, body, as_json=as_json)


def _secret(name: str) -> str:
    return getpass(f"{name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")


@tool_servers.command("remove", epilog=WHERE)
def remove(server: Server) -> None:
    """Remove a server of your tenant."""

    async def command(gateway: Gateway) -> int:
        await gateway.request("DELETE", f"{_PATH}/{in_path(server, 'server')}")
        return 0

    run(command)


@tool_servers.command("approve", epilog=WHERE)
def approve(
    server: Server,
    tool: Tool,
    reads_only: Annotated[
        bool, typer.Option("--reads-only", help="It changes nothing: no person is asked for each call.")
    ] = False,
    digest: Annotated[str, typer.Option(help="Approve what has this digest, without a question.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let agents use a tool as it describes itself. Shows what that is, and asks."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        read = digest
        if not read:
            described = _tool(await gateway.request("GET", _PATH), server, tool)
            _tell(output, described)
            if not yes:
                confirm(f"Let agents use {tool} of the server {server}?", "Nothing was approved.")
            read = described["digest"]
        path = f"{_PATH}/{in_path(server, 'server')}/tools/{in_path(tool, 'tool')}"
        changed = await gateway.request("PUT", path, json={"digest": read, "reads_only": reads_only})
        _show(output, changed, [changed])
        return 0

    run(command)


@tool_servers.command("login", epilog=WHERE)
def login(
    server: Server,
    client_id: Annotated[
        str,
        typer.Option(help="Of a client that is registered there. You are asked for its secret, which may be empty."),
    ] = "",
    scope: Annotated[str, typer.Option(help="What to ask for; otherwise what the server says.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on which this command waits for the browser.")] = 0,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="The browser is on another machine: it ends at a page of the server.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Log in at a server of your tenant that wants it (OAuth). Opens a browser, and waits for it."""
    output = Output(as_json=as_json)
    asked: Json = {"client_id": client_id, "scope": scope}
    if client_id:
        asked["client_secret"] = _secret("client secret")

    async def command(gateway: Gateway) -> int:
        path = f"{_PATH}/{in_path(server, 'server')}/login"
        if elsewhere:
            begun = await gateway.request("POST", path, json=asked)
            _show_address(output, begun)
            return 0
        async with listening(port) as (redirect_uri, brought):
            begun = await gateway.request("POST", path, json={**asked, "redirect_uri": redirect_uri})
            _show_address(Output(as_json=False), begun)
            if sys.stdin.isatty():
                await asyncio.to_thread(webbrowser.open, begun["authorization_url"])
            given = await _in_time(brought)
        answer = {name: given.get(name, "") for name in ("state", "code")}
        done = await gateway.request("POST", f"{path}/answer", json={**answer, "iss": given.get("iss")})
        _show(output, done, [done])
        return 0

    run(command, interrupted="Not logged in.")


async def _in_time(brought: Callable[[], Awaitable[Json]]) -> Json:
    try:
        async with asyncio.timeout(_PERSON_TAKES_S):
            return await brought()
    except TimeoutError as error:
        raise UsageError("No browser came back in ten minutes. Log in again.") from error


def _show_address(output: Output, begun: Json) -> None:
    if output.as_json:
        output.json(begun)
        return
    output.err.print("Open this address in a browser:", markup=False)
    output.err.print(begun["authorization_url"], markup=False)


@tool_servers.command("logout", epilog=WHERE)
def logout(server: Server) -> None:
    """Forget the login at a server of your tenant."""

    async def command(gateway: Gateway) -> int:
        await gateway.request("DELETE", f"{_PATH}/{in_path(server, 'server')}/login")
        return 0

    run(command)


@tool_servers.command("withdraw", epilog=WHERE)
def withdraw(server: Server, tool: Tool, as_json: AsJson = False) -> None:
    """Take the approval of a tool back."""
    _change("DELETE", f"{server}/tools/{in_path(tool, 'tool')}", None, as_json=as_json)


def _change(method: str, place: str, body: Json | None, *, as_json: bool) -> None:
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        name, _, rest = place.partition("/")
        path = f"{_PATH}/{in_path(name, 'server')}" + (f"/{rest}" if rest else "")
        changed = await gateway.request(method, path, **({"json": body} if body else {}))
        _show(output, changed, [changed])
        return 0

    run(command)


def _tool(found: Json, server: str, tool: str) -> Json:
    for each in (each for listed in found["servers"] if listed["name"] == server for each in listed["tools"]):
        if each["name"] == tool:
            return dict(each)
    raise UsageError(f"server {server} has no tool {tool}. `groundwork tool-servers list` shows what there is.")


def _tell(output: Output, tool: Json) -> None:
    """What is to be approved, on stderr."""
    arguments = json.dumps(tool["parameters"], ensure_ascii=False, indent=2)
    fields = [
        ("says", tool["description"]),
        ("arguments", arguments),
        ("state", tool["state"]),
        ("digest", tool["digest"]),
    ]
    for name, text in fields:
        output.err.print(f"[bold]{name}[/bold] {escape(text)}")


def _show(output: Output, document: Json, servers: list[Json]) -> None:
    if output.as_json:
        output.json(document)
        return
    rows = [
        [server["name"], tool["name"], tool["state"], "yes" if tool["reads_only"] else "", tool["description"]]
        for server in servers
        for tool in server["tools"]
    ]
    rows += [[server["name"], "", "cannot be asked", "", server["error"]] for server in servers if server["error"]]
    rows += [
        [server["name"], "", "no tools", "", "it says that it has none"]
        for server in servers
        if not server["tools"] and not server["error"]
    ]
    output.table(["server", "tool", "state", "reads only", "what it says"], rows, whole={"server", "tool"})
