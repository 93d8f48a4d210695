"""`groundwork cluster backup` and `restore`: by jobs of the chart, which have the password of the store and the volume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.cluster.options import Context, Namespace, ReleaseName, seconds
from cli.cluster.running import Target, run
from cli.deleting import confirm

if TYPE_CHECKING:
    from cli.cluster.connection.api import Api
    from cli.cluster.connection.release import Release
    from cli.cluster.standstill import Standstill

_NOT_SET_UP = (
    "There is no backup in release {release}: install it with backup.enabled=true, which makes a volume and a schedule."
)
_STOPPED = (
    "The services are stopped, because what is stored may be half restored. Put right what the log says and run this command "
    "again; or start them as it is: groundwork cluster restore --only-start"
)
_INTERRUPTED = (
    "Interrupted; a job that had begun goes on. Run the command again, or start what was stopped as it is: "
    "groundwork cluster restore --only-start"
)
_FOLDER = "/backups"


def backup(
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also when stored data is damaged: the backup is marked as such.")
    ] = False,
    namespace: Namespace = "",
    release: ReleaseName = "",
    context: Context = "",
) -> None:
    """Make a backup now, besides those of the schedule. Everything goes on meanwhile."""

    async def command(api: Api, found: Release) -> int:
        from cli.cluster.jobs import cron_job_of, run_job  # noqa: PLC0415 - needed here only, and clients should start fast

        cron_job = await cron_job_of(api, found, "backup", _NOT_SET_UP.format(release=found.name))
        await run_job(api, found, cron_job, typer.echo, more_arguments=["--anyway"] if anyway else [])
        return 0

    run(command, Target(context, namespace, release), interrupted="Stopped watching; the job goes on.")


def restore(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Name of the backup in its volume; the newest if left out.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    only_start: Annotated[
        bool, typer.Option("--only-start", help="Only start the services that an interrupted restore has stopped.")
    ] = False,
    timeout: Annotated[str, typer.Option(help="How long the services may take to end, as 90s or 10m.")] = "5m",
    namespace: Namespace = "",
    release: ReleaseName = "",
    context: Context = "",
) -> None:
    """Stop all services, bring back what a backup holds in place of what is stored, and start them again.

    Jobs that waited when the backup was made are done afterwards: its public keys are trusted for them. The indexes are made again
    from the documents, beginning a minute after the start.
    """
    within_s = seconds(timeout)
    if "/" in file:
        raise typer.BadParameter("name the file alone, as it is called in the volume of backups", param_hint="FILE")

    async def command(api: Api, found: Release) -> int:
        from cli.cluster.standstill import Standstill  # noqa: PLC0415 - needed here only, and clients should start fast

        standstill = Standstill(api, found, typer.echo)
        if not only_start:
            await _restore(api, found, standstill, file, within_s, yes=yes)
        started = await standstill.end()
        typer.echo(f"{started} workloads are started again. kubectl get pods shows how far they are.")
        return 0

    run(command, Target(context, namespace, release), interrupted=_INTERRUPTED)


async def _restore(
    api: Api, release: Release, standstill: Standstill, file: str, timeout_s: float, *, yes: bool
) -> None:
    from cli.cluster.jobs import JobFailed, cron_job_of, run_job  # noqa: PLC0415 - as above

    cron_job = await cron_job_of(api, release, "restore", _NOT_SET_UP.format(release=release.name))
    if not yes:
        what = f"the backup {file}" if file else "the newest backup"
        confirm(
            f"Everything that release {release.name} in namespace {release.namespace} has stored goes, and {what} takes its "
            "place. Nobody is served meanwhile. Go on?",
            "Nothing was changed.",
        )
    await standstill.begin(timeout_s)
    environment = {"BACKUP": f"{_FOLDER}/{file}" if file else _FOLDER}
    try:
        await run_job(api, release, cron_job, typer.echo, environment=environment)
    except JobFailed as error:
        raise JobFailed(f"{error} {_STOPPED}") from error
