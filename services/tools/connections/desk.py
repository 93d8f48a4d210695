"""What people do about connections: list them, connect a service, and forget a connection."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import SecretStr

from kit.access.principal import ADMIN, Principal
from kit.errors import FailedPrecondition, InvalidArgument, Unavailable
from services.tools.connections.records import SERVICES, Connection, ConnectionRecords, Connections
from services.tools.errors import ServiceUnavailable, ToolError

_SECRET = re.compile(r"[\x21-\x7e]{1,1000}")


class ConnectionRefused(FailedPrecondition):
    """The service does not take the credential, or cannot be reached from here."""

    reason = "CONNECTION_REFUSED"


@dataclass(frozen=True)
class Door:
    """How one service is connected."""

    address: str
    account: Callable[[SecretStr], Awaitable[str]]
    """Tries a credential, and returns as whom the service knows its holder. Raises ToolError."""


class ConnectionDesk:
    """The decisions of people about their connections, and of administrators about the tenant's."""

    def __init__(self, records: ConnectionRecords, doors: Mapping[str, Door], now: Callable[[], datetime]) -> None:
        """`doors`: the services that can be connected here, by name."""
        self._records = records
        self._doors = doors
        self._now = now
        self.connections = Connections(records, {service: door.address for service, door in doors.items()})

    @property
    def services(self) -> Sequence[str]:
        """The services that can be connected here."""
        return sorted(self._doors)

    async def connect(self, caller: Principal, service: str, secret: str, *, shared: bool) -> Connection:
        """Connects a service once it has taken the credential. Raises InvalidArgument, ConnectionRefused, PermissionDenied,
        NoSealingKey and Unavailable."""
        if shared:
            caller.require(ADMIN)
        door = self._doors.get(service)
        if door is None:
            raise InvalidArgument(f"{service!r:.80} cannot be connected here; {self._possible()}")
        if not _SECRET.fullmatch(secret):
            raise InvalidArgument("the credential must have 1 to 1000 visible ASCII characters, without spaces")
        given = SecretStr(secret)
        account = await _tried(door, given, SERVICES[service])
        owner = "" if shared else caller.subject
        connection = Connection(service, door.address, account, self._now(), owner, given)
        await self._records.put(caller.tenant_id, connection)
        return connection

    async def forget(self, caller: Principal, service: str, *, shared: bool) -> None:
        """Forgets a connection. Harmless when repeated. Raises PermissionDenied and Unavailable."""
        if shared:
            caller.require(ADMIN)
        await self._records.remove(caller.tenant_id, "" if shared else caller.subject, service)

    def _possible(self) -> str:
        return f"these can: {', '.join(self.services)}" if self._doors else "the operator allows no service"


async def _tried(door: Door, secret: SecretStr, service: str) -> str:
    try:
        return await door.account(secret)
    except ServiceUnavailable as error:
        raise Unavailable(f"{service} could not be asked: {error}", reason="CONNECTION_NOT_TRIED") from error
    except ToolError as error:
        raise ConnectionRefused(f"{service} was not connected: {error}") from error
