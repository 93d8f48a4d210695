"""What administrators of a tenant do about MCP servers: add one, remove it, and approve its tools."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import SecretStr

from kit.access.principal import Principal
from kit.access.sealing import CannotOpen
from kit.errors import FailedPrecondition, InvalidArgument, NotFound
from kit.network.egress import EgressGuard
from kit.network.hosts import is_loopback_name
from services.tools.sources.logins import LoginClient
from services.tools.sources.remote import ListedServer, RemoteTools
from services.tools.sources.remote_records import Approval, ServerRecord, ServerRecords

_NAME = re.compile(r"[a-z][a-z0-9-]{0,23}")
_SERVERS_MAX = 20
_URL_CHARACTERS_MAX = 2000
_HEADERS_MAX = 10
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"(?=.{1,4000}\Z)[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
"""Both as in RFC 9110, 5.1 and 5.5, in ASCII."""
_OURS = re.compile(
    r"accept|accept-.*|connection|content-.*|expect|host|keep-alive|last-event-id|mcp-.*|proxy-.*|te|trailer|transfer-encoding|"
    r"upgrade",
    re.IGNORECASE,
)
"""Headers that the transport writes."""


class ServerNotFound(NotFound):
    """The tenant has no MCP server, or the server no tool, of that name."""

    reason = "TOOL_SERVER_NOT_FOUND"


class ServerNotYours(FailedPrecondition):
    """The MCP server is the operator's: its tools are approved here, and it is changed in the settings."""

    reason = "TOOL_SERVER_NOT_YOURS"


class ToolChanged(FailedPrecondition):
    """The tool says something else of itself than what was to be approved."""

    reason = "TOOL_CHANGED"


class ServerAdmin:
    """The decisions of a tenant's administrators."""

    def __init__(
        self,
        remote: RemoteTools,
        records: ServerRecords,
        guard: EgressGuard,
        login_client: LoginClient,
        now: Callable[[], datetime],
    ) -> None:
        self._login_client = login_client
        self._remote = remote
        self._records = records
        self._guard = guard
        self._now = now

    async def servers(self, caller: Principal) -> Sequence[ListedServer]:
        """All servers whose tools the tenant may approve."""
        return await self._remote.servers(caller.tenant_id)

    async def put(
        self, caller: Principal, name: str, url: str, headers: Mapping[str, str] | None = None
    ) -> ListedServer:
        """Adds a server, or changes it. Another address ends its approvals, and what was sent to the old one is not sent there.
        Without `headers` those of the address stay. Raises InvalidArgument.
        """
        self._require_own(name)
        if not _NAME.fullmatch(name) or len(url) > _URL_CHARACTERS_MAX:
            raise InvalidArgument(
                "a server's name has 1 to 24 of a-z, 0-9 and '-' and begins with a letter; its address at most 2000 characters"
            )
        place = await self._guard.check(url)
        secrets = None if headers is None else _checked(headers)
        if secrets and place.scheme != "https" and not is_loopback_name(place.host):
            raise InvalidArgument("headers are secrets, and go to an https:// address only")
        records = self._records.of(caller.tenant_id)
        if name not in records and len(records) >= _SERVERS_MAX:
            raise FailedPrecondition(
                f"a tenant has at most {_SERVERS_MAX} servers; remove one", reason="TOO_MANY_SERVERS"
            )
        there = records.get(name, ServerRecord())
        record = there if there.url == url else ServerRecord(url)
        if secrets is not None:
            record = replace(record, headers=secrets, sealed="")
        if record.url != there.url:
            await self.forget_login(caller, name)
        if record != there:
            await self._records.put(caller.tenant_id, name, record)
        return await self._listed(caller, name)

    async def delete(self, caller: Principal, name: str) -> None:
        """Removes a server with its approvals. Harmless when repeated."""
        self._require_own(name)
        await self.forget_login(caller, name)
        if name in self._records.of(caller.tenant_id):
            await self._records.put(caller.tenant_id, name, None)

    async def approve(self, caller: Principal, name: str, tool: str, digest: str, *, reads_only: bool) -> ListedServer:
        """Lets a tool be used as it describes itself now, or with an empty digest no more. Raises NotFound, ToolChanged."""
        server = await self._listed(caller, name)
        listed = next((each for each in server.tools if each.remote.name == tool), None)
        if listed is None:
            raise ServerNotFound(f"the server {name} has no tool {tool!r:.80}; look at its tools again")
        if digest and listed.remote.digest != digest:
            raise ToolChanged(f"{tool} says something else of itself by now; read it again, and approve what it says")
        record = self._records.of(caller.tenant_id).get(name, ServerRecord())
        others = {each: approval for each, approval in record.approved.items() if each != tool}
        added = {tool: Approval(digest, reads_only, caller.subject, self._now())} if digest else {}
        await self._records.put(caller.tenant_id, name, replace(record, approved={**others, **added}))
        return await self._listed(caller, name, again=False)

    def own_url(self, caller: Principal, name: str) -> str:
        """The address of a server that the tenant has added. Raises NotFound, ServerNotYours."""
        self._require_own(name)
        url = self._records.of(caller.tenant_id).get(name, ServerRecord()).url
        if not url:
            raise ServerNotFound(f"there is no server {name!r:.80}; add it first")
        return url

    async def listed(self, caller: Principal, name: str) -> ListedServer:
        """A server as it is now. Raises NotFound."""
        return await self._listed(caller, name)

    async def forget_login(self, caller: Principal, name: str) -> None:
        """Forgets the login at a server, and one that waits; the authorization server is informed where that is possible.
        Harmless when repeated."""
        url = self._records.of(caller.tenant_id).get(name, ServerRecord()).url
        try:
            login = self._records.login(caller.tenant_id, name)
        except CannotOpen:
            login = None
        for is_waiting in (True, False):
            await self._records.put_login(caller.tenant_id, name, None, is_waiting=is_waiting)
        if login is not None:
            await self._login_client.revoke(url, login)

    async def _listed(self, caller: Principal, name: str, *, again: bool = True) -> ListedServer:
        found = await self._remote.servers(caller.tenant_id, again=name if again else "")
        server = next((each for each in found if each.name == name), None)
        if server is None:
            raise ServerNotFound(f"there is no server {name!r:.80}; add it first")
        return server

    def _require_own(self, name: str) -> None:
        if name in self._remote.operators_servers:
            raise ServerNotYours(f"the server {name} is the operator's; it is changed in GROUNDWORK_TOOLS_MCP_SERVERS")


def _checked(headers: Mapping[str, str]) -> dict[str, SecretStr]:
    """The headers as secrets. Raises InvalidArgument, which names no value."""
    if len(headers) > _HEADERS_MAX:
        raise InvalidArgument(f"a server is sent at most {_HEADERS_MAX} headers")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidArgument(f"the header {name!r:.80} has characters that a header cannot have, or is too long")
        if _OURS.fullmatch(name):
            raise InvalidArgument(f"the header {name!r:.80} cannot be set; the protocol needs it")
    return {name: SecretStr(value) for name, value in headers.items()}
