"""What people do about connections: list them, connect a service, and forget a connection."""

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

import structlog
from pydantic import SecretStr

from kit.access.principal import ADMIN, Principal
from kit.errors import FailedPrecondition, InvalidArgument, ResourceExhausted, Unavailable
from services.tools.connections.device_login import AskedDevice, Begun, DeviceLogins, ServiceLogins
from services.tools.connections.logins import decode_login, encode_login, read_credential
from services.tools.connections.records import MAIL, SERVICES, Connection, ConnectionRecords, Connections
from services.tools.errors import ServiceUnavailable, ToolError
from services.tools.sources.logins import Login, LoginRefused
from services.tools.sources.tokens import Tokens
from services.tools.web.windows import Windows

_log = structlog.get_logger()
_ACCOUNT = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_AGAIN = "connect {} again, on the page Connections or by `groundwork connections`"
_WAITS_S = 15.0
"""For a person, in one request."""
_TRIES_PER_MINUTE = 10
"""Of one caller, in this process: a service must not be asked by us whether guessed passwords are right."""


class ConnectionRefused(FailedPrecondition):
    """The service does not take the credential, or cannot be reached from here."""

    reason = "CONNECTION_REFUSED"


class ConnectionTriedTooOften(ResourceExhausted):
    """The caller has tried to connect services as often as one may in a minute."""

    reason = "CONNECTION_TRIED_TOO_OFTEN"


class Account(Protocol):
    """Tries a credential, and returns as whom the service knows its holder. Raises ToolError."""

    async def __call__(self, secret: SecretStr, user: str, *, is_token: bool) -> str: ...


@dataclass(frozen=True)
class Door:
    """How one service is connected."""

    address: str
    account: Account
    oauth: ServiceLogins | None = None
    """How its logins by OAuth are made and renewed; None of a service that knows none."""
    takes_files: bool = False
    """Whether a credential may be a file of a service account or a person, in JSON."""
    needs_login: bool = False
    """Whether every credential is a login by OAuth."""
    needs_user: bool = False
    """Whether the caller says as whom the service knows them, and the credential may be a password."""

    @property
    def has_device_login(self) -> bool:
        return self.oauth is not None and self.oauth.server.has_device_login


class ConnectionDesk:
    """The decisions of people about their connections, and of administrators about the tenant's."""

    def __init__(
        self, records: ConnectionRecords, doors: Mapping[str, Door], devices: DeviceLogins, now: Callable[[], datetime]
    ) -> None:
        """`doors`: the services that can be connected here, by name; `devices` keep logins that wait for a person."""
        self._records = records
        self._doors = doors
        self._devices = devices
        self._now = now
        self._tries = Windows(_TRIES_PER_MINUTE, sys.maxsize)
        tokens = {
            service: Tokens(records, door.oauth.client, now, log_in=_AGAIN.format(SERVICES[service]))
            for service, door in doors.items()
            if door.oauth
        }
        self.connections = Connections(records, {service: door.address for service, door in doors.items()}, tokens)

    @property
    def services(self) -> Sequence[str]:
        """The services that can be connected here."""
        return sorted(self._doors)

    @property
    def logins(self) -> Sequence[str]:
        """The services that a person can connect by typing a code there."""
        return sorted(service for service, door in self._doors.items() if door.has_device_login)

    async def connect(
        self, caller: Principal, service: str, secret: str, *, shared: bool, account: str = ""
    ) -> Connection:
        """Connects a service once it has taken the credential. Raises InvalidArgument, ConnectionRefused, PermissionDenied,
        ConnectionTriedTooOften, NoSealingKey and Unavailable."""
        door = self._door(caller, service, account, shared=shared)
        login = read_credential(secret, is_password=door.needs_user, takes_files=door.takes_files)
        if door.needs_login and login is None:
            raise InvalidArgument(
                f"{SERVICES[service]} is connected by a file of a service account or of a person, in JSON, or by a login"
            )
        self._count_try(caller)
        if login is None:
            return await self._connect(caller, service, SecretStr(secret), "", account, shared=shared)
        assert door.oauth is not None
        with _refusals(SERVICES[service]):
            login = await door.oauth.client.refresh(door.oauth.server.token_url, login)
        return await self._connect_by_login(caller, service, login, account, shared=shared)

    async def begin_login(self, caller: Principal, service: str, account: str, *, shared: bool) -> tuple[Begun, str]:
        """The code that the person types at the service, and the login as `finish_login` takes it. Raises as `connect`."""
        door = self._door(caller, service, account, shared=shared)
        if door.oauth is None or not door.has_device_login:
            raise InvalidArgument(
                f"{SERVICES[service]} is not connected by a login here; an operator can name its client in "
                "GROUNDWORK_TOOLS_OAUTH"
            )
        self._count_try(caller)
        with _refusals(SERVICES[service]):
            begun = await door.oauth.client.begin(AskedDevice(door.oauth.server.scope))
        return begun, self._devices.keep(caller, self._devices.waiting(begun, service, account, shared=shared))

    def ends_at(self, begun: Begun) -> datetime:
        """When the code of a login ends."""
        return self._now() + timedelta(seconds=begun.lasts_s)

    async def finish_login(self, caller: Principal, service: str, handle: str) -> tuple[Connection | None, str, str]:
        """The connection once the person has agreed; else None, the login to go on with, and what keeps it from being stored though
        the person has agreed. Raises as `connect`, and DeviceLoginOver."""
        waiting = self._devices.read(caller, handle)
        if waiting.service != service:
            raise InvalidArgument("the login was begun at another service")
        door = self._door(caller, service, waiting.account, shared=waiting.shared)
        if door.oauth is None:
            raise InvalidArgument(f"{SERVICES[service]} is not connected by a login here")
        login = decode_login(SecretStr(waiting.login))
        if login is None:
            with _refusals(SERVICES[service]):
                login, waiting = await self._devices.wait(door.oauth.client, waiting, _WAITS_S)
        if login is None:
            return None, self._devices.keep(caller, waiting), ""
        try:
            made = await self._connect_by_login(caller, service, login, waiting.account, shared=waiting.shared)
        except Unavailable as error:
            # The code is good once, and spent: the client comes again with what it has brought.
            _log.warning("connection_not_stored", service=service, error=error.message)
            await self._devices.pause()
            given = encode_login(login).get_secret_value()
            trouble = f"you have agreed, and the connection cannot be stored now ({error.message}); try again with the same login"
            return None, self._devices.keep(caller, replace(waiting, login=given)), trouble
        return made, "", ""

    async def _connect_by_login(
        self, caller: Principal, service: str, login: Login, account: str, *, shared: bool
    ) -> Connection:
        token = SecretStr(str(login.tokens["access_token"]))
        is_plain = not login.expires_at_s and "refresh_token" not in login.tokens and not login.client
        kept = token if is_plain and service != MAIL else encode_login(login)  # mail would take it for a password
        return await self._connect(caller, service, kept, token.get_secret_value(), account, shared=shared)

    async def _connect(
        self, caller: Principal, service: str, kept: SecretStr, token: str, account: str, *, shared: bool
    ) -> Connection:
        door = self._doors[service]
        with _refusals(SERVICES[service]):
            known = await door.account(SecretStr(token) if token else kept, account, is_token=bool(token))
        owner = "" if shared else caller.subject
        connection = Connection(service, door.address, known, self._now(), owner, kept)
        await self._records.put(caller.tenant_id, connection)
        return connection

    def _door(self, caller: Principal, service: str, account: str, *, shared: bool) -> Door:
        if shared:
            caller.require(ADMIN)
        door = self._doors.get(service)
        if door is None:
            raise InvalidArgument(f"{service!r:.80} cannot be connected here; {self._possible()}")
        if door.needs_user and not _ACCOUNT.fullmatch(account):
            raise InvalidArgument(
                "account is the user that opens the mailbox, mostly its address, of 1 to 200 printable characters"
            )
        return door

    def _count_try(self, caller: Principal) -> None:
        """Raises ConnectionTriedTooOften."""
        who = f"{caller.tenant_id}/{caller.subject}"
        if (wait_s := self._tries.wait_s(who)) > 0.0:
            raise ConnectionTriedTooOften(
                f"you have tried to connect services as often as one may in a minute; try again in {math.ceil(wait_s)} s",
                retry_after_s=wait_s,
            )
        self._tries.take(who, who)

    async def forget(self, caller: Principal, service: str, *, shared: bool) -> None:
        """Forgets a connection. Harmless when repeated. Raises PermissionDenied and Unavailable."""
        if shared:
            caller.require(ADMIN)
        await self._records.remove(caller.tenant_id, "" if shared else caller.subject, service)

    def _possible(self) -> str:
        return f"these can: {', '.join(self.services)}" if self._doors else "the operator allows no service"


@contextmanager
def _refusals(service: str) -> Iterator[None]:
    """Translates what goes wrong at the service for the caller."""
    try:
        yield
    except (ServiceUnavailable, TimeoutError) as error:
        said = str(error) or "it does not answer in time"
        raise Unavailable(f"{service} could not be asked: {said}", reason="CONNECTION_NOT_TRIED") from error
    except LoginRefused as error:
        raise ConnectionRefused(f"{service} was not connected: {error.message}") from error
    except ToolError as error:
        raise ConnectionRefused(f"{service} was not connected: {error}") from error
