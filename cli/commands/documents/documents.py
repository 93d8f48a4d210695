"""`groundwork documents`: what was uploaded, where it is on its way, and taking it away."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.deleting import Yes, delete_each
from cli.display.output import Output, describe_document
from cli.running import WHERE, run

documents = typer.Typer(no_args_is_help=True, help="Documents: list, show, revisions, delete.", epilog=WHERE)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Collection = Annotated[str, typer.Option("--collection", "-c", help="Collection.")]


class Status(StrEnum):
    """Where a document may be on its way."""

    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


@documents.command(name="list")
def list_documents(
    collection: Collection = "default",
    status: Annotated[list[Status] | None, typer.Option(help="Only those; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Documents of a collection, newest first."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        path = f"/v1/collections/{in_path(collection, 'collection')}/documents"
        found = await gateway.pages(path, "documents", {"status": [each.value for each in status or ()]})
        if as_json:
            output.json({"documents": found})
        else:
            rows = [[each["id"], each["status"], str(each.get("size_bytes", "")), each["name"]] for each in found]
            output.table(["id", "status", "bytes", "name"], rows, whole={"id"})
        return 0

    run(command)


@documents.command(name="show")
def show_document(document_id: str, as_json: AsJson = False) -> None:
    """One document: where it is on its way, or why it failed."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        document = await gateway.request("GET", f"/v1/documents/{in_path(document_id, 'document')}")
        if as_json:
            output.json(document)
        else:
            output.table(["", ""], describe_document(document))
        return 0

    run(command)


@documents.command(name="revisions")
def list_revisions(document_id: str, as_json: AsJson = False) -> None:
    """Revisions of a document, newest first: what became of each, when it was asked for and by whom."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", f"/v1/documents/{in_path(document_id, 'document')}/revisions")
        if as_json:
            output.json(found)
            return 0
        revisions = sorted(found["revisions"], key=lambda each: each["number"], reverse=True)
        output.table(
            ["number", "state", "bytes", "chunks", "asked for", "by", "error"], [_row(each) for each in revisions]
        )
        return 0

    run(command)


def _row(revision: Json) -> list[str]:
    size, chunks = (str(revision.get(key) or "") for key in ("size_bytes", "chunk_count"))
    when, who = (revision.get(key) or "" for key in ("queued_at", "queued_by"))
    return [
        str(revision["number"]),
        revision["state"] or "unknown",
        size,
        chunks,
        when,
        who,
        (revision.get("error") or {}).get("message", ""),
    ]


@documents.command(name="delete")
def delete_documents(
    document_ids: Annotated[list[str], typer.Argument(help="Documents.")], yes: Yes = False, as_json: AsJson = False
) -> None:
    """Remove documents everywhere; they are gone from the next search on, and what quotes them within a minute."""
    output = Output(as_json=as_json)
    run(lambda gateway: delete_each(gateway, "/v1/documents", document_ids, output, what="document", yes=yes))
