"""Options that the commands of `groundwork cluster` share."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.durations import seconds_of
from cli.errors import UsageError

Namespace = Annotated[
    str,
    typer.Option(
        "--namespace", "-n", help="Namespace of the installation; that of the kubeconfig's context if left out."
    ),
]
Name = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="FULLNAME",
        help="What the names of its objects begin with: the value fullnameOverride, or the release's name, or RELEASE-groundwork "
        "where that name lacks `groundwork`.",
    ),
]
Context = Annotated[str, typer.Option("--context", help="Context of the kubeconfig; its current one if left out.")]
ReleaseName = Annotated[
    str, typer.Option("--release", help="Name of the Helm release; found by its labels if left out.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def seconds(span: str) -> int:
    """`30s`, `10m`, `2h` or `1d` in seconds. Raises UsageError, also for none at all."""
    if not (found := seconds_of(span)):
        raise UsageError(f"{span!r} leaves no time; write 30s, 10m, 2h or 1d.")
    return found
