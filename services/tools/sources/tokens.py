"""Access tokens of logins at MCP servers, renewed once for all calls of this process."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from kit.access.sealing import CannotOpen
from kit.errors import Unavailable
from services.tools.errors import ServiceUnavailable
from services.tools.sources.logins import Login, LoginClient, LoginRefused
from services.tools.sources.remote_records import ServerRecords

_log = structlog.get_logger()
_MARGIN_S = 30.0
"""A token is renewed this long before it ends: a call takes some seconds."""
_OTHERS_TAKE_S = 2.0


@dataclass(frozen=True)
class Access:
    """What a connection to one server needs of the login there."""

    token: Callable[[], Coroutine[Any, Any, str]]
    """The access token; empty where nobody has logged in. Raises ServiceUnavailable."""
    refused: Callable[[str], None]
    """Tells that the server did not take an access token."""


class Tokens:
    """The access tokens of all tenants."""

    def __init__(self, records: ServerRecords, client: LoginClient, now: Callable[[], datetime]) -> None:
        self._records = records
        self._client = client
        self._now = now
        self._turns: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._refused: dict[tuple[str, str], str] = {}

    def of(self, tenant_id: str, server: str, url: str) -> Access:
        """Those of one server, at an address."""
        key = (tenant_id, server)
        return Access(partial(self._token, key, url), partial(self._refused.__setitem__, key))

    async def _token(self, key: tuple[str, str], url: str) -> str:
        async with self._turns[key]:
            try:
                login = self._records.login(*key)
                if login is None:
                    return ""
                return str((await self._fresh(key, url, login)).tokens["access_token"])
            except CannotOpen as error:
                raise ServiceUnavailable(
                    "the login there cannot be read any more, since the key of this installation was changed; "
                    f"log in again: `groundwork tool-servers login {key[1]}`"
                ) from error

    async def _fresh(self, key: tuple[str, str], url: str, login: Login) -> Login:
        if not self._is_over(key, login):
            return login
        try:
            fresh = await self._client.refresh(url, login)
        except LoginRefused as error:
            # Another process may have renewed it with the same refresh token, which is good once.
            other = await self._records.changed_login(*key, login, timeout_s=_OTHERS_TAKE_S)
            if other is not None:
                return other
            raise ServiceUnavailable(
                f"the login there is over ({error.message}); log in again: `groundwork tool-servers login {key[1]}`"
            ) from error
        try:
            await self._records.put_login(*key, fresh)
        except Unavailable as error:
            _log.error("mcp_login_not_kept", server=key[1], error=error.message)
        return fresh

    def _is_over(self, key: tuple[str, str], login: Login) -> bool:
        if self._refused.get(key) == login.tokens["access_token"]:
            return True
        return bool(login.expires_at_s) and self._now().timestamp() > login.expires_at_s - _MARGIN_S
