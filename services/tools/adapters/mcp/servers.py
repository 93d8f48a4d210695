"""MCP servers, asked with the official client. A session is of one person, and serves one call at a time. A server is offered no
roots, and sampling and elicitation only where that is set; then each call has a session of its own."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2
import mcp_types as types
import structlog
from mcp import Client
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard
from services.tools.adapters.mcp.asking import Asking
from services.tools.adapters.mcp.logins import KeptTokens
from services.tools.adapters.mcp.sessions import Owner, Session, SessionPool
from services.tools.adapters.mcp.transports import MESSAGE_BYTES_MAX, Trouble, guarded_client, program
from services.tools.calling.bounds import shortened
from services.tools.calling.progress import Tell
from services.tools.errors import ServiceUnavailable, ToolBroke, ToolError, UnknownTool
from services.tools.models import Call, ToolAnswer, ToolOutput
from services.tools.settings import McpServerSettings
from services.tools.sources.remote_tools import RemoteTool, digest_of
from services.tools.sources.tokens import Access

_log = structlog.get_logger()
TEXT_CHARACTERS_MAX = 40_000
"""Of a result that is passed on: some ten thousand tokens, as of http_get."""
_HIDDEN = "[hidden]"
_TOLD_CHARACTERS_MAX = 200
_LOGGED_CHARACTERS_MAX = 1000
_TOKENS_HIDDEN = 8
"""Access tokens, the newest ones, that are hidden where a server repeats them."""


class McpServer:
    """A RemoteServer behind its settings."""

    def __init__(
        self,
        name: str,
        settings: McpServerSettings,
        guard: EgressGuard,
        pool: SessionPool,
        access: Access | None = None,
    ) -> None:
        """`access`: of a tenant's server, at which somebody may have logged in."""
        self._name = name
        self._settings = settings
        self._guard = guard
        self._pool = pool
        self._access = access
        self._tokens = KeptTokens()
        self._sent_tokens: deque[str] = deque(maxlen=_TOKENS_HIDDEN)

    async def tools(self) -> list[RemoteTool]:
        token = await self._token()
        session = await self._opened(token, self._asking(None))
        try:
            with self._explained(session.trouble, token, ToolBroke):
                return [_described(tool) for tool in await session.all_tools()]
        finally:
            self._pool.end(session)

    async def call(self, tool: RemoteTool, call: Call, tell: Tell, *, reads: bool) -> ToolOutput:
        token = await self._token()
        asking = self._asking(call.answers if reads else None)
        owner = Owner(self, call.tenant_id, call.subject, token)
        if not asking and (session := self._pool.take(owner)):
            try:
                return await self._called(session, owner, tool, call, tell)
            except ServiceUnavailable:
                pass  # before the call
            except ToolBroke:
                if not (session.trouble.is_forgotten or (reads and session.trouble.is_ended)):
                    raise
        session = await self._opened(token, asking)
        return await self._called(session, owner, tool, call, tell, asking)

    def close(self) -> None:
        self._pool.end_all_of(self)

    async def _called(
        self, session: Session, owner: Owner, tool: RemoteTool, call: Call, tell: Tell, asking: Asking | None = None
    ) -> ToolOutput:
        """What a call in the session comes to. The session stays open afterwards where all went well and it can ask nothing: what a
        call makes it ask must reach no other call."""

        async def tell_on(progress: float, total: float | None, message: str | None) -> None:
            steps = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            await tell(self._hidden(shortened(message or steps, _TOLD_CHARACTERS_MAX)))

        result = None
        try:
            with self._explained(session.trouble, owner.token, ServiceUnavailable):
                there = await session.find(tool.name)
            self._require_same(tool, there)
            with self._explained(session.trouble, owner.token, ToolBroke):
                made = session.result_of(
                    session.client.call_tool(tool.name, dict(call.arguments), progress_callback=tell_on)
                )
                result = await (asking.result_of(made) if asking else made)
        finally:
            if result is None or asking:
                self._pool.end(session)
            else:
                self._pool.put(owner, session)
        if asking:
            asking.require_answered()
        assert result is not None
        return self._output(result)

    def _output(self, result: CallToolResult) -> ToolOutput:
        text = self._hidden(_text(result))
        if result.is_error:
            raise ToolError(f"the server {self._name} refused: {shortened(text, 600) or 'without a word'}")
        content: dict[str, Any] = {"server": self._name, "text": text[:TEXT_CHARACTERS_MAX]}
        if len(text) > TEXT_CHARACTERS_MAX:
            content["truncated"] = True
        return ToolOutput(content, shortened(text, 200))

    def _require_same(self, approved: RemoteTool, there: types.Tool | None) -> None:
        """Raises UnknownTool unless the server says of the tool what was approved."""
        if there is None:
            raise UnknownTool(f"the server {self._name} has no tool {approved.name!r:.80} any more")
        if _described(there).digest != approved.digest:
            raise UnknownTool(
                f"{approved.name} of the server {self._name} says something else of itself since it was approved; an administrator "
                "reads it again"
            )

    async def _token(self) -> str:
        return await self._access.token() if self._access else ""

    async def _opened(self, token: str, asking: Asking | None) -> Session:
        """A new session. It refuses what the server asks, unless there is an `asking`. Raises ServiceUnavailable."""
        session = Session(Trouble())
        with self._explained(session.trouble, token, ServiceUnavailable):
            await session.open(self._connection(session, token, asking))
        return session

    @asynccontextmanager
    async def _connection(self, session: Session, token: str, asking: Asking | None) -> AsyncGenerator[Client, None]:
        async with (
            self._transport(session.trouble, token) as transport,
            Client(transport, cache=None, message_handler=session.hear, **self._heard(asking)) as client,
        ):
            # A check by the server's schema would run its regular expressions, which could keep this process busy for ever.
            client.session.validate_tool_result = _unchecked  # type: ignore[method-assign,assignment]
            yield client

    @contextmanager
    def _explained(self, found: Trouble, token: str, kind: type[ToolError]) -> Iterator[None]:
        """Raises `kind` with an explanation for whatever goes wrong with a connection."""
        try:
            yield
        except* (
            MCPError,
            httpx2.HTTPError,
            OSError,
            OAuthFlowError,
            GroundworkError,
            RuntimeError,
            ValueError,
        ) as group:
            why = self._hidden(shortened(str(_first(group)), 300)) or type(_first(group)).__name__
            if found.status in (401, 403):
                why = f"it answers {found.status} and requires a login; {self._way_in(token)}"
            elif found.written and kind is ServiceUnavailable:
                words = self._hidden(found.written.decode(errors="replace"))[-_LOGGED_CHARACTERS_MAX:]
                _log.warning("mcp_program_failed", server=self._name, why=why, wrote=words)
                why += "; the log of the tools service has what the program wrote"
            raise kind(f"the server {self._name} cannot be used: {why}") from group

    @asynccontextmanager
    async def _transport(self, found: Trouble, token: str) -> AsyncGenerator[Any, None]:
        settings = self._settings
        if settings.command:
            environment = {name: value.get_secret_value() for name, value in settings.env.items()}
            yield program(settings.command, environment, found)
            return
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        if token:
            headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
            headers["Authorization"] = f"Bearer {token}"
            self._sent_tokens.append(token)
        async with guarded_client(self._guard, headers, settings.timeout_s, self._auth()) as http:
            http.event_hooks = {"response": [found.note]}
            yield streamable_http_client(settings.url, http_client=http, max_sse_event_size=MESSAGE_BYTES_MAX)

    def _asking(self, answers: Sequence[ToolAnswer] | None) -> Asking | None:
        """None where the server may not ask. Where it may, each of its sessions says so: some servers have tools only for clients
        that let them ask."""
        if not (self._settings.sampling_tokens or self._settings.elicitation):
            return None
        return Asking(self._name, answers, sampling_tokens=self._settings.sampling_tokens)

    def _heard(self, asking: Asking | None) -> dict[str, Any]:
        """The callbacks for what the server may ask."""
        heard: dict[str, Any] = {}
        if asking and self._settings.sampling_tokens:
            heard["sampling_callback"] = asking.sample
        if asking and self._settings.elicitation:
            heard["elicitation_callback"] = asking.elicit
        return heard

    def _way_in(self, token: str) -> str:
        if self._access is None:
            return "check the headers that it is sent"
        if token:
            self._access.refused(token)
            return f"the login there is renewed with the next call; log in again if that does not help: {self._how()}"
        return f"log in there ({self._how()}), or check the headers that it is sent"

    def _how(self) -> str:
        return f"`groundwork tool-servers login {self._name}`"

    def _auth(self) -> httpx2.Auth | None:
        oauth = self._settings.oauth
        if oauth is None:
            return None
        return ClientCredentialsOAuthProvider(
            self._settings.url,
            self._tokens,
            oauth.client_id,
            oauth.client_secret.get_secret_value(),
            scope=oauth.scope or None,
            issuer=oauth.issuer,
        )

    def _hidden(self, text: str) -> str:
        """The text without the secrets that the server was sent, should it repeat them."""
        settings = self._settings
        secrets = [each.get_secret_value() for each in (*settings.env.values(), *settings.headers.values())]
        secrets += self._sent_tokens
        for secret in [*secrets, *(each.split()[-1] for each in secrets if each.split())]:
            if len(secret) >= 6:
                text = text.replace(secret, _HIDDEN)
        return text


async def _unchecked(_name: str, _result: CallToolResult) -> None:
    """Takes a result as it is: models read its text alone."""


def _described(tool: types.Tool) -> RemoteTool:
    return RemoteTool(
        tool.name,
        tool.description or tool.title or "",
        tool.input_schema,
        digest_of(tool.model_dump(mode="json", by_alias=True, exclude_none=True)),
    )


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _text(result: CallToolResult) -> str:
    """The words of a result; what is no text is named and left out."""
    parts = []
    for block in result.content:
        if isinstance(block, TextContent):
            parts.append(block.text)
        elif isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            parts.append(block.resource.text)
        elif isinstance(block, ResourceLink):
            parts.append(f"[{block.name}]({block.uri})")
        else:
            parts.append(f"[{block.type}: left out]")
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)
