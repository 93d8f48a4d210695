"""A small server that speaks the HTTP API's shapes, scripted by each test, and the command against it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.main import app


def event(kind: str, data: dict[str, Any], seq: int | None = None) -> bytes:
    """One server-sent event."""
    head = f"id: {seq}\n" if seq is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def run_event(kind: str, seq: int, **data: Any) -> bytes:
    """One event of run r1."""
    return event(kind, {"run_id": "r1", "seq": seq, "at": "2026-01-01T00:00:00.000Z", **data}, seq)


class Handler(BaseHTTPRequestHandler):
    """Finds the test's function for a method and path."""

    fake: FakeServer

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        self.body = self.rfile.read(length)
        path = self.path.partition("?")[0]
        self.fake.requests.append((self.command, self.path, self.body))
        route = self.fake.routes.get((self.command, path))
        if route is None:
            self.problem(404, "ROUTE_NOT_FOUND", f"there is nothing at {path}")
        else:
            route(self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do  # noqa: N815 - the names that http.server calls

    def json(self, value: Any, status: int = 200) -> None:
        """A JSON answer."""
        self.content(json.dumps(value).encode(), status, "application/json")

    def tagged(self, value: Any, etag: str) -> None:
        """A JSON answer with its etag."""
        self.content(json.dumps(value).encode(), 200, "application/json", {"ETag": etag})

    def content(
        self,
        body: bytes,
        status: int = 200,
        media_type: str = "text/markdown",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Any answer."""
        self.send_response(status)
        for name, each in headers.items():
            self.send_header(name, each)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def problem(self, status: int, reason: str, detail: str) -> None:
        """An error as the API words it."""
        self.json({"status": status, "reason": reason, "detail": detail, "code": "X"}, status)

    def stream(self, *events: bytes) -> None:
        """An event stream that ends, and with it the connection, after these."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("x-run-id", "r1")
        self.end_headers()
        for each in events:
            self.wfile.write(each)
            self.wfile.flush()


@dataclass
class FakeServer:
    """The server, its routes and what was asked of it."""

    url: str = ""
    routes: dict[tuple[str, str], Callable[[Handler], None]] = field(default_factory=dict)
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)

    def on(self, method: str, path: str, route: Callable[[Handler], None]) -> None:
        self.routes[(method, path)] = route

    def asked(self, method: str) -> list[str]:
        return [path for each, path, _ in self.requests if each == method]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    handler = type("BoundHandler", (Handler,), {"fake": fake})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    fake.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


@pytest.fixture
def groundwork(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("GROUNDWORK_URL", server.url)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), catch_exceptions=False)

    return run
