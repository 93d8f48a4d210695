"""`groundwork models`: which language model each operation asks, and changing that while everything runs."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from cli.client.gateway import Gateway, Json
from cli.display.output import Output
from cli.errors import UsageError
from cli.running import WHERE, run

models = typer.Typer(help="Language models: which one each operation asks; change it.", epilog=WHERE)

_STATES = {
    "closed": "answers",
    "open": "does not answer; left alone for a while",
    "half_open": "did not answer; the next request tries again",
    "unknown": "unknown",
}
"""What is said of a provider by the state of its circuit breaker, where it has no other problem."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Operation = Annotated[str, typer.Argument(help="plan, answer, verify, summarise or facts.")]


@models.callback(invoke_without_command=True)
def overview(context: typer.Context, as_json: AsJson = False) -> None:
    """Which models each operation asks, and what there is."""
    if context.invoked_subcommand:
        return
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("GET", "/v1/models")
        if as_json:
            output.json(found)
            return 0
        if not found["providers"]:
            output.out.print("No model is configured: answers quote the documents. See GROUNDWORK_LLM_PROVIDERS.")
            return 0
        output.table(["operation", "model", "then", "set by"], [_operation(each) for each in found["operations"]])
        output.out.print()
        output.table(["provider", "state", "models"], [_provider(each) for each in found["providers"]])
        return 0

    run(command)


@models.command(name="set")
def set_model(
    operation: Operation,
    model: Annotated[str, typer.Argument(help="PROVIDER/MODEL, as in openai/gpt-4.1-mini.")],
    force: Annotated[bool, typer.Option("--force", help="Although it does not answer now.")] = False,
    as_json: AsJson = False,
) -> None:
    """Have an operation ask another model from now on, on all replicas and after a restart."""

    async def command(gateway: Gateway) -> int:
        provider, slash, name = model.partition("/")
        if not slash or not provider or not name:
            raise UsageError(f"{model!r} is not PROVIDER/MODEL, as in openai/gpt-4.1-mini.")
        body = {"provider": provider, "model": name, "force": force}
        return _print_chain(Output(as_json=as_json), await gateway.request("PUT", _path(operation), json=body))

    run(command)


@models.command(name="reset")
def reset_model(operation: Operation, as_json: AsJson = False) -> None:
    """Have an operation ask the configured models again."""

    async def command(gateway: Gateway) -> int:
        return _print_chain(Output(as_json=as_json), await gateway.request("DELETE", _path(operation)))

    run(command)


def _path(operation: str) -> str:
    return f"/v1/models/{quote(operation, safe='')}"


def _print_chain(output: Output, now: Json) -> int:
    if output.as_json:
        output.json(now)
    else:
        output.out.print(f"{now['operation']} asks {', then '.join(map(_name, now['chain']))}", markup=False)
    return 0


def _operation(each: Json) -> list[str]:
    first, *others = map(_name, each["chain"])
    set_by = f"{each['set_by']} at {each['set_at']}" if each["set"] else ""
    return [each["operation"], first, ", ".join(others), set_by]


def _provider(each: Json) -> list[str]:
    offered = [*each["models"], *(["any other by name"] if each["any_model"] else [])]
    state = _STATES.get(each["state"] or "unknown", str(each["state"]))
    if problem := each.get("problem"):
        state = f"does not answer: {problem}" if each["state"] == "closed" else f"{state}: {problem}"
    return [each["name"], state, ", ".join(offered)]


def _name(choice: dict[str, Any]) -> str:
    return f"{choice['provider']}/{choice['model']}"
