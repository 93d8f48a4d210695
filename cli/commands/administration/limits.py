"""`groundwork limits`: how much may be used, and rules about it."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.display.output import Output
from cli.errors import UsageError
from cli.running import WHERE, run

limits = typer.Typer(
    help="How many requests, questions, tokens, dollars, calls of tools, seconds, documents, credits and bytes may be used; set "
    "rules.",
    epilog=WHERE,
)
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Whose = Annotated[
    str,
    typer.Argument(
        help="all, tenant:NAME, tenant:* (each without a rule), group:NAME, subject:NAME, subject:* (likewise), key:ID or key:* "
        "(likewise)."
    ),
]
_THINGS = ("requests", "runs", "research_runs", "tokens", "dollars", "tool_calls", "seconds", "documents")
_WINDOWS = ("second", "minute", "hour", "day", "month")
_AMOUNT = r"([0-9]+(?:\.[0-9]+)?)"
_UNITS = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40
}  # fmt: skip
"""Of storage."""
_KNOWN_BY = {"ingest": "Limits of stored bytes and documents", "orchestrator": "Limits of what answers use"}
"""What a service that does not answer would say."""
_LIMIT = re.compile(rf"({'|'.join(_THINGS)})={_AMOUNT}/({'|'.join(_WINDOWS)})")
_LIMIT_IN_ALL = re.compile(rf"(?:(credits|stored_documents)={_AMOUNT}|(storage)={_AMOUNT}({'|'.join(_UNITS)}))")


@limits.callback(invoke_without_command=True)
def overview(context: typer.Context, as_json: AsJson = False) -> None:
    """What you may use, and how much of it is used."""
    if context.invoked_subcommand:
        return
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", "/v1/limits")
        missing = found.get("missing", ())  # a gateway of an earlier version says nothing of it
        if as_json:
            output.json(found)
        elif found["limits"]:
            output.table(["whose", "at most", "used", "free again"], [_state(each) for each in found["limits"]])
        elif not missing:
            output.out.print("Nothing limits what you use.")
        if not as_json:
            for service in missing:
                output.out.print(f"{_KNOWN_BY[service]} are not known now: the service {service} does not answer.")
        return 0

    run(command)


@limits.command()
def rules(as_json: AsJson = False) -> None:
    """List the rules about your tenant and its users; as an operator, all."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", "/v1/limits/rules")
        if as_json:
            output.json(found)
        else:
            output.table(["whose", "tenant", "at most"], [_rule(each) for each in found["rules"]], whole={"whose"})
        return 0

    run(command)


@limits.command(name="set")
def set_rule(
    whose: Whose,
    at_most: Annotated[
        list[str],
        typer.Argument(
            help=f"Limits of {', '.join(_THINGS)}, as tokens=200000/hour dollars=5/day; or in all credits=500, "
            "storage=10GiB, stored_documents=1000."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Set the limits of somebody, in place of those until now."""
    _put(whose, at_most, Output(as_json=as_json))


@limits.command()
def grant(
    whose: Whose, amount: Annotated[int, typer.Argument(min=1, help="Further credits.")], as_json: AsJson = False
) -> None:
    """Grant further credits to somebody. Answers take them; those that fail or are cancelled take none."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        tenant = (await gateway.request("GET", "/v1/me"))["tenant"]
        found = (await gateway.request("GET", "/v1/limits/rules"))["rules"]
        rules = {rule["whose"]: rule["limits"] for rule in found if (rule["tenant_id"] or tenant) == tenant}
        # A rule by name takes the place of the one for each: its limits go on to hold.
        limits = rules.get(whose) or rules.get(f"{whose.partition(':')[0]}:*", [])
        granted = amount + sum(each["amount"] for each in limits if each["what"] == "credits")
        others = [each for each in limits if each["what"] != "credits"]
        await _set(gateway, whose, [*others, {"what": "credits", "amount": granted, "per": "ever"}], output)
        return 0

    run(command)


@limits.command()
def remove(whose: Whose, as_json: AsJson = False) -> None:
    """Remove a rule: for a name the one for each then holds again."""
    _put(whose, [], Output(as_json=as_json))


def _put(whose: str, at_most: list[str], output: Output) -> None:
    async def command(gateway: Gateway) -> int:
        await _set(gateway, whose, [_limit(each) for each in at_most], output)
        return 0

    run(command)


async def _set(gateway: Gateway, whose: str, limits: list[Json], output: Output) -> None:
    place = in_path(whose, "rule").replace("%2F", "/")  # of a group's name; the server takes no escaped slash
    rule = await gateway.request("PUT", f"/v1/limits/rules/{place}", json={"limits": limits})
    if output.as_json:
        output.json(rule)
    else:
        output.table(["whose", "tenant", "at most"], [_rule(rule)], whole={"whose"})


def _limit(text: str) -> Json:
    """Raises UsageError."""
    if in_all := _LIMIT_IN_ALL.fullmatch(text):
        amount = float(in_all[2] or in_all[4]) * _UNITS[in_all[5] or ""]
        return {"what": in_all[1] or in_all[3], "amount": amount, "per": "ever"}
    if not (match := _LIMIT.fullmatch(text)):
        raise UsageError(
            f"{text[:60]!r} is no limit; write one of {', '.join(_THINGS)} as tokens=200000/hour, for each {', '.join(_WINDOWS)}, "
            "or credits=500, storage=10GiB or stored_documents=1000"
        )
    return {"what": match[1], "amount": float(match[2]), "per": match[3]}


def _words(limit: Json) -> str:
    if limit["per"] == "ever":
        what = {"storage": "bytes stored", "stored_documents": "documents stored"}.get(limit["what"], limit["what"])
        return f"{limit['amount']:,.15g} {what} in all"
    return f"{limit['amount']:,.12g} {limit['what'].replace('_', ' ')} a{'n' * (limit['per'] == 'hour')} {limit['per']}"


def _rule(rule: Json) -> list[str]:
    return [rule["whose"], rule["tenant_id"] or "", "; ".join(map(_words, rule["limits"])) or "(no limit)"]


def _state(state: Json) -> list[str]:
    used = "" if state["used"] is None else f"{state['used']:,.15g}"
    otherwise = "when granted" if state["limit"]["what"] == "credits" else "when documents are deleted"
    return [state["whose"], _words(state["limit"]), used, state["free_at"] or otherwise]
