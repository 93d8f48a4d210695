"""Options that the commands of `groundwork cluster` share."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from cli.errors import UsageError

_SPAN = re.compile(r"^(\d+)([smhd])$")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

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
    """Of `30s`, `10m`, `2h`, `1d`. Raises UsageError."""
    found = _SPAN.match(span)
    if found is None or not int(found[1]):
        raise UsageError(f"{span!r} is no span of time; write 30s, 10m, 2h or 1d.")
    return int(found[1]) * _SECONDS[found[2]]
