"""`groundwork connections`: services that tools use in your name, such as GitHub."""

from __future__ import annotations

import sys
from getpass import getpass
from pathlib import Path
from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.display.output import Output
from cli.running import WHERE, run

connections = typer.Typer(no_args_is_help=True, help="Services that tools use in your name, such as GitHub.")
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Service = Annotated[str, typer.Argument(help="The service, such as github.")]
Shared = Annotated[bool, typer.Option("--shared", help="For everybody in your tenant; needs the scope `admin`.")]
Account = Annotated[str, typer.Option("--account", help="The user of the mailbox, mostly its address. For mail alone.")]
_PATH = "/v1/connections"


@connections.command("list", epilog=WHERE)
def list_connections(as_json: AsJson = False) -> None:
    """Your connections and those of your tenant, and what can be connected."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", _PATH)
        _show(output, found, found["connections"])
        if not as_json:
            output.err.print(f"Can be connected: {', '.join(found['services']) or 'nothing'}", markup=False)
            if found["logins"]:
                output.err.print(f"By `groundwork connections login`: {', '.join(found['logins'])}", markup=False)
        return 0

    run(command)


@connections.command("add", epilog=WHERE)
def add(
    service: Service,
    account: Account = "",
    shared: Shared = False,
    file: Annotated[Path | None, typer.Option("--file", help="Read the credential from this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Connect a service, so that its tools are offered. You are asked for its access token or password.

    Without a terminal it is read from standard input, one line. For GitHub make a token at
    https://github.com/settings/personal-access-tokens with the repositories and permissions that tools may have. Mail takes a
    password and needs --account. Google Drive takes the JSON file of a service account's key, or of a login of yours with the right
    to read, by --file.
    """
    output = Output(as_json=as_json)
    secret = _credential(file)

    async def command(gateway: Gateway) -> int:
        body = {"secret": secret, "shared": shared, "account": account}
        made = await gateway.request("PUT", f"{_PATH}/{in_path(service, 'service')}", json=body)
        _show(output, made, [made])
        return 0

    run(command)


@connections.command("login", epilog=WHERE)
def login(service: Service, account: Account = "", shared: Shared = False, as_json: AsJson = False) -> None:
    """Connect a service by a login there: open the address that is shown, type the code, and allow it.

    `list` names the services that can be connected so. The command waits until you have agreed, or the code has ended. Google lets
    such a login read only files that were made or opened with this installation's client; `add` connects all your files.
    """
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        path = f"{_PATH}/{in_path(service, 'service')}/login"
        begun = await gateway.request("POST", path, json={"shared": shared, "account": account})
        output.err.print(f"Open {begun['verification_url']} and type the code {begun['user_code']}", markup=False)
        said: Json = {"connection": None, "login": begun["login"]}
        while said["connection"] is None:
            said = await gateway.request("POST", f"{path}/finish", json={"login": said["login"]})
        _show(output, said["connection"], [said["connection"]])
        return 0

    run(command)


@connections.command("remove", epilog=WHERE)
def remove(service: Service, shared: Shared = False) -> None:
    """Forget a connection. Withdraw the token at the service as well if nothing else uses it."""

    async def command(gateway: Gateway) -> int:
        params = {"shared": "true"} if shared else {}
        await gateway.request("DELETE", f"{_PATH}/{in_path(service, 'service')}", params=params)
        return 0

    run(command)


def _credential(file: Path | None) -> str:
    if file is not None:
        try:
            return file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{file} cannot be read: {error}") from error
    return getpass("access token or password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")


def _show(output: Output, document: Json, found: list[Json]) -> None:
    if output.as_json:
        output.json(document)
        return
    rows = [
        [each["service"], each["account"], "the tenant" if each["shared"] else "you", each["address"], each["error"]]
        for each in found
    ]
    output.table(["service", "account", "whose", "address", "problem"], rows, whole={"service", "account"})
