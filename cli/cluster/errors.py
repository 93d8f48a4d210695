"""What ends a command of `groundwork cluster` early."""

from __future__ import annotations

from cli.errors import CliError, UsageError

CLIENT_MISSING = "This command needs the Kubernetes client: pip install 'groundwork[cli,cluster]'"


class ClusterError(CliError):
    """The cluster or an object in it is not as the command needs it."""


class ClusterUnreachable(UsageError):
    """No API server could be asked."""
