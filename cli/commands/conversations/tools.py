"""`groundwork tools`: what a run may use."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json
from cli.display.output import Output
from cli.running import run

_EFFECTS = {"none": "reads only", "idempotent": "writes", "once": "acts once", None: ""}


def tools(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Tools that a chat may use: what each does, and whether it asks you first. --json has the shapes of their arguments."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", "/v1/tools")
        if as_json:
            output.json(found)
        else:
            output.table(
                ["name", "effect", "asks first", "what it does"],
                [_row(each) for each in found["tools"]],
                whole={"name"},
            )
        return 0

    run(command)


def _row(tool: Json) -> list[str]:
    first_line = next(iter(tool["description"].strip().splitlines()), "")
    effect = _EFFECTS.get(tool["effect"], tool["effect"])
    return [tool["name"], effect, "yes" if tool["needs_approval"] else "", first_line]
