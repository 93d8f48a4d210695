"""`groundwork audit`: who did what to what, and from where: list, export, and verify that nothing was changed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.client.gateway import Gateway, Json
from cli.display.output import Output
from cli.durations import resolve_past_time
from cli.errors import CliError, UsageError
from cli.running import WHERE, run, tell
from kit.stores.audit_chain import ChainBroken, ChainCheck, ChainLink, link_of

audit = typer.Typer(no_args_is_help=True, help="The audit log: list, export, verify.", epilog=WHERE)

Tenant = Annotated[str, typer.Option(help="The tenant; yours if left out. For operators.")]
Chain = Annotated[
    Literal["tenant", "unknown_callers"],
    typer.Option(help="unknown_callers: who was refused without a good key. For operators."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


@audit.command(name="list")
def list_entries(
    since: Annotated[str, typer.Option(help="How long ago at most: 24h, 7d. Or since when: 2026-01-31.")] = "24h",
    limit: Annotated[int, typer.Option(min=1, help="Most entries.")] = 1000,
    tenant: Tenant = "",
    chain: Chain = "tenant",
    as_json: AsJson = False,
) -> None:
    """Entries, oldest first."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        params = {**_params(tenant, chain), "since": resolve_past_time(since), "limit": limit}
        entries = [json.loads(line) async for line in gateway.lines("/v1/audit", params)]
        if as_json:
            output.json({"entries": entries})
        else:
            output.table(["number", "at", "who", "from", "what", "about", "status"], [_row(each) for each in entries])
        return 0

    run(command)


@audit.command(name="export")
def export(
    file: Annotated[Path, typer.Argument(help="File of JSON lines. One that is there is continued.")],
    tenant: Tenant = "",
    chain: Chain = "tenant",
) -> None:
    """Write the log to a file, or what is new to the end of one. Says if the log does not continue the file."""

    async def command(gateway: Gateway) -> int:
        check = _check_file(file, mend=True) if file.exists() else ChainCheck()
        before = check.last.number if check.last else 0
        # The last entry once more: the log must still have it as it was.
        lines = _behind(gateway.lines("/v1/audit", {**_params(tenant, chain), "after": max(before - 1, 0)}), check.last)
        await _append(file, lines, check)
        last = check.last.number if check.last else 0
        Output(as_json=False).out.print(f"{last - before} new entries; {_in_words(check)}", markup=False)
        return 0

    run(command)


@audit.command(name="verify")
def verify(
    file: Annotated[Path | None, typer.Argument(help="An exported file; the server's log if left out.")] = None,
    tenant: Tenant = "",
    chain: Chain = "tenant",
) -> None:
    """Look whether any entry was changed, removed or inserted. Exit code 1 if so."""
    output = Output(as_json=False)
    if file is not None:
        try:
            output.out.print(_in_words(_check_file(file)), markup=False)
        except CliError as error:
            tell(error)
            raise typer.Exit(error.exit_code) from error
        return

    async def command(gateway: Gateway) -> int:
        check = ChainCheck()
        async for line in gateway.lines("/v1/audit", _params(tenant, chain)):
            _take(check, line, "the log of the server")
        output.out.print(_in_words(check), markup=False)
        return 0

    run(command)


def _params(tenant: str, chain: str) -> dict[str, str | int]:
    return {"tenant_id": tenant, "chain": chain}


def _check_file(path: Path, *, mend: bool = False) -> ChainCheck:
    """The whole file. To `mend` removes an end that was cut off in the middle of a line. Raises CliError."""
    check = ChainCheck()
    try:
        with path.open("r+b" if mend else "rb") as file:
            whole = 0
            for line in file:
                if not line.endswith(b"\n"):
                    if not mend:
                        raise CliError(
                            f"{path}: the entry at its end is cut off; export to the file again to complete it."
                        )
                    file.truncate(whole)
                    break
                _take(check, line.decode(errors="replace"), str(path))
                whole += len(line)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    return check


async def _behind(lines: AsyncIterator[str], last: ChainLink | None) -> AsyncIterator[str]:
    """The lines behind `last`, which must be the first of them. Raises CliError."""
    is_first = last is not None
    async for line in lines:
        if is_first and last is not None and _link(line) != last:
            raise CliError(
                f"The log does not continue the file: its entry {_link(line).number} is not entry {last.number} of the file. "
                "Entries were changed or removed, or have expired (GROUNDWORK_AUDIT_RETENTION_DAYS). Export into another file "
                "to compare."
            )
        if not is_first:
            yield line
        is_first = False
    if is_first and last is not None:
        raise CliError(f"The log ends before entry {last.number}, the last one of the file: entries were removed.")


async def _append(path: Path, lines: AsyncIterator[str], check: ChainCheck) -> None:
    """Writes each line that continues the chain. Raises CliError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, stat.S_IRUSR | stat.S_IWUSR)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        async with aclosing(lines):  # type: ignore[type-var]  # it is a generator
            async for line in lines:
                _take(check, line, "the log of the server")
                file.write(line + "\n")


def _take(check: ChainCheck, line: str, where: str) -> None:
    """Raises CliError."""
    try:
        check.take(line.rstrip("\n"))
    except ChainBroken as error:
        raise CliError(f"The chain is broken in {where}: {error}.") from error


def _link(line: str) -> ChainLink:
    """Raises CliError."""
    try:
        return link_of(line)
    except ValueError as error:
        raise CliError("The server sent a line that is no entry of an audit log.") from error


def _in_words(check: ChainCheck) -> str:
    if check.first is None or check.last is None:
        return f"nothing behind entry {check.last.number}." if check.last else "the log is empty."
    began = "" if check.first.number == 1 else " Earlier entries have expired, or were removed."
    return f"entries {check.first.number} to {check.last.number} are whole; the last hash is {check.last.hash}.{began}"


def _row(entry: Json) -> list[str]:
    what = entry["action"]
    if what in ("request", "refused"):
        what = f"{'' if what == 'request' else 'refused: '}{entry.get('method', '')} {entry.get('route', '')}"
    about = entry.get("about") or {name: entry[name] for name in ("about_key_id", "about_subject") if name in entry}
    return [
        str(entry["number"]),
        entry["at"],
        entry.get("subject", "(unknown)"),
        entry.get("address", ""),
        what,
        ", ".join(str(value) for value in about.values()),
        entry.get("reason") or str(entry.get("status", "")),
    ]
