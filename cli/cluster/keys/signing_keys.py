"""`groundwork cluster signing-keys`: new keys for the services of a cluster while all of them run, refusing nobody.

All pods have a new public key before anything is signed with its private half. `KeyFolder` knows the order of the steps; here its
folder is a copy, and waiting means to bring what changed there to the pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.cluster.connection.objects import Objects
from cli.cluster.connection.release import DEFAULT_NAMESPACE
from cli.cluster.options import Context, Name, Namespace, seconds
from cli.cluster.running import run_on
from cli.errors import UsageError
from ops.signers import SIGNERS

if TYPE_CHECKING:
    from cli.cluster.connection.api import Api
    from kit.access.keys import Jwk

signing_keys = typer.Typer(no_args_is_help=True, help="Signing keys of the services of a cluster: change them.")

Signers = Annotated[list[str] | None, typer.Argument(help="Whose keys; all if none is named.")]
Release = Annotated[str, typer.Option(metavar="RELEASE", help="Name of the Helm release; FULLNAME if left out.")]
Timeout = Annotated[str, typer.Option(help="How long the pods may take to have what they were given, as 90s or 10m.")]


@signing_keys.command(name="rotate")
def rotate(
    signers: Signers = None,
    name: Name = "groundwork",
    release: Release = "",
    timeout: Timeout = "10m",
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Give signers new keys. Services take them over within minutes, without a restart, and refuse nobody meanwhile.

    The keys until now stay valid until the next rotation, so that nothing that was signed with them is refused.
    """
    chosen, within_s = _chosen(signers), seconds(timeout)

    async def command(objects: Objects) -> None:
        from cli.cluster.keys.key_change import changing  # noqa: PLC0415 - the cryptography behind it takes time to load

        async with changing(objects, within_s, typer.echo) as change:
            await change.apply(lambda folder: folder.rotate(SIGNERS, chosen))
        typer.echo(
            f"New keys for {', '.join(chosen)}. Keys that they had stay valid until the next rotation; groundwork cluster "
            "signing-keys forget takes them away."
        )

    _run(command, name, release, namespace, context)


@signing_keys.command(name="forget")
def forget(
    signers: Signers = None,
    name: Name = "groundwork",
    release: Release = "",
    timeout: Timeout = "10m",
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Take the previous keys of signers away, for instance because one was stolen: what was signed with them is refused.

    Rotate first: the current keys stay.
    """
    chosen, within_s = _chosen(signers), seconds(timeout)

    async def command(objects: Objects) -> None:
        from cli.cluster.keys.key_change import changing  # noqa: PLC0415 - as above

        async with changing(objects, within_s, typer.echo) as change:
            await change.wait_for_signers()  # none may still sign with what is taken away
            await change.apply(lambda folder: folder.forget(SIGNERS, chosen))
            await change.spread()
        typer.echo(f"The previous keys of {', '.join(chosen)} are void.")

    _run(command, name, release, namespace, context)


@signing_keys.command(name="trust")
def trust(
    file: Annotated[Path, typer.Argument(help="The backup. Of a folder the newest one.")],
    name: Name = "groundwork",
    release: Release = "",
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Have the jobs done that wait in a backup: its public keys are trusted for these, and for no call.

    `groundwork cluster restore` does so by itself.
    """

    async def command(objects: Objects) -> None:
        from cli.cluster.keys.key_set import trust_for_jobs  # noqa: PLC0415 - as above

        keys = await asyncio.to_thread(_public_keys_of, file)
        added = await trust_for_jobs(objects, keys)
        typer.echo(f"{added} public keys of the backup are trusted for its jobs." if added else "Its keys are known.")

    _run(command, name, release, namespace, context)


def _run(
    command: Callable[[Objects], Coroutine[Any, Any, None]], name: str, release: str, namespace: str, context: str
) -> None:
    async def connected(api: Api) -> int:
        await command(Objects(api, namespace or api.context_namespace or DEFAULT_NAMESPACE, name, release or name))
        return 0

    run_on(connected, context, interrupted="Interrupted. Nothing is refused as it is; run the command again.")


def _chosen(signers: list[str] | None) -> list[str]:
    if unknown := sorted(set(signers or ()) - set(SIGNERS)):
        raise typer.BadParameter(f"{', '.join(unknown)} signs nothing; those who sign are {', '.join(SIGNERS)}")
    return signers or list(SIGNERS)


def _public_keys_of(place: Path) -> tuple[Jwk, ...]:
    """Raises UsageError for what is no backup."""
    from ops.backup import folder  # noqa: PLC0415 - as above
    from ops.backup.archive import read_manifest  # noqa: PLC0415 - as above
    from ops.errors import BackupUnusable  # noqa: PLC0415 - as above

    try:
        return read_manifest(folder.find_newest_file(place) if place.is_dir() else place).public_keys
    except BackupUnusable as error:
        raise UsageError(str(error)) from error
