"""What every request passes before its route: a name that is ours, an origin that is ours, a body of bounded size.

Without keys the protection is that only this machine reaches the gateway. A web page that the user happens to
visit runs on this machine too: it can send requests to 127.0.0.1 (cross-site request forgery), or point a name of its own
at 127.0.0.1 and read the answers (DNS rebinding). Hence the checks of Host and Origin, and CORS headers for listed origins alone.

With keys such a page has none to show. The names stay listed all the same: under another's name the console would ask people for
their key. IP addresses are answered to then, since nobody can point an address elsewhere, and probes and balancers use them.
"""

import asyncio
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kit.errors import GroundworkError
from kit.network.hosts import host_name, is_address, is_loopback_name
from services.gateway.errors import (
    BodyTooLarge,
    CrossOrigin,
    HostNotAllowed,
    RequestBodyTimeout,
    RouteNotFound,
    UnsupportedContentType,
    WebSocketNotServed,
)
from services.gateway.serving.requests import SAFE_METHODS, WEBSOCKET_PATHS, is_request, method_of, refuse

_OWN_SITE = frozenset({"same-origin", "none"})
_MCP_PATH = "/mcp"
"""Its streams are opened by GET, and the protocol wants their origin checked too."""
_FORM_PATH = "/oidc/backchannel-logout"
_SCIM_PATH = "/scim/"
_UPLOAD_PATH = ("v1", "collections", None, "documents")
_FILES_PATH = ["v1", "files"]
_SLASHED_MODEL = b"/v1/models/groundwork%2f"
"""Clients of OpenAI's API write the slash of a model's name so. Below it there is one route, which only reads."""


class Guard:
    """ASGI middleware: refuses foreign hosts, foreign origins and oversized or mistyped JSON bodies with problem+json."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        allowed_hosts: tuple[str, ...],
        max_json_bytes: int,
        body_timeout_s: float,
        any_address: bool = False,
        origins: tuple[str, ...] = (),
    ) -> None:
        """`origins`: of other sites, whose pages may change things here."""
        self._app = app
        self._allowed_hosts = frozenset(allowed_hosts)
        self._max_json_bytes = max_json_bytes
        self._body_timeout_s = body_timeout_s
        self._any_address = any_address
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_request(scope):
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            self._check_host(scope, headers)
            _check_path(scope)
            is_safe = method_of(scope) in SAFE_METHODS
            if not is_safe or scope["path"] == _MCP_PATH:
                self._check_origin(headers)
            _refuse_websocket(scope, headers)
            if not is_safe and scope["type"] == "http" and not _is_upload(scope):
                receive = await self._bounded(headers, receive, _body_types(scope))
        except GroundworkError as error:
            await refuse(error, scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        """A browser always names a host. HTTP/1.0, which old probes speak, has no such header."""
        if "host" not in headers and scope.get("http_version") == "1.0":
            return
        name = host_name(headers.get("host", ""))
        is_known = is_loopback_name(name) or (self._any_address and is_address(name)) or name in self._allowed_hosts
        if not is_known:
            raise HostNotAllowed(
                f"this server does not answer under the name {name or '(none)'!r}; "
                "list it in GROUNDWORK_ALLOWED_HOSTS if it is yours"
            )

    def _check_origin(self, headers: Headers) -> None:
        """A browser names the page that asks; programs name none. Only our own pages, and listed ones, may change anything."""
        origin = headers.get("origin")
        if origin is not None:
            parts = urlsplit(origin)
            own = parts.scheme in {"http", "https"} and parts.netloc.lower() == headers.get("host", "").lower()
            own = own or origin in self._origins
        else:
            own = headers.get("sec-fetch-site", "none") in _OWN_SITE
        if not own:
            raise CrossOrigin(
                "a page of another site may not change anything here; use the console, call without a browser, or have the "
                "operator list the page's origin in GROUNDWORK_CORS_ORIGINS"
            )

    async def _bounded(self, headers: Headers, receive: Receive, body_types: Collection[str]) -> Receive:
        """Reads the body, which is small by rule, and returns a `receive` that hands it out. The whole body has one deadline: with
        one for each piece a client could send a byte a second."""
        try:
            async with asyncio.timeout(self._body_timeout_s):
                return await self._read(headers, receive, body_types)
        except TimeoutError as error:
            raise RequestBodyTimeout(
                f"the request body was not complete within {self._body_timeout_s:g} s; send it in one go"
            ) from error

    async def _read(self, headers: Headers, receive: Receive, body_types: Collection[str]) -> Receive:
        too_large = BodyTooLarge(f"the request body is over {self._max_json_bytes} bytes; send less")
        if int(headers.get("content-length") or 0) > self._max_json_bytes:
            raise too_large
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return _replay(message, receive)
            body += message.get("body", b"")
            if len(body) > self._max_json_bytes:
                raise too_large
            if not message.get("more_body", False):
                break
        if body and headers.get("content-type", "").partition(";")[0].strip().lower() not in body_types:
            raise UnsupportedContentType(
                f"the request body is not what it should be; send it with Content-Type: {' or '.join(body_types)}"
            )
        return _replay({"type": "http.request", "body": bytes(body), "more_body": False}, receive)


def _body_types(scope: Scope) -> Sequence[str]:
    if scope["path"] == _FORM_PATH:
        return ["application/x-www-form-urlencoded"]
    json = ["application/json"]
    return ["application/scim+json", *json] if scope["path"].startswith(_SCIM_PATH) else json


def _check_path(scope: Scope) -> None:
    """Only names of models have a slash in a path of ours, yet routes are matched with the path decoded, and their `$` also matches
    before a line break at the end: `runs%2F<id>%2Fcancel` and `cancel%0A` would be taken for `cancel`, past a stricter proxy.
    """
    raw = scope["raw_path"].lower()
    if scope.get("method") == "GET" and raw.startswith(_SLASHED_MODEL):
        raw = raw.removeprefix(_SLASHED_MODEL)
    if b"%2f" in raw or scope["path"].endswith("\n"):
        raise RouteNotFound(f"there is nothing at {scope['path']!r}; the routes are listed in /openapi.json")


def _refuse_websocket(scope: Scope, headers: Headers) -> None:
    """Where no route serves one, the server hands the handshake on as a plain GET."""
    is_asked = scope["type"] == "websocket" or "websocket" in headers.get("upgrade", "").lower()
    if is_asked and not (scope["type"] == "websocket" and scope["path"] in WEBSOCKET_PATHS):
        raise WebSocketNotServed(
            f"no WebSocket is opened here; they are at {', '.join(sorted(WEBSOCKET_PATHS))}. Elsewhere send a plain HTTP request, "
            "with Accept: text/event-stream for a stream"
        )


def _is_upload(scope: Scope) -> bool:
    parts = scope["path"].strip("/").split("/")
    return scope["method"] == "POST" and (
        parts == _FILES_PATH
        or (
            len(parts) == len(_UPLOAD_PATH)
            and all(expected in (None, part) for part, expected in zip(parts, _UPLOAD_PATH, strict=True))
        )
    )


def _replay(first: Message, receive: Receive) -> Receive:
    pending = [first]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed
