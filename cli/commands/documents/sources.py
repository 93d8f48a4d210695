"""`groundwork sources` and `groundwork watch`: places from which collections are filled, and with which they stay in step."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from getpass import getpass
from pathlib import Path
from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path, is_this_machine
from cli.commands.documents.collections import ensure_collection
from cli.deleting import Yes, confirm
from cli.display.output import PROGRESS_INTERVAL_S, Output
from cli.display.terminal import escape
from cli.errors import UsageError, given
from cli.running import WHERE, run
from cli.settings import CliSettings

sources = typer.Typer(no_args_is_help=True, help="Sources: places from which collections are filled.", epilog=WHERE)

LIST_FILE = "watched-folders.json"
"""In the data directory: the folders that sources on this machine may watch."""
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Id = Annotated[str, typer.Argument(help="Source, as `groundwork sources list` shows it.", metavar="ID")]
Collection = Annotated[str, typer.Option("--collection", "-c", help="Collection to fill.")]
Every = Annotated[int, typer.Option(help="Seconds from the end of a sync to the next.", min=60, max=604_800)]
Create = Annotated[bool, typer.Option("--create", help="Make the collection if there is none. It is private.")]
_PATH = "/v1/sources"
_LOOK_EVERY_S = 0.5
_COLUMNS = ["id", "name", "kind", "collection", "state", "files", "failing", "next"]


@sources.command(name="list")
def list_sources(
    collection: Annotated[str, typer.Option("--collection", "-c", help="Only this collection.")] = "",
    as_json: AsJson = False,
) -> None:
    """The sources of the collections that you may read."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", _PATH, params={"collection_id": collection})
        if as_json:
            output.json(found)
        else:
            output.table(_COLUMNS, [_row(each) for each in found["sources"]], whole={"id"})
        return 0

    run(command)


@sources.command()
def show(source_id: Id, as_json: AsJson = False) -> None:
    """One source: how far it is, and each file that could not be taken or read. Exit code 1 if there are such."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        return _tell(output, await gateway.request("GET", _path(source_id)))

    run(command)


@sources.command()
def add(
    kind: Annotated[str, typer.Argument(help="What kind of place it is, such as folder.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Where it is, in the words of its kind.", metavar="NAME=VALUE…")
    ] = None,
    collection: Collection = "default",
    name: Annotated[str, typer.Option(help="The folder of its documents' names.")] = "",
    every: Every = 900,
    secret: Annotated[
        list[str] | None, typer.Option(help="Name of something that it takes to get in. You are asked for its value.")
    ] = None,
    create: Create = False,
    wait: Annotated[bool, typer.Option(help="Wait until its first sync is over and its files are indexed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fill a collection from a source, and keep it in step. A folder of the server needs the scope `admin`.

    Without a terminal the values of secrets are read from standard input, one a line.
    """
    output = Output(as_json=as_json)
    asked_for = {each: _secret(each) for each in secret or ()}

    async def command(gateway: Gateway) -> int:
        body: Json = {
            "kind": kind,
            "collection_id": collection,
            "name": name,
            "settings": _pairs(settings or []),
            "secrets": asked_for,
            "every_s": every,
        }
        if create:
            await ensure_collection(gateway, collection)
        made = await gateway.request("POST", _PATH, json=body)
        return _tell(output, await _settled(gateway, made["id"], output) if wait else made)

    run(command, interrupted="Stopped waiting. The source goes on; see: groundwork sources list")


@sources.command(name="run")
def run_now(
    source_id: Id,
    accept_empty: Annotated[
        bool, typer.Option("--accept-empty", help="Remove all documents of a source that has become empty.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until the sync is over and its files are indexed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Sync a source now. Files that could not be read are tried again."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        asked = await gateway.request("POST", f"{_path(source_id)}/run", json={"accept_empty": accept_empty})
        return _tell(output, await _settled(gateway, source_id, output) if wait else asked)

    run(command, interrupted="Stopped waiting. The sync goes on.")


@sources.command()
def pause(source_id: Id, as_json: AsJson = False) -> None:
    """Let a source stand still. What it has filled stays."""
    _change(source_id, {"paused": True}, as_json=as_json)


@sources.command()
def resume(source_id: Id, as_json: AsJson = False) -> None:
    """Let a paused source go on."""
    _change(source_id, {"paused": False}, as_json=as_json)


@sources.command()
def remove(source_id: Id, yes: Yes = False) -> None:
    """Remove a source with its documents. Nothing changes at the place itself."""

    async def command(gateway: Gateway) -> int:
        path = _path(source_id)
        if not yes:
            found = await gateway.request("GET", path)
            confirm(f"Remove the source {found['name']} with {found['file_count']} documents?", "Nothing was removed.")
        await gateway.request("DELETE", path)
        return 0

    run(command)


def watch(
    path: Annotated[Path, typer.Argument(help="A folder of this machine.")],
    collection: Collection = "default",
    create: Create = False,
    only: Annotated[str, typer.Option(help="Only files of these patterns, with commas between them: *.md,*.pdf")] = "",
    every: Every = 900,
    wait: Annotated[bool, typer.Option(help="Wait until its files are indexed.")] = True,
    as_json: AsJson = False,
) -> None:
    """Keep a collection in step with a folder of this machine, from now on and after a restart.

    For the system that runs here, with its data directory (GROUNDWORK_DATA_DIR). `groundwork sources remove` ends it.
    """
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        folder = path.resolve()
        if not folder.is_dir():
            raise UsageError(f"{path} is no folder.")
        data_dir = CliSettings().data_dir
        if not is_this_machine(gateway.base_url) or not data_dir.is_dir():
            raise UsageError(
                "Only the system on this machine watches its folders: set GROUNDWORK_DATA_DIR to its data directory. For another "
                "system its operator lists folders in GROUNDWORK_WATCHED_FOLDERS; then: groundwork sources add folder folder=NAME"
            )
        if create:
            await ensure_collection(gateway, collection)
        tenant = (await gateway.request("GET", "/v1/me"))["tenant"]
        listed = _allow(data_dir / LIST_FILE, tenant, folder)
        settings = {"folder": listed, **({"only": only} if only else {})}
        found = await gateway.request("GET", _PATH, params={"collection_id": collection})
        same = [each for each in found["sources"] if each["settings"] == settings]
        if same:
            source = await gateway.request("POST", f"{_path(same[0]['id'])}/run", json={})
        else:
            body = {
                "kind": "folder",
                "collection_id": collection,
                "name": folder.name,
                "settings": settings,
                "every_s": every,
            }
            source = await gateway.request("POST", _PATH, json=body)
        return _tell(output, await _settled(gateway, source["id"], output) if wait else source)

    run(command, interrupted="Stopped waiting. The folder is watched; see: groundwork sources list")


def _allow(list_file: Path, tenant: str, folder: Path) -> str:
    """Lists a folder for a tenant, and returns the name under which it is listed. Raises UsageError."""
    try:
        listed: dict[str, str] = json.loads(list_file.read_text()) if list_file.exists() else {}
        mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
        name = f"{folder.name[:50]}-{mark}"
        listed[f"{tenant}/{name}"] = str(folder)
        fresh = list_file.with_suffix(".new")
        fresh.write_text(json.dumps(listed, ensure_ascii=False, indent=2) + "\n")
        fresh.replace(list_file)
    except (OSError, ValueError) as error:
        raise UsageError(f"{list_file} cannot be read or written ({error}).") from error
    return name


async def _settled(gateway: Gateway, source_id: str, output: Output) -> Json:
    """The source once its sync is over and what it took is indexed. Says meanwhile how far that is."""
    said_at = asyncio.get_running_loop().time()
    while True:
        source = await gateway.request("GET", _path(source_id))
        is_due = source["next_sync_at"] is None and source["state"] != "paused"
        if not is_due and not source["pending_count"]:
            return source
        now = asyncio.get_running_loop().time()
        if now - said_at >= PROGRESS_INTERVAL_S and not output.as_json:
            said_at = now
            output.remarks([_progress(source)])
        await asyncio.sleep(_LOOK_EVERY_S)


def _progress(source: Json) -> str:
    sync = source["sync"] or {"done_count": 0, "total_count": 0, "remaining_s": None}
    left = f", about {sync['remaining_s']:.0f} s left" if sync["remaining_s"] else ""
    return f"{sync['done_count']} of {sync['total_count']} files taken{left}; {source['pending_count']} being indexed"


def _change(source_id: str, body: Json, *, as_json: bool) -> None:
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        changed = await gateway.request("PATCH", _path(source_id), json=body)
        if as_json:
            output.json(changed)
        else:
            output.table(_COLUMNS, [_row(changed)], whole={"id"})
        return 0

    run(command)


def _tell(output: Output, source: Json) -> int:
    """Shows a source with what is wrong with it. Returns the exit code."""
    access = source.get("access") or {}
    is_wrong = bool(source["error"] or source["failing_count"] or access.get("error"))
    if output.as_json:
        output.json(source)
        return int(is_wrong)
    output.table(_COLUMNS, [_row(source)], whole={"id"})
    if source["state"] == "syncing":
        output.remarks([_progress(source)])
    if source["error"]:
        output.out.print(f"[red]failed[/red] {escape(source['error']['message'])} ({source['error']['reason']})")
    if access.get("error"):
        what = "withheld from all but owners" if access["withheld"] else "access not refreshed"
        output.out.print(f"[red]{what}[/red] {escape(access['error']['message'])} ({access['error']['reason']})")
    elif access:
        output.remarks([f"who may read it was refreshed {access['refreshed_at'] or 'by its syncs'}"])
    for file in source["failing"]:
        output.out.print(f"  [red]failed[/red] {escape(file['path'])}: {escape(file['message'])} ({file['reason']})")
    if source["failing_count"] > len(source["failing"]):
        output.out.print(f"  … and {source['failing_count'] - len(source['failing'])} more")
    return int(is_wrong)


def _row(source: Json) -> list[str]:
    failing = str(source["failing_count"] or "")
    fields = ("id", "name", "kind", "collection_id", "state")
    return [*(str(source[each]) for each in fields), str(source["file_count"]), failing, source["next_sync_at"] or ""]


def _pairs(settings: list[str]) -> dict[str, str]:
    pairs = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise UsageError(f"{each!r} is no setting; write NAME=VALUE, as folder=contracts")
        pairs[name] = value
    return pairs


def _secret(name: str) -> str:
    return getpass(f"{name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")


def _path(source_id: str) -> str:
    return f"{_PATH}/{in_path(given(source_id, 'source'), 'source')}"
