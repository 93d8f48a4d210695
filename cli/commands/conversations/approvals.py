"""`groundwork approvals`: calls of tools that wait for a decision. What is decided about is shown first, in full."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated, Any
from urllib.parse import quote

import typer

from cli.client.gateway import Gateway, Json
from cli.display.output import Output
from cli.display.steps import arguments_lines, shortened
from cli.display.terminal import escape
from cli.display.tool_names import in_words
from cli.errors import CliError
from cli.running import WHERE, run

approvals = typer.Typer(help="Calls that wait for your decision: list, allow, deny.", epilog=WHERE)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
ApprovalId = Annotated[str, typer.Argument(help="The approval, as `groundwork approvals` lists it.")]
_PAGES_MAX = 100


class Choice(Enum):
    """What a person says when asked."""

    ALLOW = "allow"
    DENY = "deny"
    LATER = "later"
    CANCEL = "cancel"
    """The whole run."""


@approvals.callback(invoke_without_command=True)
def list_approvals(context: typer.Context, as_json: AsJson = False) -> None:
    """What waits for a decision, oldest first."""
    if context.invoked_subcommand:
        return
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await waiting(gateway)
        if as_json:
            output.json({"approvals": found})
        elif not found:
            output.out.print("Nothing waits for a decision.")
        else:
            rows = [
                [each["id"], in_words(each["tool"]), each["expires_at"] or "", _who(each), _short(each)]
                for each in found
            ]
            output.table(["id", "call", "expires", "decides", "arguments"], rows, whole={"id"})
        return 0

    run(command)


@approvals.command(name="list")
def list_command(context: typer.Context, as_json: AsJson = False) -> None:
    """What waits for a decision, oldest first."""
    context.invoked_subcommand = None
    asked_before = context.parent is not None and context.parent.params["as_json"]  # approvals --json list
    list_approvals(context, as_json or asked_before)


@approvals.command()
def allow(approval_id: ApprovalId, as_json: AsJson = False) -> None:
    """Let the call be made. It is shown in full first."""
    _decide(approval_id, Choice.ALLOW, Output(as_json=as_json))


@approvals.command()
def deny(approval_id: ApprovalId, as_json: AsJson = False) -> None:
    """Have the call not made; its run goes on without it."""
    _decide(approval_id, Choice.DENY, Output(as_json=as_json))


def _decide(approval_id: str, choice: Choice, output: Output) -> None:
    async def command(gateway: Gateway) -> int:
        asked = next((each for each in await waiting(gateway) if each["id"] == approval_id), None)
        if asked is None:
            raise CliError(
                f"No approval {approval_id} waits: it was decided, has expired, or is not yours. See `groundwork approvals`."
            )
        if not output.as_json:
            show(asked, output)
        answer = await decide(gateway, asked, choice)
        if output.as_json:
            output.json(answer)
        else:
            word = "allowed" if choice is Choice.ALLOW else "denied"
            output.out.print(f"{word} {approval_id}; see: groundwork runs follow {asked['run_id']}", markup=False)
        return 0

    run(command)


async def waiting(gateway: Gateway) -> list[Json]:
    """All that waits, oldest first."""
    found: list[Json] = []
    token = ""
    for _ in range(_PAGES_MAX):
        params = {"page_token": token} if token else {}
        page = await gateway.request("GET", "/v1/approvals", params=params)
        found += page["approvals"]
        token = page.get("next_page_token") or ""
        if not token:
            break
    return found


async def decide(gateway: Gateway, asked: Json, choice: Choice) -> Json:
    """Sends the decision about these arguments and no others. Raises ApiError, for example when somebody was faster."""
    body = {"decision": choice.value, "arguments_hash": asked["arguments_hash"]}
    return await gateway.request("POST", f"/v1/approvals/{quote(asked['id'], safe='')}", json=body)


def show(asked: Json, output: Output) -> None:
    """The call in full, on stderr."""
    expires = f" before {escape(asked['expires_at'])}" if asked.get("expires_at") else ""
    output.err.print(f"[bold]{escape(in_words(asked['tool']))}[/bold] waits for a decision{expires}:")
    for line in arguments_lines(asked["arguments"] or {}):
        output.err.print(line)
    if asked.get("is_tainted"):
        names = ", ".join(asked.get("tainted_arguments") or ())
        source = f" Words of it are in: {names}." if names else ""
        output.err.print(f"The run has read text that you did not write.{source}", markup=False)


def choose(asked: Json, output: Output) -> Choice:
    """Asks the person at the terminal. The end of the input means later, Ctrl-C that the run is cancelled."""
    try:
        return _chosen(asked, output)
    except KeyboardInterrupt:
        return Choice.CANCEL


def _chosen(asked: Json, output: Output) -> Choice:
    show(asked, output)
    words = {
        "y": Choice.ALLOW,
        "yes": Choice.ALLOW,
        "n": Choice.DENY,
        "no": Choice.DENY,
        "l": Choice.LATER,
        "later": Choice.LATER,
    }
    while True:
        sys.stderr.write("Allow this call? [y]es, [n]o, [l]ater: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return Choice.LATER
        if choice := words.get(line.strip().lower()):
            return choice


def _who(asked: dict[str, Any]) -> str:
    if asked.get("yours_to_decide", True):
        return "you"
    return ", ".join(asked.get("may_decide") or [asked.get("subject", "")])


def _short(asked: dict[str, Any]) -> str:
    return shortened(" ".join(line.strip() for line in arguments_lines(asked["arguments"] or {})), 120)
