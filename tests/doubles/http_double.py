"""What the doubles of HTTP servers share: they listen on loopback, remember each request, and fail on demand."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

LOOPBACK = "127.0.0.1"
OTHER_LOOPBACK = "127.0.0.2"
"""Some clients treat localhost and 127.0.0.1 unlike every other address, so that a fault elsewhere is not seen there."""


@dataclass(frozen=True)
class Recorded:
    """A request as it arrived. `body` is decoded JSON, a list of it for NDJSON, the fields of a form, None when there was none."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Failure:
    """Instead of an answer: the next request whose "METHOD path" contains `request` gets this."""

    request: str
    status: int
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpDouble(ABC):
    """Base of the doubles. Subclasses answer in `respond`."""

    content_type = "application/json"

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Recorded] = []
        self.failures: list[Failure] = []

    @abstractmethod
    async def respond(self, request: Recorded) -> web.Response: ...

    def asked(self, method: str, path_end: str) -> list[Recorded]:
        """The requests of this method whose path ends so."""
        return [request for request in self.requests if request.method == method and request.path.endswith(path_end)]

    def answer(self, status: int, body: Any, **headers: str) -> web.Response:
        """JSON, or text as it is."""
        text = body if isinstance(body, str) else json.dumps(body)
        content_type = {"content-type": self.content_type}
        return web.Response(text=text, status=status, headers=content_type | headers)

    async def _handle(self, request: web.Request) -> web.Response:
        raw = await request.text()
        is_lines = "ndjson" in request.headers.get("content-type", "")
        is_form = "x-www-form-urlencoded" in request.headers.get("content-type", "")
        body: Any = [json.loads(line) for line in raw.split("\n") if line] if is_lines else None
        if not is_lines and raw:
            body = dict(parse_qsl(raw)) if is_form else json.loads(raw)
        recorded = Recorded(request.method, request.path, dict(request.query), request.headers, body or None)
        self.requests.append(recorded)
        for failure in self.failures:
            if failure.request in f"{recorded.method} {recorded.path}":
                self.failures.remove(failure)
                return self.answer(failure.status, failure.body, **failure.headers)
        return await self.respond(recorded)

    @asynccontextmanager
    async def running(self, host: str = LOOPBACK) -> AsyncIterator[None]:
        """Serves on a free port of `host`; `url` is where. The test is skipped on a machine that lacks the other address."""
        app = web.Application(client_max_size=100_000_000)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)  # one that hangs is not waited for
        await runner.setup()
        try:
            await web.TCPSite(runner, host, 0).start()
        except OSError:
            await runner.cleanup()
            if host == LOOPBACK:
                raise
            pytest.skip(f"this machine has no address {host}")
        self.url = f"http://{host}:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()
