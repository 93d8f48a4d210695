"""Connections in memory, and what tools of connected services are given in tests."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from unittest.mock import Mock

from services.tools.connections.logins import decode_login, encode_login
from services.tools.connections.records import Connection, Connections
from services.tools.context import Services
from services.tools.sources.logins import Login
from services.tools.sources.tokens import Tokens
from services.tools.web.pages import PageText
from services.tools.web.sections import PagePassage


@dataclass
class Records:
    """ConnectionRecords of the tenant acme."""

    known: list[Connection]

    def of(self, tenant_id: str, subject: str) -> Sequence[Connection]:
        return [each for each in self.known if tenant_id == "acme" and each.subject in (subject, "")]

    async def put(self, tenant_id: str, connection: Connection) -> None:
        assert tenant_id == "acme"
        self.known = [each for each in self.known if each.name != connection.name] + [connection]

    async def remove(self, tenant_id: str, subject: str, service: str) -> None:
        raise AssertionError

    def login(self, tenant_id: str, name: str) -> Login | None:
        return next((decode_login(each.secret) for each in self.known if each.name == name), None)

    async def replace_login(self, tenant_id: str, name: str, known: Login, login: Login) -> bool:
        if self.login(tenant_id, name) != known:
            return False
        (was,) = [each for each in self.known if each.name == name]
        await self.put(tenant_id, replace(was, secret=encode_login(login)))
        return True

    async def changed_login(self, tenant_id: str, name: str, known: Login, *, timeout_s: float) -> Login | None:
        raise AssertionError


@dataclass
class ReadFiles:
    """A FileReader that takes a file for its text."""

    read: list[tuple[str, bytes]] = field(default_factory=list)

    async def read_file(self, name: str, data: bytes) -> PageText:
        self.read.append((name, data))
        parts = [
            PagePassage(text, (), number) for number, text in enumerate(data.decode(errors="replace").split("\n\n"))
        ]
        return PageText(data.decode(errors="replace"), name, parts=parts)


def services_with(connection: Connection, tokens: Tokens | None = None, records: Records | None = None) -> Mock:
    """What the tools of one connected service are given."""
    services = Mock(spec=Services)
    renewing = {connection.service: tokens} if tokens else {}
    services.connections = Connections(
        records or Records([connection]), {connection.service: connection.address}, renewing
    )
    services.files = ReadFiles()
    return services
