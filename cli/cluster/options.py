"""Options that the commands of `groundwork cluster` share."""

from __future__ import annotations

from typing import Annotated

import typer

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
