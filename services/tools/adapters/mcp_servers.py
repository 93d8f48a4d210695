"""MCP servers, asked with the official client. A connection lives for one call or one list: a server keeps nothing of ours open,
and what it does to one call it does to no other. It is offered no roots, and sampling and elicitation only where that is set."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import structlog
from mcp import Client
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.oauth2 import TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard
from services.tools.adapters.mcp_asking import Asking
from services.tools.adapters.mcp_transports import MESSAGE_BYTES_MAX, guarded_client, program
from services.tools.calling.bounds import shortened
from services.tools.calling.progress import Tell
from services.tools.errors import ServiceUnavailable, ToolBroke, ToolError
from services.tools.models import ToolAnswer, ToolOutput
from services.tools.settings import McpServerSettings
from services.tools.sources.remote_tools import RemoteTool, digest_of
from services.tools.sources.tokens import Access

_log = structlog.get_logger()
TEXT_CHARACTERS_MAX = 40_000
"""Of a result that is passed on: some ten thousand tokens, as of http_get."""
_HIDDEN = "[hidden]"
_PAGES_MAX = 10
_TOLD_CHARACTERS_MAX = 200
_LOGGED_CHARACTERS_MAX = 1000
_TOKENS_HIDDEN = 8
"""Access tokens, the newest ones, that are hidden where a server repeats them."""


class McpServer:
    """A RemoteServer behind its settings."""

    def __init__(
        self, name: str, settings: McpServerSettings, guard: EgressGuard, access: Access | None = None
    ) -> None:
        """`access`: of a tenant's server, at which somebody may have logged in."""
        self._name = name
        self._settings = settings
        self._guard = guard
        self._access = access
        self._tokens = _Tokens()
        self._sent_tokens: deque[str] = deque(maxlen=_TOKENS_HIDDEN)

    async def tools(self) -> list[RemoteTool]:
        async with self._connected(self._asking(())) as client:  # some servers have tools only for who lets them ask
            found, cursor = [], None
            for _ in range(_PAGES_MAX):
                page = await client.list_tools(cursor=cursor)
                found += page.tools
                if not (cursor := page.next_cursor):
                    break
        return [
            RemoteTool(
                tool.name,
                tool.description or tool.title or "",
                tool.input_schema,
                digest_of(tool.model_dump(mode="json", by_alias=True, exclude_none=True)),
            )
            for tool in found
        ]

    async def call(
        self, name: str, arguments: Mapping[str, Any], tell: Tell, answers: Sequence[ToolAnswer] | None = None
    ) -> ToolOutput:
        async def tell_on(progress: float, total: float | None, message: str | None) -> None:
            steps = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            await tell(self._hidden(shortened(message or steps, _TOLD_CHARACTERS_MAX)))

        asking = None if answers is None else self._asking(answers)
        async with self._connected(asking) as client:
            made = client.call_tool(name, dict(arguments), progress_callback=tell_on)
            result = await (asking.result_of(made) if asking else made)
        if asking:
            asking.require_answered()
        assert result is not None
        text = self._hidden(_text(result))
        if result.is_error:
            raise ToolError(f"the server {self._name} refused: {shortened(text, 600) or 'without a word'}")
        told: dict[str, Any] = {"server": self._name, "text": text[:TEXT_CHARACTERS_MAX]}
        if len(text) > TEXT_CHARACTERS_MAX:
            told["truncated"] = True
        return ToolOutput(told, shortened(text, 200))

    @asynccontextmanager
    async def _connected(self, asking: Asking | None = None) -> AsyncGenerator[Client, None]:
        """A client that refuses what the server asks, unless there is an `asking`. Raises ServiceUnavailable before a connection is
        there, and ToolBroke when it breaks."""
        is_there, found = False, _Trouble()
        token = await self._access.token() if self._access else ""
        try:
            async with (
                self._transport(found, token) as transport,
                Client(transport, cache=None, **self._heard(asking)) as client,
            ):
                is_there = True
                yield client
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
            kind = ToolBroke if is_there else ServiceUnavailable
            if found.status in (401, 403):
                why = f"it answers {found.status} and wants to know who asks; {self._way_in(token)}"
            elif found.written and not is_there:
                words = self._hidden(found.written.decode(errors="replace"))[-_LOGGED_CHARACTERS_MAX:]
                _log.warning("mcp_program_failed", server=self._name, why=why, wrote=words)
                why += "; the log of the tools service has what the program wrote"
            raise kind(f"the server {self._name} cannot be used: {why}") from group

    @asynccontextmanager
    async def _transport(self, found: "_Trouble", token: str) -> AsyncGenerator[Any, None]:
        settings = self._settings
        if settings.command:
            environment = {name: value.get_secret_value() for name, value in settings.env.items()}
            yield program(settings.command, environment, found.written)
            return
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        if token:
            headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
            headers["Authorization"] = f"Bearer {token}"
            self._sent_tokens.append(token)
        async with guarded_client(self._guard, headers, settings.timeout_s, self._auth()) as http:
            http.event_hooks = {"response": [found.note]}
            yield streamable_http_client(settings.url, http_client=http, max_sse_event_size=MESSAGE_BYTES_MAX)

    def _asking(self, answers: Sequence[ToolAnswer]) -> Asking | None:
        """None where the server may not ask."""
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


@dataclass
class _Trouble:
    """What may explain why a connection failed."""

    written: bytearray = field(default_factory=bytearray)
    """The end of what a program wrote to standard error."""
    status: int = 0
    """Of the last HTTP answer."""

    async def note(self, response: httpx2.Response) -> None:
        self.status = response.status_code


class _Tokens(TokenStorage):
    """Tokens of one server, in memory: a restart asks for another."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


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
