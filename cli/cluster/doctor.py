"""`groundwork cluster doctor`: names each trouble of an installation in one sentence, with its cure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.cluster.options import AsJson, Context, Namespace, ReleaseName
from cli.cluster.running import Target, run
from cli.display.output import Output
from cli.display.terminal import harmless

if TYPE_CHECKING:
    from cli.cluster.api import Api
    from cli.cluster.release import Release
    from cli.cluster.snapshot import Snapshot


def doctor(
    namespace: Namespace = "", release: ReleaseName = "", context: Context = "", as_json: AsJson = False
) -> None:
    """Say what is wrong with the installation, one sentence a trouble, with its cure. Changes nothing.

    Exit code 1 if something is wrong, 2 if it could not be looked at.
    """
    output = Output(as_json=as_json)

    async def command(api: Api, found: Release) -> int:
        from cli.cluster.reading import read_snapshot  # noqa: PLC0415 - needed here only, and clients should start fast

        return tell(await read_snapshot(api, found, in_depth=True), output)

    run(command, Target(context, namespace, release))


def tell(snapshot: Snapshot, output: Output) -> int:
    """Prints the findings; the exit code."""
    from cli.cluster.checks import findings  # noqa: PLC0415 - as above

    found = findings(snapshot)
    if output.as_json:
        told = [{**asdict(each), "text": each.text} for each in found]
        output.json(
            {"namespace": snapshot.namespace, "release": snapshot.release, "findings": told, "unseen": snapshot.unseen}
        )
        return int(bool(found))
    for each in found:
        output.out.print(harmless(f"{each.kind}  {each.text}"), markup=False)
    for what in snapshot.unseen:
        output.err.print(harmless(f"Not looked at: {what}."), markup=False)
    if not found:
        where = f"release {snapshot.release} in namespace {snapshot.namespace}"
        looked = "in what could be looked at" if snapshot.unseen else ""
        output.out.print(" ".join(filter(None, ["Nothing is wrong with", where, looked])) + ".", markup=False)
    return int(bool(found))
