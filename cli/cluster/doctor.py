"""`groundwork cluster doctor`: names each trouble of an installation in one sentence, with its cure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.cluster.options import AsJson, Context, Namespace, ReleaseName
from cli.cluster.running import Target, run
from cli.display.output import Output
from cli.display.terminal import harmless

if TYPE_CHECKING:
    from cli.cluster.connection.api import Api
    from cli.cluster.connection.release import Release


def doctor(
    namespace: Namespace = "", release: ReleaseName = "", context: Context = "", as_json: AsJson = False
) -> None:
    """Say what is wrong with the installation, one sentence a trouble, with its cure. Changes nothing.

    Exit code 1 if something is wrong, 2 if it could not be looked at.
    """
    output = Output(as_json=as_json)

    async def command(api: Api, found: Release) -> int:
        from cli.cluster.installation import read_installation  # noqa: PLC0415 - needed here only, and clients should start fast
        from cli.cluster.troubles import find_troubles  # noqa: PLC0415 - as above

        installation = await read_installation(api, found)
        troubles = find_troubles(installation)
        if output.as_json:
            listed = [{**asdict(each), "text": each.text} for each in troubles]
            unseen = list(installation.unseen)
            output.json({"namespace": found.namespace, "release": found.name, "findings": listed, "unseen": unseen})
            return int(bool(troubles))
        for each in troubles:
            output.out.print(harmless(f"{each.kind}  {each.text}"), markup=False)
        for what in installation.unseen:
            output.err.print(harmless(f"Not looked at: {what}."), markup=False)
        if not troubles:
            looked = " in what could be looked at" if installation.unseen else ""
            where = f"release {found.name} in namespace {found.namespace}"
            output.out.print(f"Nothing is wrong with {where}{looked}.", markup=False)
        return int(bool(troubles))

    run(command, Target(context, namespace, release))
