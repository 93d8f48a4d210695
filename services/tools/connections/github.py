"""What tools ask of GitHub, by its API (https://docs.github.com/rest)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

from services.tools.connections.records import Connection
from services.tools.errors import ToolError

TIMEOUT_S = 15.0
"""Of a tool that asks once, with redirects."""
JSON = "application/vnd.github+json"
TEXT_MATCHES = "application/vnd.github.text-match+json"
"""Search results with the lines that were found."""


class GithubFailed(ToolError):
    """GitHub did not do what was asked."""

    reason = "GITHUB_FAILED"


class CredentialRefused(GithubFailed):
    """The service does not take the credential of the connection."""

    reason = "CONNECTION_REFUSED"


@dataclass(frozen=True)
class Asked:
    """A request to GitHub's API."""

    path: str
    """Below the address of the API, its parts quoted: see `repository_path`."""
    params: Mapping[str, str] = field(default_factory=dict)
    accept: str = JSON
    body: Mapping[str, Any] | None = None
    """What is to be made; None: something is read."""


class Github(Protocol):
    """GitHub's API."""

    async def ask(self, asked: Asked, connection: Connection, *, tenant_id: str, run: str) -> Any:
        """The answer as JSON. Raises ToolError; CallInDoubt where something was to be made and nobody knows whether it was."""
        ...


def repository_path(repository: str, *parts: str) -> str:
    """The path of something in a repository that is named as `owner/name`. Raises GithubFailed."""
    owner, _, name = repository.partition("/")
    whole = [owner, name, *(each for part in parts for each in part.strip("/").split("/"))]
    if "/" in name or any(each in ("", ".", "..") for each in whole):
        raise GithubFailed("name the repository as owner/name, and a path without `..`", reason="INVALID_ARGUMENTS")
    return "/".join(["/repos", *(quote(each, safe="") for each in whole)])
