"""What the API server's refusals and its silence mean, in a sentence with what to do. All of them end a command with exit code 2:
the way to the cluster, or the rights there, must be put right first."""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from cli.cluster.errors import ClusterUnreachable
from cli.errors import CliError, UsageError


class Forbidden(UsageError):
    """The caller has no right to that."""


class NotFound(UsageError):
    """There is no such object, or no such kind of object."""


class Conflict(UsageError):
    """There is such an object already, or it was changed since it was read."""


def answered(status: int, reason: str, body: str, server: str, certificate_file: str | None = None) -> CliError:
    """For an answer other than success. `certificate_file` is the certificate that was shown to the server."""
    said = _said(body) or reason or f"HTTP {status}"
    if status == HTTPStatus.UNAUTHORIZED:
        why = _why_unknown(certificate_file) or said
        return UsageError(
            f"The API server {server} does not accept the credentials of this kubeconfig ({why}): log in again, or get "
            "a new kubeconfig from the people who run the cluster."
        )
    if status == HTTPStatus.FORBIDDEN:
        return Forbidden(f"The API server does not allow it: {said}. Ask for a role with that right in this namespace.")
    if status == HTTPStatus.NOT_FOUND:
        return NotFound(f"{said[:1].upper()}{said[1:]}.")
    if status == HTTPStatus.CONFLICT:
        return Conflict(f"{said[:1].upper()}{said[1:]}.")
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ClusterUnreachable(
            f"The API server {server} answered HTTP {status} ({said}): it is overloaded or starting; try again in a "
            "minute."
        )
    return UsageError(f"The API server refused it with HTTP {status}: {said}.")


def unreachable(server: str, error: Exception) -> ClusterUnreachable:
    """For no answer at all."""
    verification = _verification_error(error)
    if verification is not None:
        return ClusterUnreachable(
            f"The certificate of the API server {server} cannot be trusted ({verification}): if it has expired it must "
            "be renewed there, else this kubeconfig is of another cluster; get a new one."
        )
    if isinstance(error, TimeoutError):
        told = "it did not answer in time"
    elif isinstance(error, ValueError):
        told = "what answers there is no Kubernetes API"
    else:
        told = str(error) or type(error).__name__
    return ClusterUnreachable(
        f"The API server {server} cannot be reached ({told}): is the cluster up, and is it the right one? Choose "
        "another with --context; kubectl config get-contexts lists them."
    )


def _said(body: str) -> str:
    """The message of a `Status` object."""
    try:
        status = json.loads(body)
    except ValueError:
        return ""
    return str(status.get("message") or "") if isinstance(status, dict) else ""


def _verification_error(error: BaseException | None) -> str | None:
    """What is wrong with the server's certificate, if that is what an error is about."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message or str(error)
        inner = getattr(error, "certificate_error", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__
    return None


def _why_unknown(certificate_file: str | None) -> str:
    """That the client's own certificate has expired, if it has: the server only says that it knows nobody."""
    if not certificate_file:
        return ""
    ends_at = certificate_end(Path(certificate_file).read_bytes())
    if ends_at is None or ends_at > datetime.now(UTC):
        return ""
    return f"its client certificate expired on {ends_at:%Y-%m-%d}"


def certificate_end(pem: bytes) -> datetime | None:
    """When the first certificate of a PEM file ends; None when it holds none that can be read."""
    from cryptography import x509  # noqa: PLC0415 - needed for one sentence, and takes 100 ms

    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc
    except ValueError:
        return None
