"""Connections: what lets a user, or everybody in a tenant, use another service by tools. Their credentials are stored sealed."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

from pydantic import SecretStr

from kit.access.principal import Principal
from services.tools.connections.logins import decode_login
from services.tools.errors import ServiceUnavailable, ToolError, ToolUnavailable
from services.tools.sources.logins import Login, LoginRefused
from services.tools.sources.tokens import Tokens

Answer = TypeVar("Answer")
GITHUB, MAIL, DRIVE = "github", "mail", "google-drive"
REFUSED = "CONNECTION_REFUSED"
"""The reason of errors of a service that does not take a credential."""
SERVICES = {GITHUB: "GitHub", MAIL: "Mail", DRIVE: "Google Drive"}
"""What people call each service that can be connected, by its name here."""


@dataclass(frozen=True)
class Connection:
    """A connection to one service."""

    service: str
    """One of SERVICES."""
    address: str
    """Where the service is. The credential goes there and nowhere else."""
    account: str
    """As whom the service knows its holder."""
    connected_at: datetime
    subject: str = ""
    """Whose it is; empty: everybody's in the tenant."""
    secret: SecretStr = field(default=SecretStr(""), repr=False)
    """What the service lets its holder in by; empty where this process cannot open it. Of a login by OAuth, all of the login,
    or its access token where `is_token`."""
    is_token: bool = False

    @property
    def name(self) -> str:
        """A name of it in its tenant."""
        return f"{self.service}/{self.subject}"

    @property
    def is_shared(self) -> bool:
        return not self.subject


class ConnectionRecords(Protocol):
    """The connections of all tenants, followed."""

    def of(self, tenant_id: str, subject: str) -> Sequence[Connection]:
        """Those that a caller may use: its own first, then the tenant's, each by the name of the service."""
        ...

    async def put(self, tenant_id: str, connection: Connection) -> None:
        """Keeps a connection in the place of the one that was, and returns when this process knows. Raises Unavailable,
        NoSealingKey."""
        ...

    async def remove(self, tenant_id: str, subject: str, service: str) -> None:
        """Forgets a connection; without a subject the tenant's. Harmless when repeated. Raises Unavailable."""
        ...

    def login(self, tenant_id: str, name: str) -> Login | None:
        """The login of a connection by its name; None where it has none."""
        ...

    async def replace_login(self, tenant_id: str, name: str, known: Login, login: Login) -> bool:
        """Keeps `login` in the place of `known`. False where the login is another by now. Raises Unavailable."""
        ...

    async def changed_login(self, tenant_id: str, name: str, known: Login, *, timeout_s: float) -> Login | None:
        """The login as another process has kept it since `known`; None when none does so in time."""
        ...


class Connections:
    """Which connection a caller's tools use."""

    def __init__(
        self, records: ConnectionRecords, addresses: Mapping[str, str], tokens: Mapping[str, Tokens] | None = None
    ) -> None:
        """`addresses`: where each service is that can be connected here; `tokens` renew the access tokens of its logins."""
        self._records = records
        self._addresses = addresses
        self._tokens = tokens or {}

    def of(self, tenant_id: str, subject: str) -> Sequence[Connection]:
        """A caller's own connections, then the tenant's."""
        return self._records.of(tenant_id, subject)

    def find(self, tenant_id: str, subject: str, service: str) -> Connection | None:
        """The caller's own connection, else the tenant's; None where neither can be used."""
        known = self._records.of(tenant_id, subject)
        return next((each for each in known if each.service == service and not self.problem(each)), None)

    async def ask(
        self, caller: Principal, service: str, ask: Callable[[Connection], Coroutine[Any, Any, Answer]]
    ) -> Answer:
        """Asks a service by the caller's connection. Where the service refuses its access token, it is asked once more with a
        renewed one: what is refused was not done. Raises ToolError."""
        connection = await self._usable(caller.tenant_id, caller.subject, service)
        try:
            return await ask(connection)
        except ToolError as error:
            if not connection.is_token or error.reason != REFUSED:
                raise
        access = self._tokens[service].of(caller.tenant_id, connection.name, connection.address)
        access.refused(connection.secret.get_secret_value())
        connection = await self._usable(caller.tenant_id, caller.subject, service)
        try:
            return await ask(connection)
        except ToolError as error:
            if connection.is_token and error.reason == REFUSED:
                refused = connection.secret.get_secret_value()
                await access.leave_alone(refused, "it takes no renewed access token either")
            raise

    async def _usable(self, tenant_id: str, subject: str, service: str) -> Connection:
        """The connection that the caller's tools use now: of a login, with its access token. Raises ToolError."""
        connection = self.find(tenant_id, subject, service)
        if connection is None:
            raise not_connected(service)
        login = decode_login(connection.secret)
        if login is None:
            return connection
        if service not in self._tokens:
            raise not_connected(service)
        try:
            token = await self._tokens[service].of(tenant_id, connection.name, connection.address).token()
        except ServiceUnavailable as error:
            if isinstance(error.__cause__, LoginRefused):  # of this connection alone: the tool works for others
                raise ToolUnavailable(str(error), reason=REFUSED) from error
            raise
        if not token:  # the login was ended meanwhile
            raise not_connected(service)
        return replace(connection, secret=SecretStr(token), is_token=True)

    def problem(self, connection: Connection) -> str:
        """Why a connection cannot be used; empty when it can."""
        address = self._addresses.get(connection.service)
        if address is None:
            return "the operator does not allow this service any more"
        if address != connection.address:
            return "the operator has given the service another address; connect it again"
        if not connection.secret.get_secret_value():
            return (
                "it cannot be read any more, since the key of this installation was changed; connect the service again"
            )
        return ""

    def refusal(self, tenant_id: str, connection: Connection) -> str:
        """Why the login of a connection that can be used is not used now; empty where it is."""
        tokens = self._tokens.get(connection.service)
        return tokens.problem(tenant_id, connection.name) if tokens else ""


def not_connected(service: str) -> ToolUnavailable:
    """The error of a tool whose service its caller has not connected."""
    return ToolUnavailable(
        f"{SERVICES[service]} is not connected: go on without it, and tell the person to connect it on the page Connections, or "
        f"by `groundwork connections add {service}`",
        reason="NOT_CONNECTED",
    )
