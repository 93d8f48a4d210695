"""What a tenant has decided about MCP servers: those that it has added, and which tools of any server it has approved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pydantic import SecretStr

from services.tools.sources.logins import Login


@dataclass(frozen=True)
class Approval:
    """That somebody has read what a tool says of itself, and lets it be used."""

    digest: str
    reads_only: bool
    """Whether it changes nothing, so that no person is asked for each call."""
    by: str
    at: datetime


@dataclass(frozen=True)
class ServerRecord:
    """What a tenant keeps of a server."""

    url: str = ""
    """Address of a server that the tenant has added; empty of an operator's."""
    approved: Mapping[str, Approval] = field(default_factory=dict)
    """By the name of the tool."""
    headers: Mapping[str, SecretStr] = field(default_factory=dict)
    """What is sent to the server with each request, by name: secrets, stored sealed."""
    sealed: str = ""
    """The headers as they are stored, where this process cannot open them."""


class ServerRecords(Protocol):
    """The records of all tenants, followed."""

    def of(self, tenant_id: str) -> Mapping[str, ServerRecord]:
        """By the name of the server."""
        ...

    async def put(self, tenant_id: str, server: str, record: ServerRecord | None) -> None:
        """Keeps a record, or removes it, and returns when this process knows. Raises Unavailable."""
        ...

    def login(self, tenant_id: str, server: str, *, is_waiting: bool = False) -> Login | None:
        """The login at a server that the tenant has added, or the one that waits for its person. Raises CannotOpen."""
        ...

    async def put_login(self, tenant_id: str, server: str, login: Login | None, *, is_waiting: bool = False) -> None:
        """Keeps a login, or removes it, and returns when this process knows. Raises Unavailable, NoSealingKey."""
        ...

    async def replace_login(self, tenant_id: str, server: str, known: Login, login: Login) -> bool:
        """Keeps `login` in the place of `known`, and returns when this process knows. False where the login is another by now.
        Raises Unavailable, CannotOpen."""
        ...

    async def changed_login(self, tenant_id: str, server: str, known: Login, *, timeout_s: float) -> Login | None:
        """The login as another process has kept it since `known`; None when none does so in time. Raises CannotOpen."""
        ...
