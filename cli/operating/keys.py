"""`groundwork keys`: API keys, by which the gateway knows its callers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.display.output import Output
from cli.durations import resolve_future_time, seconds_of
from cli.errors import UsageError, in_words
from cli.running import WHERE, run

keys = typer.Typer(no_args_is_help=True, help="API keys: make, list, rotate, revoke; make the first one.", epilog=WHERE)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
KeyId = Annotated[str, typer.Argument(help="The key's id: what stands between its two `_`.")]


@keys.command(name="create")
def create(
    name: Annotated[str, typer.Argument(help="For people: who or what uses it.")],
    scope: Annotated[list[str], typer.Option("--scope", "-s", help="query, ingest, admin or operator; repeatable.")] = [  # noqa: B006
        "query"
    ],
    subject: Annotated[str, typer.Option(help="The user for whom it speaks; yourself if left out.")] = "",
    tenant: Annotated[str, typer.Option(help="The tenant; yours if left out. For operators.")] = "",
    group: Annotated[list[str], typer.Option("--group", help="A group that its user is in; repeatable.")] = [],  # noqa: B006
    expires: Annotated[str | None, typer.Option(help="In how long: 90d, 12h. Or when: 2027-01-31.")] = None,
    guard: Annotated[
        str | None, typer.Option(help="Least of what becomes of unsafe questions asked with it: flag or block.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="How memory is used where a request does not say: auto, agentic, always or off.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key, and print it. It is shown only now."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        body = {
            "name": in_words(name, "name"),
            "scopes": scope,
            "subject": subject,
            "tenant_id": tenant,
            "groups": group,
            "expires_at": expires and resolve_future_time(expires),
            **({"guard": guard} if guard else {}),
            **({"memory": memory} if memory else {}),
        }
        made = await gateway.request("POST", "/v1/keys", json=body)
        _show_text(output, made, f"Key {made['id']} of {made['tenant_id']}/{made['subject']}: {_scopes(made)}.")
        return 0

    run(command)


@keys.command(name="list")
def list_keys(
    tenant: Annotated[str, typer.Option(help="Of this tenant; yours if left out. For operators.")] = "",
    as_json: AsJson = False,
) -> None:
    """Your keys, or all of the tenant if you may; newest first."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.pages("/v1/keys", "keys", {"tenant_id": tenant})
        if as_json:
            output.json({"keys": found})
        else:
            rows = [[each["id"], each["status"], each["subject"], _scopes(each), *_times(each)] for each in found]
            head = ["id", "status", "subject", "scopes", "expires", "last used"]
            output.table(
                [*head, "name"], [[*row, each["name"]] for row, each in zip(rows, found, strict=True)], whole={"id"}
            )
        return 0

    run(command)


@keys.command(name="show")
def show(key_id: KeyId, as_json: AsJson = False) -> None:
    """One key: whose it is, what it may do, when it was used. Its text is not kept."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        key = await gateway.request("GET", _path(key_id))
        if as_json:
            output.json(key)
        else:
            output.table(["", ""], [[name, _cell(value)] for name, value in key.items()])
        return 0

    run(command)


@keys.command(name="rotate")
def rotate(
    key_id: KeyId,
    keep_old: Annotated[
        str, typer.Option(help="How long the present text stays good: 90s, 12h, 7d. 0s when it has leaked.")
    ] = "1d",
    as_json: AsJson = False,
) -> None:
    """Give a key a new text, and print it. Clients can be given it without a stop: the present one stays good for a day."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        body = {"keep_old_for_s": seconds_of(keep_old)}
        made = await gateway.request("POST", f"{_path(key_id)}/rotate", json=body)
        until = made.get("old_text_until")
        _show_text(
            output, made, f"The text until now is good until {until}." if until else "The text until now is void."
        )
        return 0

    run(command)


@keys.command(name="revoke")
def revoke(key_ids: Annotated[list[str], typer.Argument(help="Keys, by their ids.")], as_json: AsJson = False) -> None:
    """Revoke keys: nothing is answered to them from now on. They stay listed."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        for each in key_ids:
            await gateway.request("DELETE", _path(each))
            if not as_json:
                output.out.print(f"revoked {each}")
        if as_json:
            output.json({"revoked": key_ids})
        return 0

    run(command)


@keys.command(name="bootstrap")
def bootstrap(
    another: Annotated[bool, typer.Option("--another", help="Although an operator has one: it is lost.")] = False,
    if_none: Annotated[bool, typer.Option("--if-none", help="Exit code 0 although an operator has one.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write it to this new file, which only you can read.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the first key, an operator's, and print it. Needs no key, but access to the message store.

    The system is the one of GROUNDWORK_DATA_DIR, or the cluster whose message store GROUNDWORK_NATS_URL names.
    """
    from cli.operating.first_key import bootstrap as make  # noqa: PLC0415 - clients should start fast

    raise typer.Exit(make(another=another, if_none=if_none, output=output, as_json=as_json))


def _path(key_id: str) -> str:
    if key_id.startswith("gw_"):
        raise UsageError(
            "That is a key, not its id: the id is what stands between its two `_`. Keys belong on no command line."
        )
    return f"/v1/keys/{in_path(key_id, 'key')}"


def _show_text(output: Output, made: Json, remark: str) -> None:
    """The text alone on stdout, for pipes."""
    if output.as_json:
        output.json(made)
        return
    output.out.print(made["key"], markup=False)
    output.err.print(f"{remark} The key is shown only now.", markup=False)


def _scopes(key: Json) -> str:
    return ", ".join(key["scopes"])


def _times(key: Json) -> list[str]:
    return [key.get("expires_at") or "", key.get("last_used_at") or ""]


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value or "")
