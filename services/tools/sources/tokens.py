"""Access tokens of logins at MCP servers and of connections, renewed by one process for all: the token that renews is good once."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeAlias

import structlog

from kit.access.sealing import CannotOpen
from kit.errors import Unavailable
from services.tools.errors import ServiceUnavailable
from services.tools.sources.logins import Login, LoginRefused

_log = structlog.get_logger()
_MARGIN_S = 30.0
"""A token is renewed this long before it ends: a call takes some seconds."""
_STORE_AGAIN_S = 0.5
_RENEWAL_TAKES_S = 25.0
"""After it another process renews: the one that began has died."""
OVER_S = 300.0
"""A login that was refused is left alone for so long, in all processes; a person who logs in again ends the pause."""
Key: TypeAlias = tuple[str, str]
"""Tenant, and server or connection."""
_LOG_IN = "log in again: `groundwork tool-servers login {}`"


@dataclass(frozen=True)
class Access:
    """What a connection to one server needs of the login there."""

    token: Callable[[], Coroutine[Any, Any, str]]
    """The access token; empty where nobody has logged in. Raises ServiceUnavailable."""
    refused: Callable[[str], None]
    """Tells that the server did not take an access token."""
    leave_alone: Callable[[str, str], Coroutine[Any, Any, None]]
    """Tells which renewed access token the server refuses too, and why; the login with it is not used for a while."""


class LoginRecords(Protocol):
    """Where logins are kept; see ServerRecords."""

    def login(self, tenant_id: str, name: str, /) -> Login | None: ...

    async def replace_login(self, tenant_id: str, name: str, known: Login, login: Login, /) -> bool: ...

    async def changed_login(self, tenant_id: str, name: str, known: Login, /, *, timeout_s: float) -> Login | None: ...


class Renewer(Protocol):
    """What renews logins; see LoginClient."""

    async def refresh(self, url: str, login: Login) -> Login: ...

    async def revoke(self, url: str, login: Login) -> None: ...


class Tokens:
    """The access tokens of all tenants."""

    def __init__(
        self, records: LoginRecords, client: Renewer, now: Callable[[], datetime], log_in: str = _LOG_IN
    ) -> None:
        """`log_in` says what a person does about a login that is over; `{}` in it stands for its name."""
        self._records = records
        self._log_in = log_in
        self._client = client
        self._now = now
        self._renewing: dict[Key, asyncio.Task[Login | None]] = {}
        self._refused: dict[Key, str] = {}

    def of(self, tenant_id: str, server: str, url: str) -> Access:
        """Those of one server, at an address."""
        key = (tenant_id, server)
        return Access(
            partial(self._token, key, url),
            partial(self._refused.__setitem__, key),
            partial(self._leave_alone, key),
        )

    def problem(self, tenant_id: str, server: str) -> str:
        """What a person has to do about a login that was refused; empty of others."""
        login = self._records.login(tenant_id, server)
        return self._over(server, login) if login is not None and self._is_left_alone(login) else ""

    async def _token(self, key: Key, url: str) -> str:
        try:
            login = self._records.login(*key)
            if login is not None:
                self._require_in_use(key, login)
            if login is not None and self._is_over(key, login):
                login = await self._renewed(key, url)
        except CannotOpen as error:
            raise ServiceUnavailable(
                "the login there cannot be read any more, since the key of this installation was changed; "
                f"{self._log_in.format(key[1])}"
            ) from error
        return str(login.tokens["access_token"]) if login else ""

    async def _renewed(self, key: Key, url: str) -> Login | None:
        """The login with tokens that are good; None where it was ended meanwhile. A renewal goes on when the call that wanted it is
        cut off: the token that renews is good once."""
        if key not in self._renewing:
            task = self._renewing[key] = asyncio.create_task(self._renew(key, url))
            task.add_done_callback(partial(self._end_renewal, key))
        return await asyncio.shield(self._renewing[key])

    def _end_renewal(self, key: Key, task: asyncio.Task[Login | None]) -> None:
        self._renewing.pop(key)
        if not task.cancelled():
            task.exception()  # raised in the calls that wait, if any still do

    async def _renew(self, key: Key, url: str) -> Login | None:
        """Renews the tokens, or waits for the process that has begun to."""
        while (login := self._records.login(*key)) is not None and self._is_over(key, login):
            self._require_in_use(key, login)  # another process may have been refused meanwhile
            now_s = self._now().timestamp()
            if login.renewing_until_s > now_s:
                await self._records.changed_login(*key, login, timeout_s=login.renewing_until_s - now_s)
                if self._records.login(*key) != login:
                    continue
            claimed = replace(login, renewing_until_s=self._now().timestamp() + _RENEWAL_TAKES_S)
            try:
                if await self._records.replace_login(*key, login, claimed):
                    return await self._fetch(key, url, claimed)
            except Unavailable as error:
                raise ServiceUnavailable("the login there cannot be renewed now; try again in a minute") from error
        return login

    async def _fetch(self, key: Key, url: str, claimed: Login) -> Login | None:
        try:
            fresh = replace(
                await self._client.refresh(url, claimed), renewing_until_s=0.0, over_until_s=0.0, over_because=""
            )
        except LoginRefused as error:
            if (other := self._records.login(*key)) != claimed:  # somebody has logged out, or logged in again
                return other
            left = self._left_alone(claimed, error.message)
            await self._let_others(key, claimed, left)
            raise ServiceUnavailable(self._over(key[1], left)) from error
        except ServiceUnavailable:
            await self._let_others(key, claimed)
            raise
        try:
            is_kept = await self._keep(key, claimed, fresh)
        except Unavailable as error:
            _log.error("mcp_login_not_kept", server=key[1], error=error.message)
            return fresh
        if is_kept:
            return fresh
        await self._client.revoke(url, fresh)
        return self._records.login(*key)

    async def _keep(self, key: Key, claimed: Login, fresh: Login) -> bool:
        """Stores the renewed login, and tries until others may renew: the stored renewing token is spent. False where the login is
        another by now. Raises Unavailable."""
        while True:
            try:
                # A write that was not answered may have been done.
                return await self._records.replace_login(*key, claimed, fresh) or self._records.login(*key) == fresh
            except Unavailable:
                if self._now().timestamp() >= claimed.renewing_until_s:
                    raise
                await asyncio.sleep(_STORE_AGAIN_S)

    async def _let_others(self, key: Key, claimed: Login, left: Login | None = None) -> None:
        """Ends a renewal that has failed: nobody needs to wait for it."""
        with suppress(Unavailable):
            await self._records.replace_login(*key, claimed, replace(left or claimed, renewing_until_s=0.0))

    async def _leave_alone(self, key: Key, access: str, why: str) -> None:
        """Nothing is done where a person has logged in again, or a process renews: its renewing token is good once."""
        login = self._records.login(*key)
        if login is None or login.tokens["access_token"] != access or self._now().timestamp() < login.renewing_until_s:
            return
        with suppress(Unavailable):
            await self._records.replace_login(*key, login, self._left_alone(login, why))

    def _require_in_use(self, key: Key, login: Login) -> None:
        """Raises ServiceUnavailable for a login that is left alone."""
        if self._is_left_alone(login):
            raise ServiceUnavailable(self._over(key[1], login)) from LoginRefused(login.over_because)

    def _left_alone(self, login: Login, why: str) -> Login:
        return replace(login, over_until_s=self._now().timestamp() + OVER_S, over_because=why)

    def _is_left_alone(self, login: Login) -> bool:
        return self._now().timestamp() < login.over_until_s

    def _over(self, name: str, login: Login) -> str:
        return (
            f"the login there is over ({login.over_because}); {self._log_in.format(name)}. It is tried again in "
            f"{OVER_S / 60:.0f} minutes at the latest"
        )

    def _is_over(self, key: Key, login: Login) -> bool:
        access = login.tokens["access_token"]
        if not access or self._refused.get(key) == access:
            return True
        return bool(login.expires_at_s) and self._now().timestamp() > login.expires_at_s - _MARGIN_S
