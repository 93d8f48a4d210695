"""`groundwork collections access` shows and changes the roles on a collection, and the readers of one of its documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.display.output import Output
from cli.errors import ApiError, UsageError
from cli.running import WHERE, run

access = typer.Typer(
    no_args_is_help=True,
    help="Who may use a collection, or one document of it: show, grant, revoke.",
    epilog=WHERE,
)

Role = Literal["viewer", "editor", "owner"]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Id = Annotated[str, typer.Argument(help="Collection.", metavar="ID")]
Subject = Annotated[str, typer.Option(help="A user, as `groundwork keys list` or your identity provider names them.")]
Group = Annotated[str, typer.Option(help="A group, as your identity provider names it.")]
DocumentId = Annotated[
    str,
    typer.Option(
        "--document", help="A document of the collection, by its id: its own list, instead of the collection's."
    ),
]
IfMatch = Annotated[
    str,
    typer.Option(
        help="Change only the state with this etag, as `show --json` prints it. Without it the change is made to the list as it is."
    ),
]
_ATTEMPTS = 10
_Lists = dict[str, list[str]]


@access.command(name="show")
def show(collection_id: Id, document_id: DocumentId = "", as_json: AsJson = False) -> None:
    """The roles on a collection of yours, or who may read a document of it."""

    async def command(gateway: Gateway) -> int:
        path = await _path(gateway, collection_id, document_id)
        answer, etag = await gateway.tagged("GET", path)
        return _shown(answer, etag, Output(as_json=as_json))

    run(command)


@access.command(name="grant")
def grant(
    collection_id: Id,
    subject: Subject = "",
    group: Group = "",
    role: Annotated[
        Role | None,
        typer.Option(help="`viewer` (the default) reads, `editor` also changes documents, `owner` also shares."),
    ] = None,
    document_id: DocumentId = "",
    if_match: IfMatch = "",
    as_json: AsJson = False,
) -> None:
    """Give a user or a group a role on a collection, or let them read a document. The first name on a document's list shuts out
    everybody else but owners of the collection."""

    async def command(gateway: Gateway) -> int:
        kind, name = _named(subject, group)
        if document_id and role is not None:
            raise UsageError("A document's list has no roles: leave --role out.")
        path = await _path(gateway, collection_id, document_id)
        if document_id:
            answer = await _change_list(gateway, path, if_match, lambda lists: _with(lists, kind, name))
        else:
            body = {"kind": kind, "name": name, "role": role or "viewer"}
            answer = await gateway.tagged("PUT", path, json=body, headers=_headers(if_match))
        return _shown(*answer, Output(as_json=as_json))

    run(command)


@access.command(name="revoke")
def revoke(
    collection_id: Id,
    subject: Subject = "",
    group: Group = "",
    document_id: DocumentId = "",
    everybody: Annotated[
        bool,
        typer.Option(
            "--all", help="Of a document: take its whole list away. All who read its collection then read it."
        ),
    ] = False,
    if_match: IfMatch = "",
    as_json: AsJson = False,
) -> None:
    """Take a role on a collection from a user or a group, or take them from a document's list. A list that is left empty lets
    owners of the collection alone read the document."""

    async def command(gateway: Gateway) -> int:
        if everybody and (not document_id or subject or group):
            raise UsageError("--all goes with --document, and without --subject and --group.")
        kind, name = ("", "") if everybody else _named(subject, group)
        path = await _path(gateway, collection_id, document_id)
        if everybody:
            answer = await gateway.tagged("DELETE", path, headers=_headers(if_match))
        elif document_id:
            answer = await _change_list(gateway, path, if_match, lambda lists: _without(lists, kind, name))
        else:
            member = {"kind": kind, "name": name}
            answer = await gateway.tagged("DELETE", path, params=member, headers=_headers(if_match))
        return _shown(*answer, Output(as_json=as_json))

    run(command)


async def _path(gateway: Gateway, collection_id: str, document_id: str) -> str:
    """Where the list is. Raises UsageError for a document of another collection: its list would be changed unseen."""
    collection = f"/v1/collections/{in_path(collection_id, 'collection')}"
    if not document_id:
        return f"{collection}/members"
    path = f"/v1/documents/{in_path(document_id, 'document')}"
    found = (await gateway.request("GET", path))["collection_id"]
    if found not in (collection_id, (await gateway.request("GET", collection))["id"]):
        raise UsageError(f"The document {document_id} is in the collection {found}, not in {collection_id}.")
    return f"{path}/access"


async def _change_list(
    gateway: Gateway, path: str, if_match: str, change: Callable[[_Lists], _Lists | None]
) -> tuple[Json, str]:
    """Changes a list, which is replaced as a whole: where somebody else was first, the change is made to what they have left."""
    for attempt in range(1, _ATTEMPTS + 1):
        answer, etag = await gateway.tagged("GET", path)
        lists = change({"subjects": answer["subjects"], "groups": answer["groups"]} if answer["restricted"] else {})
        if lists is None:
            return answer, etag
        try:
            return await gateway.tagged("PUT", path, json=lists, headers=_headers(if_match or etag))
        except ApiError as error:
            if error.reason != "ACCESS_CHANGED" or if_match or attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _with(lists: _Lists, kind: str, name: str) -> _Lists:
    both = {"subjects": [], "groups": [], **lists}
    return {**both, f"{kind}s": sorted({*both[f"{kind}s"], name})}


def _without(lists: _Lists, kind: str, name: str) -> _Lists | None:
    """None where there is no list: an empty one would shut everybody out."""
    return {**lists, f"{kind}s": [each for each in lists[f"{kind}s"] if each != name]} if lists else None


def _headers(if_match: str) -> dict[str, str]:
    return {"If-Match": f'"{if_match.strip(chr(34))}"'} if if_match else {}


def _named(subject: str, group: str) -> tuple[str, str]:
    if bool(subject) == bool(group):
        raise UsageError("Say whom you mean: --subject or --group, one of the two.")
    return ("subject", subject) if subject else ("group", group)


def _shown(answer: Json, etag: str, output: Output) -> int:
    if output.as_json:
        output.json({**answer, "etag": etag.strip('"')})
    elif "members" in answer:
        output.table(
            ["role", "kind", "name"], [[each["role"], each["kind"], each["name"]] for each in answer["members"]]
        )
    elif not answer["restricted"]:
        output.table(["kind", "name"], [["all", "who may read the collection"]])
    else:
        output.table(
            ["kind", "name"],
            [["subject", each] for each in answer["subjects"]] + [["group", each] for each in answer["groups"]],
        )
    return 0
