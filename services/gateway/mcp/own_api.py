"""The gateway's own HTTP API, called in process in the name of the client of an MCP request. A tool therefore has the limits, the
scopes, the checks and the audit lines of its route, and nothing of its own."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Scope

from services.gateway.models import Json

_PASSED_ON = (b"host", b"authorization", b"x-api-key")
"""Headers by which the gateway knows its client."""
_PIECES_AHEAD = 64


class Refused(Exception):
    """The API refused a request."""

    def __init__(self, status: int, problem: Json) -> None:
        detail = problem.get("detail") or "the request was refused"
        reason = problem.get("reason")
        super().__init__(f"{detail} ({reason})" if reason else str(detail))
        self.status = status


@dataclass(frozen=True)
class ApiRequest:
    """A request to the API."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def scope(self, client: Request) -> Scope:
        """The ASGI scope of the request, from the same client."""
        own = {"content-type": self.media_type, "content-length": str(len(self.body)), **self.headers}
        passed_on = [(name, value) for name, value in client.scope["headers"] if name in _PASSED_ON]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": client.scope.get("scheme", "http"),
            "path": self.path,
            "raw_path": quote(self.path).encode(),
            "query_string": urlencode(self.query, doseq=True).encode(),
            "root_path": "",
            "headers": [*passed_on, *((name.encode(), value.encode()) for name, value in own.items())],
            "client": client.scope.get("client"),
            "server": client.scope.get("server"),
        }


@dataclass(frozen=True)
class RunUpdate:
    """An event of a run's stream."""

    kind: str
    data: Json


class OwnApi:
    """Calls `app`, which is the whole gateway with all its layers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def json(
        self, client: Request, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None
    ) -> Json:
        """The answer as JSON. Raises Refused."""
        sent = b"" if body is None else json.dumps(body).encode()
        return await self.parsed(client, ApiRequest(method, path, query or {}, sent))

    async def parsed(self, client: Request, asked: ApiRequest) -> Json:
        """The answer to any request as JSON. Raises Refused."""
        content, _ = await self.content(client, asked)
        answer: Json = json.loads(content) if content else {}
        return answer

    async def content(self, client: Request, asked: ApiRequest) -> tuple[bytes, str]:
        """The bytes of the answer and their media type. Raises Refused."""
        async with self._exchange(client, asked) as answer:
            await _require_success(answer)
            return await answer.whole(), answer.headers.get("content-type", "")

    @asynccontextmanager
    async def events(self, client: Request, asked: ApiRequest) -> AsyncGenerator[AsyncGenerator[RunUpdate, None], None]:
        """A run's events as they come. Leaving the block hangs up, which stops no run. Raises Refused."""
        streamed = ApiRequest(
            asked.method, asked.path, asked.query, asked.body, headers={"accept": "text/event-stream", **asked.headers}
        )
        async with self._exchange(client, streamed) as answer:
            await _require_success(answer)
            async with aclosing(_read(answer)) as events:
                yield events

    @asynccontextmanager
    async def _exchange(self, client: Request, asked: ApiRequest) -> AsyncGenerator["_Answer", None]:
        answer = _Answer(asked.body)
        task = asyncio.create_task(self._run(asked.scope(client), answer))
        task.add_done_callback(answer.end)
        try:
            await answer.begun.wait()
            yield answer
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, scope: Scope, answer: "_Answer") -> None:
        await self._app(scope, answer.receive, answer.send)


class _Answer:
    """The other side of an exchange: hands out the request's body, and takes the answer in."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_PIECES_AHEAD)
        self._is_ended = False
        self.begun = asyncio.Event()
        self.status = 500
        self.headers: dict[str, str] = {}

    async def receive(self) -> Message:
        if self._body is None:
            await asyncio.get_running_loop().create_future()  # the client hangs up by cancelling
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode("latin-1") for name, value in message["headers"]}
            self.begun.set()
            return
        if body := message.get("body", b""):
            await self._pieces.put(bytes(body))
        if not message.get("more_body", False):
            await self._pieces.put(None)

    def end(self, _: asyncio.Task[None]) -> None:
        """The application is done, well or badly."""
        self._is_ended = True
        self.begun.set()
        if self._pieces.empty():  # the reader waits
            self._pieces.put_nowait(None)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        while not (self._is_ended and self._pieces.empty()):
            piece = await self._pieces.get()
            if piece is None:
                return
            yield piece

    async def whole(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])


async def _require_success(answer: _Answer) -> None:
    if answer.status < 400:
        return
    try:
        problem: Json = json.loads(await answer.whole())
    except ValueError:
        problem = {}
    raise Refused(answer.status, problem)


async def _read(answer: _Answer) -> AsyncGenerator[RunUpdate, None]:
    """The events of our own encoder, which writes `data` as one line of JSON."""
    rest = b""
    async for piece in answer.pieces():
        *events, rest = (rest + piece).split(b"\n\n")
        for event in events:
            fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line)
            if b"event" in fields and b"data" in fields:
                yield RunUpdate(fields[b"event"].decode(), json.loads(fields[b"data"]))
