"""`groundwork cluster logs`: the logs of all pods at once, by time."""

from __future__ import annotations

import re
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated

import typer

from cli.cluster.log_lines import LEVELS, LogLine, Wanted
from cli.cluster.options import Context, Namespace, ReleaseName
from cli.cluster.running import Target, run
from cli.display.output import Output
from cli.display.terminal import harmless
from cli.errors import UsageError

if TYPE_CHECKING:
    from cli.cluster.api import Api
    from cli.cluster.release import Release

_SPAN = re.compile(r"^(\d+)([smhd])$")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_USUAL_SINCE = "10m"
_PREVIOUS_LINES = 200


def logs(
    components: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMPONENT…", help="Components, as `gateway nats`; all if none is named."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, new pods included.")] = False,
    since: Annotated[str, typer.Option(help="How far back, as 30s, 10m, 2h or 1d; 10m if left out.")] = "",
    trace: Annotated[str, typer.Option(help="Only lines of this trace (X-Trace-Id of an answer).")] = "",
    run_id: Annotated[str, typer.Option("--run", help="Only lines of this run.")] = "",
    level: Annotated[str, typer.Option(help=f"Least severe level: {', '.join(LEVELS)}.")] = "debug",
    previous: Annotated[
        bool, typer.Option("--previous", help="Of the containers that ran before the last restart: why they ended.")
    ] = False,
    namespace: Namespace = "",
    release: ReleaseName = "",
    context: Context = "",
    as_json: Annotated[bool, typer.Option("--json", help="Lines as JSON, each with its pod and component.")] = False,
) -> None:
    """Show the logs of all pods of the components at once, merged by time."""
    output = Output(as_json=as_json)

    async def command(api: Api, found: Release) -> int:
        from cli.cluster.log_reading import Logs, follow_logs, read_logs  # noqa: PLC0415 - clients should start fast

        if follow and previous:
            raise UsageError("What ran before has ended: --previous and --follow do not go together.")
        wanted = Wanted.of(trace, run_id, level)
        since_s = seconds(since or _USUAL_SINCE) if since or not previous else None
        asked = Logs(components or (), since_s, _PREVIOUS_LINES if since_s is None else None, previous)
        await _require_components(api, found, components or [])
        if not follow:
            for line in await read_logs(api, found, asked):
                _show(line, wanted, output)
            return 0
        async with aclosing(follow_logs(api, found, asked)) as lines:
            async for line in lines:
                _show(line, wanted, output)
        return 0

    run(command, Target(context, namespace, release), interrupted="")


def seconds(span: str) -> int:
    """Of `30s`, `10m`, `2h`, `1d`. Raises UsageError."""
    found = _SPAN.match(span)
    if found is None or not int(found[1]):
        raise UsageError(f"{span!r} is no span of time; write 30s, 10m, 2h or 1d.")
    return int(found[1]) * _SECONDS[found[2]]


async def _require_components(api: Api, release: Release, components: list[str]) -> None:
    """A misspelt name would be an empty log."""
    if not components:
        return
    from cli.cluster.parsing import component_of  # noqa: PLC0415 - as above

    pods = await api.list(release.path("v1/pods"), labelSelector=release.selector)
    there = {component_of(pod) for pod in pods}
    if not there:
        raise UsageError(
            f"Release {release.name} in namespace {release.namespace} has no pods; kubectl get events may say why."
        )
    if unknown := sorted(set(components) - there):
        raise UsageError(f"There are no pods of {', '.join(unknown)}; there are those of {', '.join(sorted(there))}.")


def _show(line: LogLine, wanted: Wanted, output: Output) -> None:
    if not wanted.has(line):
        return
    if output.as_json:
        sys.stdout.write(harmless(line.as_json()) + "\n")
        sys.stdout.flush()
    else:
        output.out.print(line.shown())
