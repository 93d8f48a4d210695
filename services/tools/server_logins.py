"""Logging in at a tenant's MCP server: an administrator begins it, opens an address, and brings back what the browser was given."""

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NoReturn

from kit.access.principal import Principal
from kit.access.sealing import CannotOpen
from kit.errors import InvalidArgument
from services.tools.server_admin import ServerAdmin
from services.tools.sources.logins import AskedLogin, LoginClient, LoginRefused
from services.tools.sources.remote import ListedServer
from services.tools.sources.remote_records import ServerRecords

_PERSON_TAKES = timedelta(minutes=10)
_LONGEST = 2000


class ServerLogins:
    """What administrators do about logins."""

    def __init__(
        self, admin: ServerAdmin, records: ServerRecords, client: LoginClient, now: Callable[[], datetime]
    ) -> None:
        self._admin = admin
        self._records = records
        self._client = client
        self._now = now

    async def begin(self, caller: Principal, name: str, asked: AskedLogin) -> tuple[str, datetime]:
        """The address to open in a browser, and until when. A login that is there stays until this one is done. Raises
        LoginRefused, NotFound, InvalidArgument."""
        secret = asked.client_secret.get_secret_value() if asked.client_secret else ""
        given = (asked.redirect_uri, asked.client_id, secret, asked.scope)
        if any(len(each) > _LONGEST or not each.isprintable() for each in given):
            raise InvalidArgument(f"what is said of a login has at most {_LONGEST} characters, all of them printable")
        url, until = self._admin.own_url(caller, name), self._now() + _PERSON_TAKES
        state = f"{name}.{secrets.token_urlsafe(32)}"  # the page that the browser comes back to reads the name
        address, login = await self._client.begin(url, asked, state, caller.subject, until)
        await self._records.put_login(caller.tenant_id, name, login, is_waiting=True)
        return address, until

    async def finish(self, caller: Principal, name: str, state: str, code: str, issuer: str) -> ListedServer:
        """Trades the code for tokens, and has the server listed with them. Only for who has begun the login, and once. Raises
        LoginRefused, NotFound."""
        url = self._admin.own_url(caller, name)
        try:
            login = self._records.login(caller.tenant_id, name, is_waiting=True)
        except CannotOpen:
            login = None
        waiting = login.waiting if login else None
        if login is None or waiting is None or waiting.until < self._now():
            _refuse(name, "no login at the server waits any more")
        if waiting.subject != caller.subject or not secrets.compare_digest(waiting.state.encode(), state.encode()):
            _refuse(name, "this is not the answer to the login that was begun last, or somebody else began it")
        await self._records.put_login(caller.tenant_id, name, None, is_waiting=True)
        if not code:
            _refuse(name, "the authorization server gave no code: the login was refused there")
        done = await self._client.finish(url, login, code, issuer)
        await self._records.put_login(caller.tenant_id, name, done)
        return await self._admin.listed(caller, name)

    async def end(self, caller: Principal, name: str) -> None:
        """Forgets the login, and has its tokens revoked. Harmless when repeated. Raises NotFound."""
        self._admin.own_url(caller, name)
        await self._admin.forget_login(caller, name)


def _refuse(name: str, why: str) -> NoReturn:
    raise LoginRefused(f"{why}; begin again: `groundwork tool-servers login {name}`")
