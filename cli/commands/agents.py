"""`groundwork agents`: who may answer a question."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json
from cli.display.output import Output
from cli.running import run


def agents(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Agents that may answer a question; name one with `groundwork ask --agent NAME`. --json lists the modes, too."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", "/v1/agents")
        if as_json:
            output.json(found)
        else:
            rows = [_row(each) for each in found["agents"]]
            output.table(["name", "default", "modes", "what it is for"], rows, whole={"name"})
        return 0

    run(command)


def _row(agent: Json) -> list[str]:
    return [agent["name"], "yes" if agent["is_default"] else "", ", ".join(agent["modes"]), agent["description"]]
