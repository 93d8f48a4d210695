"""An MCP server that wants a login, with its authorization server, over loopback: registration, code with PKCE, resource indicator,
tokens that end and are renewed once. It refuses whatever the specification has it refuse."""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kit.testing.harness import free_port


@dataclass
class Protected:
    """The two servers, and what they were told."""

    port: int
    lasts_s: int = 3600
    """Of access tokens."""
    registered: dict[str, dict[str, Any]] = field(default_factory=dict)
    secret: str = ""
    """Of a client that must show one."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: set[str] = field(default_factory=set)
    renewable: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)
    """Forms that came to the token endpoint."""
    revoked: list[str] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    """The token endpoint waits for it."""

    def __post_init__(self) -> None:
        self.may_answer.set()

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.issuer}/mcp"

    def log_in(self, address: str) -> dict[str, str]:
        """What a person's browser brings back from the address."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        client = self.registered[asked["client_id"]]
        assert asked["redirect_uri"] in client["redirect_uris"]
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert asked["resource"] == self.url
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.issuer}

    def resource(self, _: Request) -> Response:
        return JSONResponse({"resource": self.url, "authorization_servers": [self.issuer], "scopes_supported": ["crm"]})

    def metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "revocation_endpoint": f"{self.issuer}/revoke",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_post", "none"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def register(self, request: Request) -> Response:
        client_id = secrets.token_hex(8)
        self.registered[client_id] = {**await request.json(), "client_id": client_id}
        return JSONResponse({**self.registered[client_id], "token_endpoint_auth_method": "none"}, status_code=201)

    async def token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.asked.append(form)
        is_client = form["client_id"] in self.registered and form.get("client_secret", "") == self.secret
        if not is_client or form.get("resource") != self.url or not self._is_granted(form):
            return JSONResponse({"error": "invalid_grant", "error_description": form.get("code", "")}, status_code=400)
        access, renewing = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access.add(access)
        self.renewable.add(renewing)
        await self.may_answer.wait()
        told = {"access_token": access, "token_type": "Bearer", "expires_in": self.lasts_s, "refresh_token": renewing}
        return JSONResponse(told)

    async def revoke(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        assert form["client_id"] in self.registered
        self.revoked.append(form["token"])
        for tokens in (self.access, self.renewable):
            tokens.discard(form["token"])
        return Response()

    def _is_granted(self, form: dict[str, str]) -> bool:
        if form["grant_type"] == "refresh_token":
            is_good = form["refresh_token"] in self.renewable
            self.renewable.discard(form["refresh_token"])
            return is_good
        asked = self.codes.pop(form["code"], {})
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        )
        return bool(asked) and asked["code_challenge"] == challenge and asked["redirect_uri"] == form["redirect_uri"]

    def guarding(self, app: ASGIApp) -> ASGIApp:
        """`app` for who shows an access token."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            shown = Request(scope).headers.get("authorization", "").removeprefix("Bearer ")
            if shown in self.access:
                await app(scope, receive, send)
                return
            where = f'Bearer resource_metadata="{self.issuer}/.well-known/oauth-protected-resource/mcp"'
            await Response(status_code=401, headers={"WWW-Authenticate": where})(scope, receive, send)

        return guarded


@asynccontextmanager
async def protected() -> AsyncIterator[Protected]:
    """Serves while the block runs. Its tool `find` repeats the access tokens."""
    servers = Protected(free_port())
    tools = MCPServer[Any]("crm")

    @tools.tool()
    def find(text: str) -> str:
        """Finds a customer."""
        return f"found {text}; tokens: {' '.join(servers.access)}"

    inner = tools.streamable_http_app()
    app = Starlette(
        routes=[
            Route("/.well-known/oauth-protected-resource/mcp", servers.resource),
            Route("/.well-known/oauth-authorization-server", servers.metadata),
            Route("/register", servers.register, methods=["POST"]),
            Route("/token", servers.token, methods=["POST"]),
            Route("/revoke", servers.revoke, methods=["POST"]),
            Mount("/", servers.guarding(inner)),
        ]
    )
    config = uvicorn.Config(app, port=servers.port, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    async with tools.session_manager.run():
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield servers
        finally:
            server.should_exit = True
            await serving
