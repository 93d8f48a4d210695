"""Logins of tenants at MCP servers that want one (OAuth 2.1): a person logs in at the server's own authorization server, and we
keep the tokens that come of it. What is sent where is known to the port's adapter alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from pydantic import SecretStr

from kit.errors import FailedPrecondition


class LoginRefused(FailedPrecondition):
    """The MCP server, or its authorization server, did not let us log in."""

    reason = "TOOL_SERVER_LOGIN_REFUSED"


@dataclass(frozen=True)
class AskedLogin:
    """What an administrator says of a login that is to begin."""

    redirect_uri: str
    """Where the authorization server sends the person's browser at the end."""
    client_id: str = ""
    """Of a client that is registered there; empty: one is registered now."""
    client_secret: SecretStr | None = None
    scope: str = ""
    """Empty: what the server asks for."""


@dataclass(frozen=True)
class WaitingLogin:
    """A login that waits for its person."""

    state: str
    """What the browser brings back, so that it is known to be this login's."""
    verifier: str = field(repr=False)
    """Of the code challenge (RFC 7636)."""
    subject: str
    """Who began it: nobody else ends it."""
    until: datetime


@dataclass(frozen=True)
class Login:
    """A tenant's login at a server: secrets, stored sealed."""

    redirect_uri: str
    scope: str
    client: Mapping[str, Any] = field(repr=False)
    """Our registration at the authorization server (RFC 7591)."""
    authorization_server: Mapping[str, Any]
    """Its metadata (RFC 8414); empty where it has none."""
    resource: Mapping[str, Any]
    """The MCP server's metadata (RFC 9728); empty where it has none."""
    tokens: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Empty until the person has logged in."""
    expires_at_s: float = 0.0
    """Of the access token, since 1970; 0: not known."""
    renewing_until_s: float = 0.0
    """Until when one process renews the tokens and the others wait, since 1970; 0: none does."""
    over_until_s: float = 0.0
    """Until when nobody tries to renew a login that was refused, since 1970."""
    over_because: str = ""
    """What was said when it was refused."""
    waiting: WaitingLogin | None = None


class LoginClient(Protocol):
    """The client side of OAuth. Each method raises LoginRefused, and GroundworkError for an address that may not be asked."""

    async def begin(self, url: str, asked: AskedLogin, state: str, subject: str, until: datetime) -> tuple[str, Login]:
        """The address that the person opens, and the login that waits for them with its `state`."""
        ...

    async def finish(self, url: str, login: Login, code: str, issuer: str) -> Login:
        """The login with its tokens, for the code that the browser has brought."""
        ...

    async def refresh(self, url: str, login: Login) -> Login:
        """The login with other tokens. Raises LoginRefused when it is over, and ServiceUnavailable when nobody answers."""
        ...

    async def revoke(self, url: str, login: Login) -> None:
        """Tells the authorization server that the tokens are not used any more (RFC 7009), where it wants to know."""
        ...
