"""Deleting things by their ids, once the user has said that they mean it."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from cli.client.gateway import Gateway, in_path
from cli.display.output import Output
from cli.errors import UsageError, given

GONE = "{} is gone"
"""Said where the server does not tell one that it deleted from one that was not there."""

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking first.")]


async def delete_each(
    gateway: Gateway,
    path: str,
    ids: Sequence[str],
    output: Output,
    *,
    what: str,
    yes: bool,
    also: str = "",
    said: str = "deleted {}",
    params: Mapping[str, str] | None = None,
) -> int:
    """Deletes `path`/id for each id, and says so as in `said`. Unless `yes` it asks first, calling one of them `what`, naming what
    goes `also`. Returns the exit code. Raises UsageError when an id is empty, the user says no, or nobody can be asked."""
    for each in ids:
        given(each, what)
    if not yes:
        question = f"Delete {f'the {what} {ids[0]}' if len(ids) == 1 else f'{len(ids)} {what}s'}{also}?"
        confirm(question, "Nothing was deleted.")
    for each in ids:
        await gateway.request("DELETE", f"{path}/{in_path(each, what)}", params=params)
        if not output.as_json:
            output.out.print(said.format(each), markup=False)
    if output.as_json:
        output.json({"deleted": list(ids)})
    return 0


def confirm(question: str, otherwise: str) -> None:
    """Asks on stderr. Raises UsageError that says `otherwise` when the user says no, and when nobody can be asked."""
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort as error:
        typer.echo(err=True)  # the question has no end of line
        raise UsageError("Nobody was there to be asked; say --yes.") from error
    if not agreed:
        raise UsageError(otherwise)
