"""Who is asking. Decided once for each request, before anything of it is read but its head: by an API key, or by an OIDC issuer's
token. Without keys every request is the one local user's.

Everything below /v1, /ws and /scim, and /mcp, needs a caller. Health, the console's files and /openapi.json do not: they tell
nothing about what is stored.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from opentelemetry import trace
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kit import deadline
from kit.access.api_keys import ApiKey, ApiKeyInvalid, ApiKeyMalformed, ApiKeyMissing, ShownKey, read_shown
from kit.access.principal import Principal, use_principal
from kit.errors import GroundworkError, Unauthenticated
from kit.process.settings import Networks
from services.gateway.access.bootstrap_key import BootstrapKey
from services.gateway.access.guests.rights import require_for_guests
from services.gateway.access.key_ring import KeyRing
from services.gateway.access.oidc.tokens import looks_like_token
from services.gateway.errors import TooManyWrongKeys
from services.gateway.metrics import REFUSED_CALLERS
from services.gateway.serving.connection_table import origin_of
from services.gateway.serving.cookies import NewCookie, cookie_header
from services.gateway.serving.rate_limiter import RateLimiter
from services.gateway.serving.request_limits import RequestLimits, Standing, standing_headers
from services.gateway.serving.requests import base_url, is_request, refuse

if TYPE_CHECKING:
    from services.gateway.access.oidc.sessions import Session

PROBE = Principal("local", "gateway-probe")
"""Whom the gateway's own health checks act as; health services ask for no rights."""
_CATCH_UP_S = 1.0
"""Longest wait for what other gateways have written: a watch is behind by a few milliseconds."""
_LATEST_WITHIN_S = 5.0
"""Longest wait for the number of the newest change. Who shows an unknown key keeps a connection no longer than that."""
FIRST_KEYS_S = 10.0
"""Longest wait of a request for a gateway that has just started to know the keys: it is restarted without failing one."""
MCP_PATH = "/mcp"
_LIMITS_PATH = "/v1/limits"
SESSION_COOKIE = "__Host-groundwork"
"""Of a login. A browser takes a name with this beginning from this very host over TLS alone, or from this machine (RFC 6265bis)."""
GUEST = "guest"
"""Stands in place of an issuer where a guest acts; the group of all guests."""
GUEST_COOKIE = "guest."
"""Begins the cookie of a guest, who has the same cookie as people with a login: a browser is one of both."""
KEY_PROTOCOL = "openai-insecure-api-key."
"""Begins the subprotocol in which a page shows its key for a WebSocket."""
_ADMISSION = "admission"
_REFUSAL = "refusal"


@dataclass(frozen=True)
class Admission:
    """A verified caller, and by which key or whose token they came in."""

    principal: Principal
    key: ApiKey | None = None
    issuer: str = ""
    """Of the token or login, or GUEST; empty where a key was shown, or nothing."""
    session: "Session | None" = None
    """The login whose cookie was shown."""
    next_cookie: Callable[[], NewCookie | None] = lambda: None
    """What the browser's cookie becomes with an answer that begins now; None to leave it."""
    given_at: float = 0.0
    """When the key, token or login was given, in seconds since the epoch."""
    ended: Callable[[], Awaitable[Unauthenticated]] | None = None
    """Returns once the key or token is not good any more, with the reason. None where nothing can end."""

    @property
    def credential(self) -> str:
        """The key's id, or who gave the token; empty where nothing was shown."""
        return self.key.key_id if self.key else self.issuer


class ByIssuer(Protocol):
    """Lets in whom an OIDC issuer vouches for."""

    async def admit_token(self, token: str) -> Admission:
        """Raises GroundworkError."""
        ...

    async def admit_session(self, cookie: str, address: str) -> Admission:
        """Raises GroundworkError."""
        ...


class ByCookie(Protocol):
    """Lets in guests."""

    async def admit(self, cookie: str) -> Admission:
        """Raises GroundworkError."""
        ...


class Door(Protocol):
    """Lets callers in."""

    async def admit(self, headers: Headers, address: str) -> Admission:
        """The caller behind a request's head. Raises GroundworkError."""
        ...


class Members(Protocol):
    """Knows which users have left the organisation, and the groups of each user."""

    async def admit(self, admission: Admission) -> Admission:
        """With the caller's groups. Raises GroundworkError where the caller has left, or that is not known."""
        ...


class OpenDoor:
    """Everybody is the one local user."""

    def __init__(self, principal: Principal) -> None:
        self.principal = principal

    async def admit(self, headers: Headers, address: str) -> Admission:  # noqa: ARG002 - nobody is asked
        return Admission(self.principal)


class KeyDoor:
    """Lets in who shows a good API key.

    Only wrong keys are limited, and a right one is let in whatever its address has done before: of 256 random bits nothing is
    guessed at any rate, so the limit is there for the logs and the message store, and must not lock anybody out. So it is with the
    bootstrap key: who reached the gateway by the same proxy as an attacker could not get in any more.
    """

    def __init__(
        self,
        ring: KeyRing,
        wrong_keys: RateLimiter,
        proxies: Networks,
        *,
        begun_logins: RateLimiter,
        latest_revision: Callable[[], Awaitable[int]],
        used: Callable[[ApiKey], None],
        bootstrap: BootstrapKey,
        by_issuer: ByIssuer | None = None,
        guests: ByCookie | None = None,
        members: Members | None = None,
    ) -> None:
        self._guests = guests
        self._members = members
        self._by_issuer = by_issuer
        self._bootstrap = bootstrap
        self._ring = ring
        self._wrong_keys = wrong_keys
        self._begun_logins = begun_logins
        self._proxies = proxies
        self._latest_revision = latest_revision
        self._used = used

    async def admit(self, headers: Headers, address: str) -> Admission:
        secret = _session_in(headers)
        if self._guests is not None and secret.startswith(GUEST_COOKIE):
            return await self._vouched_for(self._guests.admit(secret), address)
        if self._by_issuer is not None and secret:
            return await self._vouched_for(self._by_issuer.admit_session(secret, address), address)
        text = _shown_text(headers)
        if (admission := self._by_setting(text)) is not None:
            return admission
        if self._by_issuer is not None and looks_like_token(text):
            return await self._vouched_for(self._by_issuer.admit_token(text), address)
        try:
            shown = read_shown(text)
            await self._ring.read_first(FIRST_KEYS_S)
            try:
                key = self._ring.require_good(shown)
            except ApiKeyInvalid:
                self._count_wrong(address)
                key = await self._after_catching_up(shown)
                self._count_right(address)
        except ApiKeyMalformed:
            self._count_wrong(address)
            raise
        given_at = key.created_at.timestamp()
        admission = Admission(key.principal, key, given_at=given_at, ended=lambda: self._ring.ended(shown))
        admission = await self._still_here(admission)
        self._used(key)
        return admission

    async def _still_here(self, admission: Admission) -> Admission:
        return await self._members.admit(admission) if self._members is not None else admission

    async def _vouched_for(self, admitting: Coroutine[Any, Any, Admission], address: str) -> Admission:
        """Only while the message store answers: somebody may have been logged out meanwhile."""
        with closing(admitting):
            await self._ring.read_first(FIRST_KEYS_S)
            self._ring.require_fresh()
            try:
                admission = await admitting
            except Unauthenticated:
                self._count_wrong(address)
                raise
        return await self._still_here(admission)

    def admit_at_once(self, headers: Headers) -> Admission | None:
        """Who needs no message store to be known; None for all others."""
        try:
            return self._by_setting(_shown_text(headers))
        except Unauthenticated:
            return None

    def _by_setting(self, text: str) -> Admission | None:
        """Looked at before all else: the bootstrap key may have any form, also that of the others."""
        bootstrap = self._bootstrap
        if (shown := bootstrap.shown(text)) is None:
            return None
        return Admission(bootstrap.key.principal, bootstrap.key, ended=lambda: bootstrap.ended(shown))

    async def _after_catching_up(self, shown: ShownKey) -> ApiKey:
        """The key, which another gateway may have made, or given a new text, a moment ago. The same for an unknown id and for a
        wrong secret."""
        with deadline.within(_LATEST_WITHIN_S):
            revision = await self._latest_revision()
        await self._ring.reached(revision, _CATCH_UP_S)
        return self._ring.require_good(shown)

    def count_leaving(self, address: str) -> None:
        """Counts a login that begins, for which the issuer is asked where it takes place. A login that comes about is not counted.
        Raises TooManyWrongKeys."""
        origin = origin_of(address, self._proxies)
        if origin and (wait_s := self._begun_logins.take(origin)):
            raise TooManyWrongKeys(
                f"too many logins were begun at {origin} and not finished; finish one, or wait a minute",
                retry_after_s=wait_s,
            )

    def count_login(self, address: str) -> None:
        """Counts a login that comes back from its issuer, for which the issuer is asked. Not of an address that stands for many:
        who shares it must be able to log in. Raises TooManyWrongKeys."""
        if origin_of(address, self._proxies):
            self._count_wrong(address)

    def note_login(self, address: str) -> None:
        """Takes back what was counted of a login that came about."""
        if origin := origin_of(address, self._proxies):
            self._count_right(address)
            self._begun_logins.give_back(origin)

    def _count_right(self, address: str) -> None:
        """Takes back what was counted of a key that this gateway only had not heard of yet."""
        self._wrong_keys.give_back(self._origin(address))

    def _origin(self, address: str) -> str:
        return origin_of(address, self._proxies) or address

    def _count_wrong(self, address: str) -> None:
        """Raises TooManyWrongKeys."""
        origin = self._origin(address)
        if wait_s := self._wrong_keys.take(origin):
            raise TooManyWrongKeys(
                f"too many wrong API keys or tokens came from {origin}; use the right one, which is let in at once, or wait",
                retry_after_s=wait_s,
            )


class Entrance:
    """ASGI middleware: has the door look at each request that needs a caller, and acts as that caller until the answer, streamed or
    not, is out. A request that is refused is refused before its body is read, and whether or not its path leads anywhere."""

    def __init__(
        self, app: ASGIApp, *, door: Door, public_url: str = "", requests: RequestLimits | None = None
    ) -> None:
        """`requests`: None where nobody's are limited."""
        self._app = app
        self._door = door
        self._requests = requests
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_request(scope) or not _needs_caller(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            admission = await self._door.admit(Headers(scope=scope), client_address(scope))
            if admission.issuer == GUEST:
                require_for_guests(scope)
            scope.setdefault("state", {})[_ADMISSION] = admission  # known also of a request that a limit refuses
            standings = await self._count(scope["path"], admission.principal)
        except GroundworkError as error:
            note_refusal(scope, error)
            REFUSED_CALLERS.labels(error.reason).inc()
            await refuse(error, scope, receive, _challenged(scope, send, self._public_url))
            return
        with use_principal(admission.principal), _log_context(admission):
            send = _send_with_cookie(admission, send) if admission.session else send
            await self._app(scope, receive, _send_with_limits(standings, send) if standings else send)

    async def _count(self, path: str, principal: Principal) -> Sequence[Standing]:
        """Raises LimitReached. Who may change a limit can always do so."""
        if self._requests is None or path.startswith(_LIMITS_PATH):
            return ()
        return await self._requests.take(principal)


def _send_with_limits(standings: Sequence[Standing], send: Send) -> Send:
    """`send` that tells the client how many requests are left."""

    async def send_with_limits(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            for name, value in standing_headers(standings).items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_limits


def _send_with_cookie(admission: Admission, send: Send) -> Send:
    """`send` that rotates the cookie of a login, by an answer that no cache keeps."""

    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start" and (cookie := admission.next_cookie()):
            headers = MutableHeaders(raw=message["headers"])
            if "no-store" in headers.get("cache-control", "no-store"):  # Edge adds it where nothing is said
                headers.append("set-cookie", cookie_header(SESSION_COOKIE, cookie))
        await send(message)

    return send_with_cookie


def _log_context(admission: Admission) -> AbstractContextManager[object]:
    """Log lines and the span name the tenant, and the key or the token's issuer."""
    names = {"tenant_id": admission.principal.tenant_id}
    if admission.credential:
        names["key_id" if admission.key else "issuer"] = admission.credential
    trace.get_current_span().set_attributes({f"groundwork.{name}": value for name, value in names.items()})
    return structlog.contextvars.bound_contextvars(**names)


async def authenticated(request: HTTPConnection) -> Principal:
    """The verified caller. One dependency of every route that needs one, so that none is served which the entrance let pass."""
    return admission_of(request.scope).principal


def admission_of(scope: Scope) -> Admission:
    """How the caller came in. Raises ApiKeyMissing where nobody was asked."""
    admission = admission_in(scope)
    if admission is None:
        raise ApiKeyMissing(_SHOW_ONE)
    return admission


def admission_in(scope: Scope) -> Admission | None:
    """How the caller came in; None of a request that needs no caller."""
    admission: Admission | None = scope.get("state", {}).get(_ADMISSION)
    return admission


def is_by_credential(scope: Scope) -> bool:
    """Whether the caller came in by an API key or a token."""
    admission = admission_in(scope)
    return admission is not None and bool(admission.credential)


def note_refusal(scope: Scope, error: GroundworkError) -> None:
    """Has the audit log know why a request was refused."""
    scope.setdefault("state", {})[_REFUSAL] = error.reason


def refusal_in(scope: Scope) -> str:
    """The reason that was noted; empty when there is none."""
    reason: str = scope.get("state", {}).get(_REFUSAL, "")
    return reason


def client_address(scope: Scope) -> str:
    """Of the connection; forwarded headers are not read."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _needs_caller(path: str) -> bool:
    return path in {"/v1", MCP_PATH} or path.startswith(("/v1/", "/ws/", "/scim/"))


def _challenged(scope: Scope, send: Send, public_url: str) -> Send:
    """`send` that tells a client of MCP where it learns how to get in (RFC 9728, section 5.1)."""
    if scope["path"] != MCP_PATH:
        return send
    metadata = f"{base_url(scope, public_url)}/.well-known/oauth-protected-resource/mcp"

    async def challenging(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 401:
            headers = MutableHeaders(raw=message["headers"])
            headers["WWW-Authenticate"] = f'Bearer resource_metadata="{metadata}"'
        await send(message)

    return challenging


_SHOW_ONE = (
    "this needs an API key, or a token where the operator lists its issuer; send it as `Authorization: Bearer gw_…`. An "
    "administrator makes one with `groundwork keys create`, the "
    "first of all with `groundwork keys bootstrap`, or in GROUNDWORK_BOOTSTRAP_KEY"
)


def _session_in(headers: Headers) -> str:
    """The secret of a login's cookie; empty where a key or token is shown, which identifies the caller more plainly."""
    if "authorization" in headers or "x-api-key" in headers or _in_subprotocols(headers):
        return ""
    return cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE, "")


def _shown_text(headers: Headers) -> str:
    """The key's text. Raises ApiKeyMissing, ApiKeyMalformed."""
    shown = {key.strip() for key in headers.getlist("x-api-key")} | _in_subprotocols(headers)
    for value in headers.getlist("authorization"):
        scheme, _, credentials = value.strip().partition(" ")
        if scheme.lower() != "bearer":
            raise ApiKeyMalformed("the Authorization header must be `Bearer` and the API key")
        shown.add(credentials.strip())
    shown.discard("")
    if not shown:
        raise ApiKeyMissing(_SHOW_ONE)
    if len(shown) > 1:
        raise ApiKeyMalformed("the request shows several API keys; send one")
    return shown.pop()


def _in_subprotocols(headers: Headers) -> set[str]:
    """Keys among the subprotocols of a WebSocket: a page cannot set other headers for one. The name is the one that OpenAI's
    clients use."""
    offered = (each.strip() for each in headers.get("sec-websocket-protocol", "").split(","))
    return {each.removeprefix(KEY_PROTOCOL) for each in offered if each.startswith(KEY_PROTOCOL)}
