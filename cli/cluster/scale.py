"""`groundwork cluster scale`: more or fewer pods of a component."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.cluster.logs import seconds
from cli.cluster.options import AsJson, Context, Namespace, ReleaseName
from cli.cluster.running import Target, run
from cli.display.output import Output

if TYPE_CHECKING:
    from cli.cluster.api import Api
    from cli.cluster.release import Release
    from cli.cluster.scaling import Change

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all pods are ready.")]
Timeout = Annotated[str, typer.Option(help="How long to wait, as 90s or 10m.")]


def scale(
    components: Annotated[
        list[str],
        typer.Argument(metavar="COMPONENT=NUMBER…", help="As `gateway=3`; with --autoscaler-… the name alone."),
    ],
    autoscaler_min: Annotated[int | None, typer.Option(min=0, help="Fewest pods that the autoscaler keeps.")] = None,
    autoscaler_max: Annotated[int | None, typer.Option(min=1, help="Most pods that the autoscaler makes.")] = None,
    wait: Wait = True,
    timeout: Timeout = "5m",
    namespace: Namespace = "",
    release: ReleaseName = "",
    context: Context = "",
    as_json: AsJson = False,
) -> None:
    """Run more or fewer pods of components, until the next `helm upgrade`, which brings back what the values say.

    Exit code 1 if they do not become ready in time, 2 if it cannot be: then nothing was changed.
    """
    output = Output(as_json=as_json)

    async def command(api: Api, found: Release) -> int:
        from cli.cluster.reading import read_snapshot  # noqa: PLC0415 - needed here only, and clients should start fast
        from cli.cluster.scaling import Bounds, decide, parse  # noqa: PLC0415 - as above

        bounds, within_s = Bounds(autoscaler_min, autoscaler_max), seconds(timeout)
        wanted = parse(components, bounds)
        snapshot = await read_snapshot(api, found)
        changes = [decide(snapshot, component, number, bounds) for component, number in wanted.items()]
        for change in changes:
            await api.patch(f"{found.path(change.kind)}/{change.name}", dict(change.patch))
            output.err.print(change.told, markup=False)
        for change in changes if wait else ():
            await _wait(api, found, change, within_s, output)
        _tell(changes, output, waited=wait)
        return 0

    run(command, Target(context, namespace, release), interrupted="Stopped waiting; the change goes on.")


async def _wait(api: Api, release: Release, change: Change, timeout_s: float, output: Output) -> None:
    from cli.cluster.rollout import wait_until_ready  # noqa: PLC0415 - as above

    kind = "apps/v1/deployments" if change.workload.kind == "Deployment" else "apps/v1/statefulsets"
    name = change.workload.name

    def told(now: str) -> None:
        output.err.print(f"{change.component}: {now}", markup=False)

    await wait_until_ready(api, release, kind, name, timeout_s, told)


def _tell(changes: list[Change], output: Output, *, waited: bool) -> None:
    if output.as_json:
        rows = [{"component": each.component, "pods": each.wanted, "value": each.value} for each in changes]
        output.json({"scaled": rows, "ready": waited})
        return
    values = " and ".join(each.value for each in changes)
    state = "Ready. " if waited else ""
    output.out.print(f"{state}The next helm upgrade brings back what the values say: set {values} there.", markup=False)
