"""Open sessions with MCP servers. A session serves one call at a time. After a call that went well it stays open for a while, for
the next call of the same person: a program that starts takes a second."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, Tool, ToolListChangedNotification

from services.tools.adapters.mcp.transports import Trouble

_AGE_MAX_S = 300.0
"""Then a session is not used again, so that what a server keeps in one does not grow for ever."""
_UNASKED_MAX = 100
"""Notifications that an idle session may send before it is ended."""
_LATE_TOOLS_S = 5.0
"""How long a server that announces changes of its tools is given for one: some have all their tools only after they know what their
client can do."""
_LISTED_AGAIN_MAX = 3
_PAGES_MAX = 10
_END_WITHIN_S = 2.0
T = TypeVar("T")


@dataclass(frozen=True)
class Owner:
    """Whose a session is, and with which server."""

    server: Hashable
    tenant_id: str
    subject: str
    token: str = field(repr=False)
    """Of the login there; empty where there is none."""


@dataclass(eq=False)
class Session:
    """A session, held open by a task of its own: the package wants it closed by the task that has opened it."""

    trouble: Trouble
    tools: list[Tool] | None = None
    """As the session listed them last; None before, and when they have changed."""
    is_used: bool = False
    """Whether it has served a call."""
    client: Client = field(init=False)
    _born_at_s: float = field(default_factory=time.monotonic)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _unasked: int | None = None
    """Notifications since it is idle; None while it is not."""
    _error: Exception | None = None
    """What has ended it."""

    async def open(self, connection: AbstractAsyncContextManager[Client]) -> None:
        """Returns once the server has said hello. Raises whatever goes wrong until then."""
        there: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(connection, there))
        try:
            self.client = await there
        except BaseException:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_END_WITHIN_S)
            raise

    async def hear(self, message: IncomingMessage) -> None:
        """Takes in what the server says unasked."""
        if isinstance(message, ToolListChangedNotification):
            self.tools = None
            self._changed.set()
        if self._unasked is not None:
            self._unasked += 1
            if self._unasked > _UNASKED_MAX:
                self._over.set()

    @property
    def is_good(self) -> bool:
        """Whether another call may use it."""
        is_young = time.monotonic() - self._born_at_s < _AGE_MAX_S
        return is_young and not (self._over.is_set() or self._task.done() or self.trouble.is_ended)

    def rest(self, *, is_idle: bool) -> None:
        """Notes that no call uses it any more, or that one does."""
        self._unasked = 0 if is_idle else None
        self.is_used = True

    async def result_of(self, request: Awaitable[T]) -> T:
        """What the server answers. Raises what ends the session meanwhile."""
        asking = asyncio.ensure_future(request)
        either: set[asyncio.Future[Any]] = {asking, self._task}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise self._error or MCPError(code=CONNECTION_CLOSED, message="the connection has ended")
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def all_tools(self) -> list[Tool]:
        """The tools of the server, also those that it adds after it has said hello."""
        found = await self._listed()
        for _ in range(_LISTED_AGAIN_MAX):
            if not await self._change():
                break
            found = await self._listed()
        return found

    async def find(self, name: str) -> Tool | None:
        """A tool of the server, also one that it adds after it has said hello."""
        while True:
            found = next((each for each in await self._listed() if each.name == name), None)
            if found or self.is_used or not await self._change():
                return found

    async def _listed(self) -> list[Tool]:
        """The tools; asked for again where the server says meanwhile that they have changed."""
        for _ in range(_LISTED_AGAIN_MAX):
            if self.tools is None:
                self._changed.clear()
                found = await self._pages()
                if not self._changed.is_set():
                    self.tools = found
        return found if self.tools is None else self.tools

    async def _change(self) -> bool:
        """Waits for the server to say that its tools have changed; False where it does not."""
        announces = self.client.server_capabilities.tools
        if not (announces and announces.list_changed):
            return False
        try:
            async with asyncio.timeout(_LATE_TOOLS_S):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def end(self) -> None:
        """Closes it; cuts off a server that holds that up."""
        self._over.set()
        await asyncio.wait({self._task}, timeout=_END_WITHIN_S)
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=_END_WITHIN_S)

    async def _pages(self) -> list[Tool]:
        found, cursor = [], None
        for _ in range(_PAGES_MAX):
            page = await self.result_of(self.client.list_tools(cursor=cursor))
            found += page.tools
            if not (cursor := page.next_cursor):
                break
        return found

    async def _hold(self, connection: AbstractAsyncContextManager[Client], there: asyncio.Future[Client]) -> None:
        try:
            async with connection as client:
                if not there.done():
                    there.set_result(client)
                await self._over.wait()
        except Exception as error:
            self._error = error
            if not there.done():
                there.set_exception(error)
        finally:
            there.cancel()


@dataclass(frozen=True, eq=False)
class _Idle:
    """A session that no call uses."""

    owner: Owner
    session: Session


class SessionPool:
    """The sessions of a process that no call uses, by whose they are."""

    def __init__(self, idle_max: int, idle_s: float) -> None:
        """Keeps up to `idle_max` sessions, each for `idle_s`."""
        self._idle_max = idle_max
        self._idle_s = idle_s
        self._idle: list[_Idle] = []
        """Used last comes last."""
        self._ending: set[asyncio.Task[None]] = set()

    def take(self, owner: Owner) -> Session | None:
        """An open session, which is the caller's until it is put back or ended."""
        self._end_where(lambda idle: not idle.session.is_good)
        for idle in reversed(self._idle):
            if idle.owner == owner:
                self._idle.remove(idle)
                idle.session.rest(is_idle=False)
                return idle.session
        return None

    def put(self, owner: Owner, session: Session) -> None:
        """Keeps a session open for the next call."""
        idle = _Idle(owner, session)
        session.rest(is_idle=True)
        self._idle.append(idle)
        asyncio.get_running_loop().call_later(self._idle_s, self._end_where, lambda each: each is idle)
        too_many = self._idle[: max(0, len(self._idle) - self._idle_max)]
        self._end_where(lambda each: each in too_many)

    def end(self, session: Session) -> None:
        """Closes a session while its caller goes on."""
        task = asyncio.create_task(session.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def end_all_of(self, server: Hashable) -> None:
        """Closes what is open to a server and not in use."""
        self._end_where(lambda idle: idle.owner.server is server)

    async def close(self) -> None:
        """Closes all sessions."""
        self._end_where(lambda _: True)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _end_where(self, is_over: Callable[[_Idle], bool]) -> None:
        over = [idle for idle in self._idle if is_over(idle)]
        self._idle = [idle for idle in self._idle if idle not in over]
        for idle in over:
            self.end(idle.session)
