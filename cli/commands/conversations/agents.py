"""`groundwork agents`: who may answer a question."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.display.output import Output
from cli.display.terminal import escape
from cli.running import WHERE, run

agents = typer.Typer(help="Agents that answer questions; switch research off and on.", epilog=WHERE)
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Name = Annotated[str, typer.Argument(help="The agent: research.")]


@agents.callback(invoke_without_command=True)
def overview(context: typer.Context, as_json: AsJson = False) -> None:
    """Agents that may answer a question; name one with `groundwork ask --agent NAME`. --json lists the modes, too."""
    if context.invoked_subcommand:
        return
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", "/v1/agents")
        if as_json:
            output.json(found)
        else:
            rows = [_row(each) for each in found["agents"]]
            output.table(["name", "default", "modes", "what it is for"], rows, whole={"name"})
            _tell_switched_off(output, found)
        return 0

    run(command)


@agents.command()
def disable(name: Name, as_json: AsJson = False) -> None:
    """Switch an agent off on all replicas: its questions then get one search and one answer, which say so."""
    _switch(name, Output(as_json=as_json), enabled=False)


@agents.command()
def enable(name: Name, as_json: AsJson = False) -> None:
    """Switch an agent on again."""
    _switch(name, Output(as_json=as_json), enabled=True)


def _switch(name: str, output: Output, *, enabled: bool) -> None:
    async def command(gateway: Gateway) -> int:
        path = f"/v1/agents/{in_path(name, 'agent')}"
        switched = await gateway.request("PUT", path, json={"enabled": enabled})
        if output.as_json:
            output.json(switched)
        else:
            output.out.print(f"{escape(name)} is {'on' if enabled else 'off'}.")
        return 0

    run(command)


def _tell_switched_off(output: Output, found: Json) -> None:
    for each in found.get("switched_off", ()):
        output.out.print(
            f"{escape(each['name'])} is switched off by {escape(each['by'])} since {escape(each['at'] or '')}."
        )


def _row(agent: Json) -> list[str]:
    return [agent["name"], "yes" if agent["is_default"] else "", ", ".join(agent["modes"]), agent["description"]]
