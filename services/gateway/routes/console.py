"""The console: a page and what it loads, as `make console` builds them. Where it is not built, a page says how to build it."""

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

PAGES = (
    "conversations",
    "passages",
    "documents",
    "sources",
    "connections",
    "decisions",
    "memory",
    "search",
    "operating",
)
"""First words of paths that the page shows by itself; console/src/router.tsx has the same."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types groundwork"
)
"""Nothing from elsewhere, nothing inline, no string becomes markup. The policy named here makes the address of a worker."""
_FRAME_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; "
    "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Of the frame that draws diagrams: what draws them writes styles, so it lives without an origin, a connection and our page."""
_FRAME = "diagram.html"
_FOR_EVER = "public, max-age=31536000, immutable"
_BEFORE_USE = "no-cache"
_NOT_BUILT = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Groundwork</title>
<h1>The console is not built</h1>
<p>Groundwork runs, and its HTTP API and command line work. To have the console, run <code>make console</code> in the folder of
Groundwork, which needs the package registries of Python and npm, and start Groundwork again.</p>
"""

CALLBACK_PATH = "/tool-servers/callback"
"""Where an authorization server sends the browser of who logs in at an MCP server."""


@dataclass(frozen=True)
class Asset:
    """One small file that is served from memory."""

    content: bytes
    media_type: str
    etag: str


@dataclass(frozen=True)
class Console:
    """The page, the frame, and the files that they load by their paths; no files where the console is not built."""

    index: Asset
    frame: Asset | None
    files: dict[str, Path]


def load_console(directory: Path) -> Console:
    """What was built into that folder."""
    index = directory / "index.html"
    if not index.is_file():
        return Console(Asset(_NOT_BUILT, "text/html; charset=utf-8", '"not-built"'), None, {})
    files = {path.relative_to(directory).as_posix(): path for path in sorted(directory.rglob("*")) if path.is_file()}
    return Console(
        asset_of(index, "text/html; charset=utf-8"), asset_of(directory / _FRAME, "text/html; charset=utf-8"), files
    )


def asset_of(path: Path, media_type: str) -> Asset:
    """The file as it is now."""
    content = path.read_bytes()
    return Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def console_router(console: Console) -> APIRouter:
    """`/`, the pages and `/console/<file>`. Not part of the API, hence not in its document."""
    router = APIRouter(include_in_schema=False)

    async def index(request: Request) -> Response:
        return answer(console.index, request)

    for path in ("/", CALLBACK_PATH, *(f"/{page}" for page in PAGES), *(f"/{page}/{{rest:path}}" for page in PAGES)):
        router.add_api_route(path, index, methods=["GET", "HEAD"])

    @router.api_route("/favicon.ico", methods=["GET", "HEAD"])
    async def favicon(request: Request) -> Response:
        return _file(console.files, "icon.svg", request)

    @router.api_route("/console/{name:path}", methods=["GET", "HEAD"])
    async def file(name: str, request: Request) -> Response:
        if name == _FRAME and console.frame:
            return answer(console.frame, request, _FRAME_POLICY, {"X-Frame-Options": "SAMEORIGIN"})
        return _file(console.files, name, request)

    return router


def answer(asset: Asset, request: Request, policy: str = _POLICY, more: dict[str, str] | None = None) -> Response:
    """The file, or that the client's copy is still good."""
    # no-cache means "ask before use": an update is seen at once, an unchanged file costs one empty answer.
    headers = {"ETag": asset.etag, "Cache-Control": _BEFORE_USE, "Content-Security-Policy": policy, **(more or {})}
    if asset.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)


def _file(files: dict[str, Path], name: str, request: Request) -> Response:
    """A file beside the page, compressed where it was built so and the client takes it."""
    if name not in files or name.endswith((".html", ".gz")):
        raise HTTPException(404)
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    headers = {
        # Names in this folder have the hash of their content.
        "Cache-Control": _FOR_EVER if name.startswith("assets/") else _BEFORE_USE,
        "Content-Security-Policy": _POLICY,
        "Vary": "Accept-Encoding",
        # The frame has no origin, so that it loads its modules as another site would. They are the same for everybody.
        "Access-Control-Allow-Origin": "*",
    }
    compressed = files.get(f"{name}.gz")
    if compressed and "gzip" in request.headers.get("accept-encoding", ""):
        return FileResponse(compressed, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})
    return FileResponse(files[name], media_type=media_type, headers=headers)
