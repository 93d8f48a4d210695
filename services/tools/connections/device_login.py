"""Connecting a service by a login of a device (RFC 8628): a person types a code at the service, and the server asks there until
they have. What is known in between is sealed and given to the client, so that any process goes on, and nothing has to be kept."""

import asyncio
import base64
import binascii
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Protocol

from cachetools import TTLCache
from pydantic import SecretStr

from kit.access.principal import Principal
from kit.access.sealing import CannotOpen, Sealer
from kit.errors import FailedPrecondition, InvalidArgument
from services.tools.errors import NoSealingKey
from services.tools.sources.logins import Login
from services.tools.sources.tokens import Renewer

_SLOWER_S = 5.0
"""More between two questions after each `slow_down` (RFC 8628, 3.5)."""
_EVERY_S_MAX = 60.0
_PAUSE_S = 3.0
LASTS_S_MAX = 1800.0
_HANDLE_CHARACTERS_MAX = 32_000
"""With two tokens of the longest that are taken, sealed."""
_KNOWN_MAX = 10_000


class DeviceLoginOver(FailedPrecondition):
    """The login that waits for a person is over: it took too long, or it is not this caller's."""

    reason = "CONNECTION_LOGIN_OVER"


@dataclass(frozen=True)
class OAuthServer:
    """The authorization server of one service, and this installation as its client."""

    token_url: str
    device_url: str = ""
    client_id: str = ""
    """Empty: nobody connects the service by a login of a device."""
    client_secret: SecretStr = field(default=SecretStr(""), repr=False)
    scope: str = ""
    """What a login of a device asks for."""
    account_scope: str = ""
    """What service accounts ask for."""

    @property
    def has_device_login(self) -> bool:
        return bool(self.client_id and self.device_url)


@dataclass(frozen=True)
class AskedDevice:
    """What a login is to allow."""

    scope: str


@dataclass(frozen=True)
class Begun:
    """A login that waits for a person."""

    device_code: str = field(repr=False)
    user_code: str
    url: str
    """Where the person types the code."""
    lasts_s: float
    every_s: float
    """Seconds between two questions."""


@dataclass(frozen=True)
class Polled:
    """What a question was answered with; without a login the person has not yet agreed."""

    login: Login | None = field(default=None, repr=False)
    is_too_fast: bool = False


class LoginServer(Renewer, Protocol):
    """The authorization server of a service. Each method raises LoginRefused and ServiceUnavailable."""

    async def begin(self, asked: AskedDevice) -> Begun: ...

    async def poll(self, device_code: str) -> Polled: ...


@dataclass(frozen=True)
class ServiceLogins:
    """How logins at one service are made and renewed."""

    server: OAuthServer
    client: LoginServer


@dataclass(frozen=True)
class Waiting:
    """What the client holds of a login, sealed."""

    service: str
    account: str
    shared: bool
    device_code: str = field(repr=False)
    until_s: float
    """When the code ends, since 1970."""
    every_s: float
    next_s: float
    """When the service may be asked next, since 1970."""
    login: str = field(default="", repr=False)
    """What the service has given for the code, which is good once, until the connection is stored; see encode_login."""


class DeviceLogins:
    """Logins that wait for their person."""

    def __init__(
        self,
        sealer: Sealer | None,
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sealer, self._now, self._sleep = sealer, now, sleep
        self._next_s: TTLCache[bytes, float] = TTLCache(_KNOWN_MAX, LASTS_S_MAX)
        """When this process may ask next, by the digest of a device code: a client can send an older login again, or one twice."""

    def keep(self, caller: Principal, waiting: Waiting) -> str:
        """The login as its caller's client holds it. Raises NoSealingKey."""
        if self._sealer is None:
            raise NoSealingKey("this installation keeps no secrets: an operator gives the tools service a key first")
        sealed = self._sealer.seal(json.dumps(asdict(waiting)).encode(), _place(caller))
        return base64.urlsafe_b64encode(sealed).decode()

    def waiting(self, begun: Begun, service: str, account: str, *, shared: bool) -> Waiting:
        lasts_s = min(begun.lasts_s, LASTS_S_MAX)
        every_s = min(max(begun.every_s, 1.0), _EVERY_S_MAX)
        now_s = self._now().timestamp()
        return Waiting(service, account, shared, begun.device_code, now_s + lasts_s, every_s, now_s + every_s)

    def read(self, caller: Principal, handle: str) -> Waiting:
        """Raises InvalidArgument, and DeviceLoginOver."""
        if len(handle) > _HANDLE_CHARACTERS_MAX:
            raise InvalidArgument("login is what POST /v1/connections/{service}/login has returned")
        try:
            sealed = base64.urlsafe_b64decode(handle.encode("ascii"))
            opened = self._sealer.open(sealed, _place(caller)) if self._sealer else b"{}"
            known: Mapping[str, object] = json.loads(opened)
            waiting = Waiting(**known)  # type: ignore[arg-type] # sealed by `keep`
        except (binascii.Error, ValueError, TypeError, CannotOpen) as error:
            raise DeviceLoginOver("there is no such login, or it is another user's; begin again") from error
        if self._now().timestamp() > waiting.until_s:
            raise DeviceLoginOver("the code was not typed in time; begin again")
        return waiting

    async def wait(self, client: LoginServer, waiting: Waiting, within_s: float) -> tuple[Login | None, Waiting]:
        """Asks until the person has agreed, at most for so long. Raises as the client."""
        ends_s = self._now().timestamp() + within_s
        code = hashlib.sha256(waiting.device_code.encode()).digest()
        while (next_s := max(waiting.next_s, self._next_s.get(code, 0.0))) <= ends_s:
            await self._sleep_until(next_s)
            if self._next_s.get(code, 0.0) > self._now().timestamp():
                continue  # another request has asked meanwhile
            self._next_s[code] = self._now().timestamp() + waiting.every_s
            polled = await client.poll(waiting.device_code)
            every_s = min(waiting.every_s + (_SLOWER_S if polled.is_too_fast else 0.0), _EVERY_S_MAX)
            waiting = replace(waiting, every_s=every_s, next_s=self._now().timestamp() + every_s)
            self._next_s[code] = waiting.next_s
            if polled.login is not None:
                return polled.login, waiting
        await self._sleep_until(ends_s)
        return None, waiting

    async def pause(self) -> None:
        """Waits until a client may come again with a login that could not be stored."""
        await self._sleep(_PAUSE_S)

    async def _sleep_until(self, at_s: float) -> None:
        await self._sleep(max(at_s - self._now().timestamp(), 0.0))


def _place(caller: Principal) -> str:
    return f"connection-login/{caller.tenant_id}/{caller.subject}"
