"""`groundwork keys`: the keys with which services prove who asks. Needs no running server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.settings import CliSettings

keys = typer.Typer(no_args_is_help=True, help="Signing keys of the services: change them.")


@keys.callback()
def about() -> None:
    """Signing keys of the services: change them."""


@keys.command(name="rotate")
def rotate(
    signers: Annotated[list[str] | None, typer.Argument(help="Whose keys; all if none is named.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Folder of the keys; that of the data directory.")] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Take the keys until now away, for instance because one was stolen.")
    ] = False,
) -> None:
    """Give signers new keys; services that run take them over, and refuse nobody. Makes the folder and its keys if there are none.

    Without --revoke the keys until now stay valid until the next rotation, so that nothing that was signed with them is refused.
    """
    from kit.key_folder import KeyFolder  # noqa: PLC0415 - needed here only, and clients should start fast
    from services.standalone.signers import SIGNERS  # noqa: PLC0415

    chosen = signers or list(SIGNERS)
    if unknown := sorted(set(chosen) - set(SIGNERS)):
        raise typer.BadParameter(f"{', '.join(unknown)} signs nothing; those who sign are {', '.join(SIGNERS)}")
    place = KeyFolder(folder or CliSettings().data_dir / "secrets" / "keys")
    try:
        place.rotate(SIGNERS, chosen, revoke=revoke)
    except OSError as error:
        typer.echo(f"The keys in {place.path} cannot be written: {error.strerror} ({error.filename}).", err=True)
        raise typer.Exit(2) from error
    typer.echo(
        f"New keys for {', '.join(chosen)} in {place.path}. "
        + ("Their earlier keys are void." if revoke else "Their keys until now stay valid until the next rotation.")
    )
