"""Logging in at MCP servers with the OAuth client of the package `mcp`: discovery (RFC 9728, RFC 8414), registration (RFC 7591),
code with PKCE (RFC 7636), resource indicator (RFC 8707), issuer (RFC 9207). A login takes two requests of a person, which may come
to two processes, so what the package keeps in between is kept in the login. Every request goes through the guard of
kit.network.egress."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urljoin

import httpx2
import structlog
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import PKCEParameters, TokenStorage
from mcp.client.auth.utils import validate_authorization_response_iss
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import AnyUrl

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard, place_of
from kit.network.hosts import is_loopback_name
from services.tools.adapters.mcp.transports import guarded_client
from services.tools.calling.bounds import shortened
from services.tools.errors import ServiceUnavailable
from services.tools.sources.logins import AskedLogin, Login, LoginRefused, WaitingLogin

_log = structlog.get_logger()
_TIMEOUT_S = 20.0
_REVOKED_WITHIN_S = 3.0
"""A person waits for the end of a logout, which holds here in any case."""
_TOLD_CHARACTERS_MAX = 300
_OVER = (400, 401, 403)
"""What an authorization server answers to a refresh token that is not good any more (RFC 6749, 5.2)."""
_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": LATEST_HANDSHAKE_VERSION}
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "groundwork", "version": "1"},
    },
}


class McpLoginClient:
    """LoginClient over the package."""

    def __init__(self, guard: EgressGuard, now: Callable[[], datetime]) -> None:
        self._guard = guard
        self._now = now

    async def begin(self, url: str, asked: AskedLogin, state: str, subject: str, until: datetime) -> tuple[str, Login]:
        provider = _Provider(url, asked)
        secret = asked.client_secret.get_secret_value() if asked.client_secret else ""
        with _refusals(secret):
            async with asyncio.timeout(_TIMEOUT_S), guarded_client(self._guard, _HEADERS, _TIMEOUT_S, provider) as http:
                try:
                    response = await http.post(url, json=_HELLO)
                except _PersonNeeded:
                    return provider.waiting(state, subject, until)
        if response.status_code < 400:
            raise LoginRefused("the server lets us in without a login; there is nothing to do")
        raise LoginRefused(f"the server answers {response.status_code} and says nothing of a login")

    async def finish(self, url: str, login: Login, code: str, issuer: str) -> Login:
        assert login.waiting is not None
        provider = _restored(url, login)
        with _refusals(code):
            validate_authorization_response_iss(issuer or None, provider.context.oauth_metadata)
            request = await provider._exchange_token_authorization_code(code, login.waiting.verifier)
            await provider._handle_token_response(await self._send(request))
        return replace(self._with_tokens(login, provider), waiting=None)

    async def refresh(self, url: str, login: Login) -> Login:
        provider = _restored(url, login)
        with _refusals():
            request = await provider._refresh_token()
        try:
            response = await self._send(request)
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise ServiceUnavailable("the authorization server does not answer; try again in a minute") from error
        if response.status_code not in (200, *_OVER):
            raise ServiceUnavailable(f"the authorization server answers {response.status_code}; try again in a minute")
        with _refusals():
            if not await provider._handle_refresh_response(response):
                raise LoginRefused(f"the authorization server refuses to renew the login ({response.status_code})")
        return self._with_tokens(login, provider)

    async def revoke(self, url: str, login: Login) -> None:
        provider = _restored(url, login)
        found, client = provider.context.oauth_metadata, provider.context.client_info
        if not (found and found.revocation_endpoint and client):
            return
        endpoint = str(found.revocation_endpoint)
        for kind in ("refresh_token", "access_token"):
            if token := login.tokens.get(kind):
                form = {"token": token, "token_type_hint": kind, "client_id": client.client_id or ""}
                try:
                    with _refusals(token):
                        _require_private(endpoint)
                        data, headers = provider.context.prepare_token_auth(form, {})
                        async with asyncio.timeout(_REVOKED_WITHIN_S):
                            response = await self._send(httpx2.Request("POST", endpoint, data=data, headers=headers))
                        response.raise_for_status()
                except GroundworkError as error:
                    _log.warning("mcp_token_not_revoked", token=kind, error=error.message)

    def _with_tokens(self, login: Login, provider: OAuthClientProvider) -> Login:
        tokens = provider.context.current_tokens
        lasts_s = tokens.expires_in if tokens else None
        expires_at_s = self._now().timestamp() + lasts_s if lasts_s else 0.0
        return replace(login, tokens=_dumped(tokens), expires_at_s=expires_at_s)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        async with asyncio.timeout(_TIMEOUT_S), guarded_client(self._guard, {}, _TIMEOUT_S) as http:
            return await http.send(request, follow_redirects=False)


class _PersonNeeded(Exception):
    """All is ready for the person to log in."""


class _Provider(OAuthClientProvider):
    """The package's client, which stops where the person comes in."""

    def __init__(self, url: str, asked: AskedLogin) -> None:
        redirect_uri = AnyUrl(asked.redirect_uri)
        is_native = is_loopback_name(place_of(asked.redirect_uri).host)
        metadata = OAuthClientMetadata(
            client_name="Groundwork",
            redirect_uris=[redirect_uri],
            application_type="native" if is_native else "web",
        )
        self._asked = asked
        known = None
        if asked.client_id:
            known = OAuthClientInformationFull(
                client_id=asked.client_id,
                client_secret=asked.client_secret.get_secret_value() if asked.client_secret else None,
                redirect_uris=[redirect_uri],
            )
        super().__init__(url, metadata, KeptTokens(known))

    async def _perform_authorization(self) -> httpx2.Request:
        for endpoint in (self._authorization_endpoint(), self._get_token_endpoint()):
            _require_private(endpoint)
        raise _PersonNeeded

    def waiting(self, state: str, subject: str, until: datetime) -> tuple[str, Login]:
        """The address to open, and the login that waits."""
        context, asked = self.context, self._asked
        assert context.client_info is not None
        pkce = PKCEParameters.generate()
        scope = asked.scope or context.client_metadata.scope or ""
        query = {
            "response_type": "code",
            "client_id": context.client_info.client_id,
            "redirect_uri": asked.redirect_uri,
            "state": state,
            "code_challenge": pkce.code_challenge,
            "code_challenge_method": "S256",
            "resource": context.get_resource_url(),
            **({"scope": scope} if scope else {}),
            **({"prompt": "consent"} if "offline_access" in scope.split() else {}),
        }
        login = Login(
            redirect_uri=asked.redirect_uri,
            scope=scope,
            client=_dumped(self._with_method(context.client_info)),
            authorization_server=_dumped(context.oauth_metadata),
            resource=_dumped(context.protected_resource_metadata),
            waiting=WaitingLogin(state, pkce.code_verifier, subject, until),
        )
        endpoint = self._authorization_endpoint()
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", login

    def _authorization_endpoint(self) -> str:
        found = self.context.oauth_metadata
        if found and found.authorization_endpoint:
            return str(found.authorization_endpoint)
        return urljoin(self.context.get_authorization_base_url(self.context.server_url), "/authorize")

    def _with_method(self, client: OAuthClientInformationFull) -> OAuthClientInformationFull:
        """The client with the way to show its secret, where it was registered by hand and nobody has said."""
        if not client.client_secret or client.token_endpoint_auth_method:
            return client
        found = self.context.oauth_metadata
        supported = (found.token_endpoint_auth_methods_supported if found else None) or ["client_secret_basic"]
        method = "client_secret_basic" if "client_secret_basic" in supported else "client_secret_post"
        return client.model_copy(update={"token_endpoint_auth_method": method})


class KeptTokens(TokenStorage):
    """Tokens in memory, for one flow or one process; what is to stay is in a login."""

    def __init__(self, client: OAuthClientInformationFull | None = None, tokens: OAuthToken | None = None) -> None:
        self._client = client
        self._tokens = tokens

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def _restored(url: str, login: Login) -> OAuthClientProvider:
    """The package's client as it was when the login was kept."""
    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(login.redirect_uri)], scope=login.scope or None)
    provider = OAuthClientProvider(url, metadata, KeptTokens())
    context = provider.context
    context.protocol_version = LATEST_HANDSHAKE_VERSION
    context.client_info = OAuthClientInformationFull.model_validate(login.client)
    if login.authorization_server:
        context.oauth_metadata = OAuthMetadata.model_validate(login.authorization_server)
    if login.resource:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(login.resource)
    if login.tokens:
        context.current_tokens = OAuthToken.model_validate(login.tokens)
    return provider


def _dumped(model: Any) -> dict[str, Any]:
    return dict(model.model_dump(mode="json", exclude_none=True)) if model else {}


def _require_private(endpoint: str) -> None:
    """Raises LoginRefused for an address to which secrets would go in the clear."""
    place = place_of(endpoint)
    if place.scheme != "https" and not is_loopback_name(place.host):
        raise LoginRefused(f"the authorization server is at {place.host} without https; secrets are not sent there")


@contextmanager
def _refusals(*hidden: str) -> Iterator[None]:
    """Whatever the servers do wrong is a LoginRefused, without what must not be repeated."""
    try:
        yield
    except (OAuthFlowError, httpx2.HTTPError, OSError, TimeoutError, ValueError) as error:
        why = str(error) or "no answer in time"
        for secret in filter(None, hidden):
            why = why.replace(secret, "[hidden]")
        raise LoginRefused(f"logging in does not work: {shortened(why, _TOLD_CHARACTERS_MAX)}") from error
