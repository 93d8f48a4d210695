"""What the API server's refusals and its silence mean, in a sentence with what to do. All of them end a command with exit code 2:
the way to the cluster, or the rights there, must be put right first."""

from __future__ import annotations

import json
from http import HTTPStatus

from cli.cluster.errors import ClusterUnreachable
from cli.errors import CliError, UsageError


class Forbidden(UsageError):
    """The caller has no right to that."""


class NotFound(UsageError):
    """There is no such object, or no such kind of object."""


class Conflict(UsageError):
    """There is such an object already, or it was changed since it was read."""


def answered(status: int, reason: str, body: str, server: str) -> CliError:
    """For an answer other than success."""
    said = _said(body) or reason or f"HTTP {status}"
    if status == HTTPStatus.UNAUTHORIZED:
        return UsageError(
            f"The API server {server} does not accept the credentials of this kubeconfig ({said}): log in again, or get "
            "a new kubeconfig from the people who run the cluster."
        )
    if status == HTTPStatus.FORBIDDEN:
        return Forbidden(f"The API server does not allow it: {said}. Ask for a role with that right in this namespace.")
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
        kind = NotFound if status == HTTPStatus.NOT_FOUND else Conflict
        return kind(f"{said[:1].upper()}{said[1:]}.")
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ClusterUnreachable(
            f"The API server {server} answered HTTP {status} ({said}): it is overloaded or starting; try again in a "
            "minute."
        )
    return UsageError(f"The API server refused it with HTTP {status}: {said}.")


def unreachable(server: str, error: Exception) -> ClusterUnreachable:
    """For no answer at all."""
    if isinstance(error, TimeoutError):
        why = "it did not answer in time"
    elif isinstance(error, ValueError):
        why = "what answers there is no Kubernetes API"
    else:
        why = str(error) or type(error).__name__
    return ClusterUnreachable(
        f"The API server {server} cannot be reached ({why}): is the cluster up, and is it the right one? Choose "
        "another with --context; kubectl config get-contexts lists them."
    )


def _said(body: str) -> str:
    """The message of a `Status` object."""
    try:
        status = json.loads(body)
    except ValueError:
        return ""
    return str(status.get("message") or "") if isinstance(status, dict) else ""
