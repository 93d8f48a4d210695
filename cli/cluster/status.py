"""`groundwork cluster status`: what runs, what lags, what is degraded and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.cluster.options import AsJson, Context, Namespace, ReleaseName
from cli.cluster.running import Target, run
from cli.display.output import Output

if TYPE_CHECKING:
    from cli.cluster.api import Api
    from cli.cluster.release import Release
    from cli.cluster.snapshot import Snapshot


def status(
    namespace: Namespace = "", release: ReleaseName = "", context: Context = "", as_json: AsJson = False
) -> None:
    """Show each component with its pods, load and troubles, the queues, NATS, autoscalers, volumes and backups.

    Exit code 1 unless every component has the pods that it should have.
    """
    output = Output(as_json=as_json)

    async def command(api: Api, found: Release) -> int:
        from cli.cluster.reading import read_snapshot  # noqa: PLC0415 - needed here only, and clients should start fast

        return show(await read_snapshot(api, found), output)

    run(command, Target(context, namespace, release))


def show(snapshot: Snapshot, output: Output) -> int:
    """Prints it; the exit code."""
    from cli.cluster.overview import overview  # noqa: PLC0415 - as above

    found = overview(snapshot)
    if output.as_json:
        output.json(found.as_json())
        return 0 if found.is_whole else 1
    output.out.print(f"release {snapshot.release} in namespace {snapshot.namespace}", markup=False)
    for section in found.sections:
        output.out.print()
        output.table(section.columns, section.cells)
    for what in snapshot.unseen:
        output.err.print(f"Not looked at: {what}.", markup=False)
    if found.troubles:
        output.out.print(f"\n{found.troubles} things are wrong: groundwork cluster doctor names each with its cure.")
    return 0 if found.is_whole else 1
