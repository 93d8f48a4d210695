"""`groundwork jobs`: how much work waits, what was given up, and queueing that again."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.display.output import Output
from cli.errors import UsageError
from cli.running import WHERE, run

jobs = typer.Typer(help="Jobs: how much work waits, and what was given up.", epilog=WHERE)

_SAID = {
    "requeued": "queued again",
    "already_requeued": "was queued again before",
    "document_deleted": "its document has been deleted; nothing to do",
    "superseded": "its document has been uploaded or read again since; nothing to do",
}

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
OnlyCollection = Annotated[str, typer.Option("--collection", "-c", help="Only this collection.")]
OnlyReason = Annotated[str, typer.Option("--reason", help="Only this reason, for example WORKER_DIED.")]


@jobs.callback(invoke_without_command=True)
def overview(context: typer.Context, collection: OnlyCollection = "", as_json: AsJson = False) -> None:
    """How much work waits, is in hand, and was given up."""
    if context.invoked_subcommand:
        return
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        counts = await gateway.request("GET", "/v1/jobs", params={"collection_id": collection})
        if as_json:
            output.json(counts)
            return 0
        waiting = counts.get("oldest_queued_at")
        rows = [
            ["queued", str(counts["queued_count"]), f"the oldest since {waiting}" if waiting else ""],
            ["in hand", str(counts["processing_count"]), ""],
            [
                "given up",
                str(counts["dead_letter_count"]),
                "groundwork jobs dead" if counts["dead_letter_count"] else "",
            ],
        ]
        output.table(["documents", "", ""], rows)
        return 0

    run(command)


@jobs.command(name="dead")
def list_dead(collection: OnlyCollection = "", reason: OnlyReason = "", as_json: AsJson = False) -> None:
    """Jobs that were given up, newest first."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        only = {"collection_id": collection, "reason": reason}
        found = await gateway.pages("/v1/jobs/dead", "dead_letters", only)
        if as_json:
            output.json({"dead_letters": found})
            return 0
        columns = ["id", "reason", "tries", "last", "document", "what happened"]
        output.table(columns, [_row(letter) for letter in found], whole={"id"})
        return 0

    run(command)


@jobs.command()
def requeue(
    ids: Annotated[list[str] | None, typer.Argument(help="Dead letters, as `groundwork jobs dead` lists them.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    collection: OnlyCollection = "",
    reason: OnlyReason = "",
    as_json: AsJson = False,
) -> None:
    """Queue given-up documents again. Exit code 1 if there was nothing to queue."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        if bool(ids) == all_ or (ids and (collection or reason)):
            raise UsageError("Give either ids or --all; --collection and --reason go with --all.")
        if all_:
            done = await _requeue_all(gateway, {"collection_id": collection, "reason": reason})
            if as_json:
                output.json(done)
            else:
                output.out.print(f"{done['requeued_count']} queued again, {done['dropped_count']} no longer needed")
            return 0 if done["requeued_count"] else 1
        outcomes = [(id_, await gateway.request("POST", _path(id_))) for id_ in ids or ()]
        if as_json:
            output.json({"requeued": [{"id": id_, **outcome} for id_, outcome in outcomes]})
        else:
            for id_, outcome in outcomes:
                output.out.print(f"{id_} {_SAID.get(outcome['outcome'], outcome['outcome'])}")
        return 0 if any(outcome["outcome"] == "requeued" for _, outcome in outcomes) else 1

    run(command)


async def _requeue_all(gateway: Gateway, only: Json) -> Json:
    """The server queues some hundreds a call."""
    total = {"requeued_count": 0, "dropped_count": 0}
    while True:
        done = await gateway.request("POST", "/v1/jobs/dead/requeue", json=only)
        for name in total:
            total[name] += done[name]
        if not done["remaining_count"] or not (done["requeued_count"] or done["dropped_count"]):
            return total


def _path(dead_letter_id: str) -> str:
    return f"/v1/jobs/dead/{in_path(dead_letter_id, 'dead letter')}/requeue"


def _row(letter: Json) -> list[str]:
    tries = str(letter["failures"] + letter["deaths"])
    place = f"{letter['collection_id']}/{letter['document_name']}"
    return [letter["id"], letter["reason"], tries, letter.get("last_failed_at") or "", place, letter["message"]]
