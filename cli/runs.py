"""`groundwork runs`: what was asked, what became of it, and removing it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.chatting import follow
from cli.deleting import delete_each
from cli.gateway import Gateway
from cli.output import Output
from cli.running import run

runs = typer.Typer(no_args_is_help=True, help="Runs: list, follow, delete.")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


@runs.command(name="list")
def list_runs(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="At most this many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """The last runs, newest first."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        page = await gateway.request("GET", "/v1/runs", params={"page_size": limit})
        if as_json:
            output.json({"runs": page["runs"]})
            return 0
        rows = [
            [each["id"], "forgotten" if each["forgotten_at"] else each["status"], each["created_at"], each["question"]]
            for each in page["runs"]
        ]
        output.table(["id", "status", "started", "question"], rows, whole={"id"})
        return 0

    run(command)


@runs.command(name="follow")
def follow_run(run_id: Annotated[str, typer.Argument(help="The run.")], as_json: AsJson = False) -> None:
    """Show a run from its beginning, its steps and its answer, to its end; and ask you what it waits for."""
    raise typer.Exit(follow(run_id, Output(as_json=as_json)))


@runs.command(name="delete")
def delete_runs(run_ids: Annotated[list[str], typer.Argument(help="Runs.")], as_json: AsJson = False) -> None:
    """Remove runs and their events. What they put into a thread stays there."""
    output = Output(as_json=as_json)
    run(lambda gateway: delete_each(gateway, "/v1/runs", run_ids, output))
