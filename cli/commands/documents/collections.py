"""`groundwork collections`: make them, share them, and take them away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.commands.documents.access import access
from cli.deleting import Yes, confirm, delete_each
from cli.display.output import Output
from cli.errors import ApiError, CliError, UsageError
from cli.program import command_line
from cli.running import WHERE, run

collections = typer.Typer(
    no_args_is_help=True, help="Collections: list, show, create, update, share, delete.", epilog=WHERE
)

collections.add_typer(access, name="access")

Visibility = Literal["private", "tenant"]
Role = Literal["viewer", "editor", "owner"]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Id = Annotated[str, typer.Argument(help="Collection; `default` is your own.", metavar="ID")]
Name = Annotated[str, typer.Option(help="Name for people.")]
SharedWith = Annotated[
    Visibility | None, typer.Option(help="`private`: yours alone. `tenant`: everyone here reads it, you change it.")
]
LocalModels = Annotated[
    bool | None,
    typer.Option(
        "--local-models-only/--any-models",
        help="Whether no text of it, and no question to it, is sent to a model outside.",
        show_default=False,
    ),
]
Subject = Annotated[str, typer.Option(help="A user, as `groundwork keys list` or your identity provider names them.")]
Group = Annotated[str, typer.Option(help="A group, as your identity provider names it.")]

_OTHERS_SHOWN_MAX = 5
_COLUMNS = ["id", "name", "owner", "read by", "your role", "made"]
_READ_BY = {"private": "its owner", "tenant": "everyone here"}


@collections.command(name="list")
def list_collections(as_json: AsJson = False) -> None:
    """The collections that you may read: whose they are, and who else reads them."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        answer = await gateway.request("GET", "/v1/collections")
        if as_json:
            output.json(answer)
        else:
            output.table(_COLUMNS, [_row(each) for each in answer["collections"]], whole={"id"})
        return 0

    run(command)


@collections.command(name="show")
def show(collection_id: Id, as_json: AsJson = False) -> None:
    """One collection."""
    run(lambda gateway: _said(gateway, "GET", _path(collection_id), None, Output(as_json=as_json)))


@collections.command(name="create")
def create(
    collection_id: Annotated[str, typer.Argument(help="Id; without one it is made from the name.", metavar="ID")] = "",
    name: Name = "",
    visibility: SharedWith = None,
    local_models_only: LocalModels = None,
    as_json: AsJson = False,
) -> None:
    """Make a collection. It is yours, and private unless you say otherwise."""

    def body() -> Json:
        if not (collection_id or name):
            raise UsageError("Give the collection an id or a --name.")
        shared_with = visibility or "private"
        return {
            "id": collection_id,
            "name": name,
            "visibility": shared_with,
            "local_models_only": bool(local_models_only),
        }

    async def command(gateway: Gateway) -> int:
        return await _said(gateway, "POST", "/v1/collections", body(), Output(as_json=as_json))

    run(command)


async def ensure_collection(gateway: Gateway, collection_id: str) -> None:
    """Makes the collection, private, unless there is one of that id."""
    try:
        await gateway.request(
            "POST", "/v1/collections", json={"id": collection_id, "name": "", "visibility": "private"}
        )
    except ApiError as error:
        if error.reason != "COLLECTION_EXISTS":
            raise


@collections.command(name="update")
def update(
    collection_id: Id,
    name: Name = "",
    visibility: SharedWith = None,
    memory: Annotated[
        str, typer.Option(help="How memory is used in chats over it: auto, agentic, always, off; or unset.")
    ] = "",
    local_models_only: LocalModels = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Share without asking first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rename a collection of yours, say who may read it, how memory is used in chats over it, or which models it asks."""

    async def command(gateway: Gateway) -> int:
        if not (name or visibility or memory) and local_models_only is None:
            raise UsageError("Say what is to change: --name, --visibility, --memory or --local-models-only.")
        if visibility == "tenant" and not yes:
            confirm(
                f"Share the collection {collection_id}? Everyone here then reads all of its documents.",
                "Nothing was changed.",
            )
        body: Json = {
            "name": name or None,
            "visibility": visibility,
            "memory": memory or None,
            "local_models_only": local_models_only,
        }
        return await _said(gateway, "PATCH", _path(collection_id), body, Output(as_json=as_json))

    run(command)


@collections.command(name="share")
def share(
    collection_id: Id,
    subject: Subject = "",
    group: Group = "",
    role: Annotated[
        Role, typer.Option(help="`viewer` reads, `editor` also changes documents, `owner` also shares and deletes.")
    ] = "viewer",
    as_json: AsJson = False,
) -> None:
    """Give a user or a group a role on a collection of yours, or another role."""

    async def command(gateway: Gateway) -> int:
        body: Json = {**_member(subject, group), "role": role}
        return await _members(gateway, "PUT", collection_id, Output(as_json=as_json), json=body)

    run(command)


@collections.command(name="unshare")
def unshare(collection_id: Id, subject: Subject = "", group: Group = "", as_json: AsJson = False) -> None:
    """Take the role from a user or a group. Who is left is printed."""

    async def command(gateway: Gateway) -> int:
        member = _member(subject, group)
        return await _members(gateway, "DELETE", collection_id, Output(as_json=as_json), params=member)

    run(command)


@collections.command(name="members")
def members(collection_id: Id, as_json: AsJson = False) -> None:
    """List the members of a collection of yours and their roles."""
    run(lambda gateway: _members(gateway, "GET", collection_id, Output(as_json=as_json)))


def _member(subject: str, group: str) -> Json:
    if bool(subject) == bool(group):
        raise UsageError("Say whom you mean: --subject or --group, one of the two.")
    return {"kind": "subject" if subject else "group", "name": subject or group}


async def _members(gateway: Gateway, method: str, collection_id: str, output: Output, **request: Json) -> int:
    answer = await gateway.request(method, f"{_path(collection_id)}/members", **request)
    if output.as_json:
        output.json(answer)
    else:
        output.table(
            ["role", "kind", "name"], [[each["role"], each["kind"], each["name"]] for each in answer["members"]]
        )
    return 0


@collections.command(name="delete")
def delete(
    collection_ids: Annotated[list[str], typer.Argument(help="Collections.", metavar="ID…")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove collections with all their documents; nothing in them is found from now on."""
    output = Output(as_json=as_json)
    also = " with all documents"
    run(
        lambda gateway: delete_each(
            gateway, "/v1/collections", collection_ids, output, what="collection", yes=yes, also=also
        )
    )


async def where_else(gateway: Gateway, asked: Sequence[str]) -> list[str]:
    """What to know where nothing was found: which of the collections have no documents that could be, and which others there are.
    Nothing where that cannot be learned: it is a remark, and the answer stands without it."""
    try:
        listed = (await gateway.request("GET", "/v1/collections"))["collections"]
        remarks = [remark for each in asked if (remark := await _why_nothing(gateway, each))]
        own = (await gateway.request("GET", _path("default")))["id"]
    except CliError:
        return []
    named = [own if each == "default" else each for each in asked]
    others = [each["id"] for each in listed if each["id"] not in named]
    if others:
        more = ", …" if len(others) > _OTHERS_SHOWN_MAX else ""
        remarks.append(
            f"Other collections were not asked: {', '.join(others[:_OTHERS_SHOWN_MAX])}{more} (--collection)"
        )
    return remarks


async def _why_nothing(gateway: Gateway, collection_id: str) -> str:
    """Why nothing is found in a collection whatever is asked; empty when something could be."""

    async def has_any(**status: str) -> bool:
        page = await gateway.request("GET", f"{_path(collection_id)}/documents", params={"page_size": 1, **status})
        return bool(page["documents"])

    if await has_any(status="ready"):
        return ""
    if await has_any():
        listing = command_line("documents", "list", "--collection", collection_id)
        return f"No document in the collection {collection_id} is ready: {listing}"
    return f"No document is in the collection {collection_id} yet: {command_line('ingest', 'FILE', '--collection', collection_id)}"


async def _said(gateway: Gateway, method: str, path: str, body: Json | None, output: Output) -> int:
    """Asks, and shows the collection that is answered."""
    answer = await gateway.request(method, path, json=body)
    if output.as_json:
        output.json(answer)
    else:
        output.table(_COLUMNS, [_row(answer)], whole={"id"})
    return 0


def _path(collection_id: str) -> str:
    return f"/v1/collections/{in_path(collection_id, 'collection')}"


def _row(collection: Json) -> list[str]:
    """A collection without an owner is one of an earlier version."""
    owner = collection.get("owner")
    read_by = _READ_BY.get(collection.get("visibility") or "private", _READ_BY["private"])
    made = collection.get("created_at") or ""
    return [collection["id"], collection["name"], owner or "everyone here", read_by, collection.get("role") or "", made]
