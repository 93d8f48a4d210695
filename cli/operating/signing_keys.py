"""`groundwork signing-keys`: the keys with which services prove for which caller they act. Needs no running server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.settings import CliSettings
from ops.signers import SIGNERS

if TYPE_CHECKING:
    from kit.access.key_folder import KeyFolder

signing_keys = typer.Typer(no_args_is_help=True, help="Signing keys of the services: make and change them.")


Signers = Annotated[list[str] | None, typer.Argument(help="Whose keys; all if none is named.")]
Folder = Annotated[Path | None, typer.Option(help="Folder of the keys, if not that of the data directory.")]


@signing_keys.command(name="ensure")
def ensure(folder: Folder = None) -> None:
    """Make the keys that are missing, and bring the public ones up to date with what this version's services call.

    Keys that are there stay as they are: it may be run before each start.
    """
    place = _place(folder)
    with _said_without_a_traceback(place):
        place.ensure(SIGNERS)
    typer.echo(f"All signers have keys in {place.path}.")


@signing_keys.command(name="rotate")
def rotate(signers: Signers = None, folder: Folder = None) -> None:
    """Give signers new keys; services that run take them over, and refuse nobody. Makes the folder and its keys if there are none.

    The keys until now stay valid until the next rotation, so that nothing that was signed with them is refused.
    """
    chosen, place = _chosen(signers), _place(folder)
    with _said_without_a_traceback(place):
        place.rotate(SIGNERS, chosen)
    typer.echo(
        f"New keys for {', '.join(chosen)} in {place.path}. Keys that they had stay valid until the next rotation; "
        "groundwork signing-keys forget takes them away."
    )


@signing_keys.command(name="forget")
def forget(signers: Signers = None, folder: Folder = None) -> None:
    """Take the previous keys of signers away, for instance because one was stolen: what was signed with them is refused.

    Rotate first: the current keys stay.
    """
    chosen, place = _chosen(signers), _place(folder)
    with _said_without_a_traceback(place):
        place.forget(SIGNERS, chosen)
    typer.echo(f"The previous keys of {', '.join(chosen)} in {place.path} are void.")


def _chosen(signers: list[str] | None) -> list[str]:
    if unknown := sorted(set(signers or ()) - set(SIGNERS)):
        raise typer.BadParameter(f"{', '.join(unknown)} signs nothing; those who sign are {', '.join(SIGNERS)}")
    return signers or list(SIGNERS)


def _place(folder: Path | None) -> KeyFolder:
    from kit.access.key_folder import KeyFolder  # noqa: PLC0415 - the cryptography is needed here only, and clients should start fast

    return KeyFolder(folder or CliSettings().data_dir / "secrets" / "keys")


@contextmanager
def _said_without_a_traceback(place: KeyFolder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        typer.echo(f"The keys in {place.path} cannot be written: {error.strerror} ({error.filename}).", err=True)
        raise typer.Exit(2) from error
