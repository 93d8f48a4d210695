"""MCP servers as a source of tools. Lists are read in the background and kept, so that a server that does not answer holds up no
run; a tool is offered while what its server says of it has the digest that was approved."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog
from pydantic import SecretStr

from kit.access.sealing import CannotOpen
from services.tools.calling.progress import Tell
from services.tools.errors import ServiceUnavailable, ToolError, UnknownTool
from services.tools.models import Call, Caller, Effect, Tool, ToolOutput
from services.tools.sources.remote_records import ServerRecord, ServerRecords
from services.tools.sources.remote_tools import SEPARATOR, RemotePolicy, RemoteServer, RemoteTool, tool_of

_log = structlog.get_logger()
_LIST_TIMEOUT_S = 20.0
_TOOLS_MAX = 200
"""Of one server: more would push all others out of a model's sight."""


@dataclass
class _Known:
    """A server, and what it was heard to have."""

    name: str
    server: RemoteServer
    policy: RemotePolicy
    url: str = ""
    headers: Mapping[str, SecretStr] = field(default_factory=dict)
    is_locked: bool = False
    """Whether its headers cannot be read."""
    tools: list[RemoteTool] = field(default_factory=list)
    error: str = ""
    is_heard: bool = False
    made: dict[tuple[str, bool], Tool | str] = field(default_factory=dict)
    """Tools by digest and by whether they only read; of one that cannot be used, why."""
    reported: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class ListedTool:
    """A tool of a server as an administrator sees it."""

    remote: RemoteTool
    state: str
    """`approved`, `new`, `changed` or `unusable`."""
    why: str = ""
    reads_only: bool = False


@dataclass(frozen=True)
class ListedServer:
    """A server as an administrator sees it."""

    name: str
    url: str
    """Empty of an operator's."""
    error: str
    tools: Sequence[ListedTool]
    headers: Sequence[str] = ()
    """Names of the headers that are sent to it. Their values are shown to nobody."""
    is_logged_in: bool = False
    """Whether somebody has logged in there for the tenant."""


class RemoteTools:
    """The tools of all servers, as `server__tool`: an operator's for everybody, a tenant's for itself."""

    def __init__(
        self,
        servers: Mapping[str, tuple[RemoteServer, RemotePolicy]],
        records: ServerRecords,
        connect: Callable[[str, str, ServerRecord], RemoteServer],
        *,
        every_s: float = 300.0,
    ) -> None:
        """`servers` are the operator's; `connect` reaches a tenant's, by tenant, name and record. `every_s`: how often a
        server is asked which tools it has."""
        self._operators = {name: _Known(name, server, policy) for name, (server, policy) in servers.items()}
        self._tenants: dict[tuple[str, str], _Known] = {}
        self._records = records
        self._connect = connect
        self._every_s = every_s
        self._hearing: set[asyncio.Task[None]] = set()

    @property
    def operators_servers(self) -> frozenset[str]:
        """Names that a tenant's server cannot have."""
        return frozenset(self._operators)

    async def run(self) -> None:
        """Keeps the lists fresh until cancelled."""
        while True:
            await self.refresh([*self._operators.values(), *self._tenants.values()])
            await asyncio.sleep(self._every_s)

    async def refresh(self, servers: Sequence[_Known]) -> None:
        """Asks servers at once, each within its time. One that fails keeps the tools that it had."""
        async with asyncio.TaskGroup() as group:
            for known in servers:
                group.create_task(_hear(known))

    async def list(self, caller: Caller) -> Sequence[Tool]:
        return [tool for known, record in self._servers_of(caller.tenant_id) for tool in _offered(known, record)]

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        name, _, remote_name = tool.name.partition(SEPARATOR)
        judged = (
            (known, each)
            for known, record in self._servers_of(call.tenant_id)
            if known.name == name
            for each in _judged(known, record)
        )
        for known, (listed, offered) in judged:
            if listed.remote.name == remote_name and offered is not None:
                # A call that is made again repeats what it did until it asked: only where that is nothing.
                reads = tool.policy.effect is Effect.NONE
                try:
                    return await known.server.call(listed.remote, call, tell, reads=reads)
                except UnknownTool:
                    self._hear_soon(known)
                    raise
        raise UnknownTool(f"there is no tool {tool.name!r:.80} any more")

    def _hear_soon(self, known: _Known) -> None:
        """Asks a server that has changed its tools which it has now: until then they are offered as they were."""
        if known.name not in {each.get_name() for each in self._hearing}:
            task = asyncio.create_task(_hear(known), name=known.name)
            self._hearing.add(task)
            task.add_done_callback(self._hearing.discard)

    async def servers(self, tenant_id: str, *, again: str = "") -> Sequence[ListedServer]:
        """All servers of a tenant, as heard last; that of the name `again`, and those never heard, are asked now."""
        found = [*self._servers_of(tenant_id)]
        await self.refresh([known for known, _ in found if not known.is_heard or known.name == again])
        return [
            ListedServer(
                known.name,
                known.url,
                known.error,
                [each for each, _ in _judged(known, record)],
                sorted(known.headers),
                self._is_logged_in(tenant_id, known),
            )
            for known, record in found
        ]

    def _is_logged_in(self, tenant_id: str, known: _Known) -> bool:
        try:
            return bool(known.url) and self._records.login(tenant_id, known.name) is not None
        except CannotOpen:
            return False

    def _servers_of(self, tenant_id: str) -> Iterator[tuple[_Known, ServerRecord]]:
        records = self._records.of(tenant_id)
        for gone in [key for key in self._tenants if key[0] == tenant_id and key[1] not in records]:
            self._tenants.pop(gone).server.close()
        for name, known in self._operators.items():
            yield known, records.get(name, ServerRecord())
        for name, record in records.items():
            if not record.url or name in self._operators:
                continue
            there = self._tenants.get((tenant_id, name))
            how = (record.url, record.headers, bool(record.sealed))
            if there is None or (there.url, there.headers, there.is_locked) != how:
                if there is not None:
                    there.server.close()
                server = Locked() if record.sealed else self._connect(tenant_id, name, record)
                there = _Known(name, server, RemotePolicy(), *how)
                self._tenants[tenant_id, name] = there
            yield there, record


class Locked:
    """A server whose headers cannot be read: it is not asked without them."""

    _WHY = (
        "the headers of the server cannot be read any more, since the key of this installation was changed; set them again, "
        "with its address"
    )

    async def tools(self) -> list[RemoteTool]:
        raise ServiceUnavailable(self._WHY)

    async def call(self, tool: RemoteTool, call: Call, tell: Tell, *, reads: bool) -> ToolOutput:  # noqa: ARG002
        raise ServiceUnavailable(self._WHY)

    def close(self) -> None:
        pass


async def _hear(known: _Known) -> None:
    known.is_heard = True
    try:
        async with asyncio.timeout(_LIST_TIMEOUT_S):
            found = await known.server.tools()
    except (ToolError, TimeoutError) as error:
        known.error = str(error)[:300] or "no answer in time"
        _log.warning("mcp_server_unlisted", server=known.name, error=known.error)
        return
    known.error, known.tools = "", found[:_TOOLS_MAX]
    digests = {each.digest for each in known.tools}
    known.made = {key: made for key, made in known.made.items() if key[0] in digests}


def _offered(known: _Known, record: ServerRecord) -> list[Tool]:
    offered = []
    for listed, tool in _judged(known, record):
        if tool is not None:
            offered.append(tool)
        elif listed.why not in known.reported:
            known.reported.add(listed.why)
            _log.warning("mcp_tool_withheld", server=known.name, tool=listed.remote.name[:80], why=listed.why)
    return offered


def _judged(known: _Known, record: ServerRecord) -> Iterator[tuple[ListedTool, Tool | None]]:
    """Each tool that the server has, with the tool of ours where it is approved."""
    for remote in known.tools:
        approval = record.approved.get(remote.name)
        by_operator = known.policy.approved.get(remote.name)
        # Of a tool that says something else than what the operator has approved, the operator's list says nothing.
        reads_only = remote.name in known.policy.read_only and by_operator in (None, remote.digest)
        digests = {by_operator, approval.digest if approval else None} - {None}
        if remote.digest not in digests:
            state = "changed" if digests else "new"
            yield ListedTool(remote, state, f"{state}: approve it as {remote.digest}", reads_only), None
            continue
        reads_only |= approval is not None and approval.digest == remote.digest and approval.reads_only
        made = _made(known, remote, reads_only=reads_only)
        if isinstance(made, Tool):
            yield ListedTool(remote, "approved", reads_only=reads_only), made
        else:
            yield ListedTool(remote, "unusable", made), None


def _made(known: _Known, remote: RemoteTool, *, reads_only: bool) -> Tool | str:
    key = (remote.digest, reads_only)
    if key not in known.made:
        policy = replace(known.policy, read_only=(remote.name,) if reads_only else ())
        try:
            known.made[key] = tool_of(known.name, remote, policy)
        except ValueError as error:
            known.made[key] = str(error)
    return known.made[key]
