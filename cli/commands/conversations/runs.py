"""`groundwork runs`: what was asked, what became of it, and removing it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.commands.conversations.chatting import answer, follow
from cli.deleting import GONE, Yes, delete_each
from cli.display.output import Output
from cli.display.steps import cost_line
from cli.display.terminal import escape
from cli.errors import given, in_words
from cli.running import WHERE, run

runs = typer.Typer(no_args_is_help=True, help="Runs: list, show, follow, delete.", epilog=WHERE)

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


@runs.command(name="show")
def show_run(run_id: Annotated[str, typer.Argument(help="The run.")], as_json: AsJson = False) -> None:
    """One run as it is now: its state and, once there are, its answer with citations and what it cost."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", f"/v1/runs/{in_path(run_id, 'run')}")
        if as_json:
            output.json(found)
        else:
            _show(output, found)
        return 0

    run(command)


@runs.command(name="answer")
def answer_run(
    run_id: Annotated[str, typer.Argument(help="The run that asks.")],
    text: Annotated[str, typer.Argument(help="The answer to its question.")],
    as_json: AsJson = False,
) -> None:
    """Answer what a run asks you, and let it go on."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        answered = await answer(gateway, given(run_id, "run"), in_words(text, "answer"))
        if as_json:
            output.json(answered)
        else:
            output.out.print(f"answered; see: groundwork runs follow {run_id}", markup=False)
        return 0

    run(command)


@runs.command(name="follow")
def follow_run(run_id: Annotated[str, typer.Argument(help="The run.")], as_json: AsJson = False) -> None:
    """Show a run from its beginning, its steps and its answer, to its end; and ask you what it waits for."""
    raise typer.Exit(follow(run_id, Output(as_json=as_json)))


@runs.command(name="delete")
def delete_runs(
    run_ids: Annotated[list[str], typer.Argument(help="Runs.")], yes: Yes = False, as_json: AsJson = False
) -> None:
    """Remove runs and their events. What they put into a thread stays there."""
    output = Output(as_json=as_json)
    run(lambda gateway: delete_each(gateway, "/v1/runs", run_ids, output, what="run", yes=yes, said=GONE))


def _show(output: Output, found: Json) -> None:
    state = "forgotten" if found["forgotten_at"] else found["status"]
    times = [found[name] or "" for name in ("created_at", "finished_at")]
    rows = [
        ["id", found["id"]],
        ["status", state or ""],
        ["mode", found["mode"] or ""],
        ["thread", found["thread_id"] or ""],
    ]
    rows += [["question", found["question"]], ["started", times[0]], ["ended", times[1]]]
    if cost := cost_line(found.get("usage") or {}):
        rows.append(["cost", cost])
    if error := found.get("error"):
        rows.append(["error", f"{error['message']} ({error['reason']})"])
    output.table(["", ""], rows)
    if answer := found.get("answer"):
        output.out.print(f"\n{escape(answer['text'])}\n")
        output.sources(answer)
