"""`groundwork usage`: what questions have cost."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.client.gateway import Gateway, Json
from cli.display.output import Output
from cli.running import run


def usage(
    since: Annotated[str, typer.Option(help="First day, as 2026-01-31; 30 days before the last if not given.")] = "",
    until: Annotated[str, typer.Option(help="Last day; today if not given.")] = "",
    by: Annotated[Literal["day", "user", "thread", "model"], typer.Option(help="What a row stands for.")] = "day",
    user: Annotated[
        str, typer.Option(help="Whose; yours if not given. Others, and `*` for all, take the scope `admin`.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """What runs have cost, in tokens and dollars."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        group = "subject" if by == "user" else by
        asked = {"since": since, "until": until, "group_by": group, "subject": user}
        found = await gateway.request("GET", "/v1/usage", params={key: value for key, value in asked.items() if value})
        if as_json:
            output.json(found)
        else:
            rows = [_row(each["key"] or "(none)", each) for each in found["rows"]]
            output.table([by, "runs", "tokens in", "tokens out", "dollars"], [*rows, _row("all", found["total"])])
        return 0

    run(command)


def _row(name: str, used: Json) -> list[str]:
    dollars = "" if used["cost_usd"] is None else f"{used['cost_usd']:.4f}"
    return [name, str(used["runs"]), str(used["prompt_tokens"]), str(used["completion_tokens"]), dollars]
