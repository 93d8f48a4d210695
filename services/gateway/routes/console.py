"""The console: one static page and its modules, read once at start and served from memory with their hashes as ETags."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing from elsewhere, nothing inline, no string ever becomes markup."""

CALLBACK_PATH = "/tool-servers/callback"
"""Where an authorization server sends the browser of who logs in at an MCP server."""


@dataclass(frozen=True)
class Asset:
    """One file of the console."""

    content: bytes
    media_type: str
    etag: str


def load_assets(directory: Path) -> dict[str, Asset]:
    """Every file of the console by its name."""
    assets = {}
    for path in sorted(directory.iterdir()):
        if media_type := _MEDIA_TYPES.get(path.suffix):
            assets[path.name] = asset_of(path, media_type)
    return assets


def asset_of(path: Path, media_type: str) -> Asset:
    """The file as it is now."""
    content = path.read_bytes()
    return Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def console_router(assets: dict[str, Asset]) -> APIRouter:
    """`/`, `/console/<file>` and the page at which a login ends. Not part of the API, hence not in its document."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return answer(assets["index.html"], request)

    @router.api_route(CALLBACK_PATH, methods=["GET", "HEAD"])
    async def callback(request: Request) -> Response:
        return answer(assets["callback.html"], request)

    @router.api_route("/favicon.ico", methods=["GET", "HEAD"])
    async def favicon(request: Request) -> Response:
        return answer(assets["icon.svg"], request)

    @router.api_route("/console/{name}", methods=["GET", "HEAD"])
    async def asset(name: str, request: Request) -> Response:
        if name not in assets:
            raise HTTPException(404)
        return answer(assets[name], request)

    return router


def answer(asset: Asset, request: Request, policy: str = _POLICY) -> Response:
    """The file, or that the client's copy is still good."""
    # no-cache means "ask before use": an update is seen at once, an unchanged file costs one empty answer.
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache", "Content-Security-Policy": policy}
    if asset.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)
