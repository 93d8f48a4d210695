"""`groundwork backup`, `restore` and `doctor`: they look at the message store itself, so they work when nothing else does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Keys = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        metavar="FOLDER",
        help="Of a cluster: the folder of its keys (groundwork signing-keys), or its public.json. A backup takes the public ones "
        "along, by which the jobs that wait are verified where it is restored.",
    ),
]


def backup(
    file: Annotated[Path, typer.Argument(help="The backup: one file. In a folder it is named by the time.")],
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also when stored data is damaged: the backup is marked as such.")
    ] = False,
    keys: Keys = None,
    keep: Annotated[
        int | None, typer.Option(min=1, help="Of the backups in the folder only the newest so many remain.")
    ] = None,
    indexes: Annotated[
        bool,
        typer.Option("--indexes", help="With the indexes of a system that is stopped: a restore searches at once."),
    ] = False,
) -> None:
    """Write everything that is stored to FILE, while the system runs or is stopped.

    What is stored is compared first with what should be there; when something is missing, no backup is made.
    The system is the one of GROUNDWORK_DATA_DIR, or the cluster whose message store GROUNDWORK_NATS_URL names.
    """
    from cli.operating import message_store  # noqa: PLC0415 - needed here only, and clients should start fast

    raise typer.Exit(message_store.backup(file, anyway=anyway, keys=keys, keep=keep, indexes=indexes))


def restore(
    file: Annotated[Path, typer.Argument(help="The backup. Of a folder the newest one.")],
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Also where there is data. A data directory's is moved aside; a cluster's streams go."
        ),
    ] = False,
    keys: Keys = None,
) -> None:
    """Bring back what a backup holds, into a data directory that is empty and not in use, or into a cluster.

    The whole file is verified before anything is written.
    """
    from cli.operating import message_store  # noqa: PLC0415 - needed here only, and clients should start fast

    raise typer.Exit(message_store.restore(file, replace=replace, keys=keys))


def doctor(
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Forget what was found before: you have seen it. /readyz says `ready` again."),
    ] = False,
    keys: Keys = None,
) -> None:
    """Say what is wrong with the stored data, how the jobs and both indexes are, and what would be done. Changes nothing.

    Exit code 1 if stored data is damaged, or deletions wait that nobody will do.

    Of a system that is stopped a copy of the message store is looked at, which needs room for it.
    """
    from cli.operating import message_store  # noqa: PLC0415 - needed here only, and clients should start fast

    raise typer.Exit(message_store.doctor(accept=accept, keys=keys))
