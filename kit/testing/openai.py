"""A scripted OpenAI-compatible server over real HTTP: tests say what the model says, how fast, and how it fails. What it sends for
a plain reply is what vLLM and llama.cpp send: a chunk a piece, one with the reason, one with the usage, then [DONE]."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from kit.testing.harness import free_port


@dataclass
class Reply:
    """What the next completion does: sends `pieces`, `pause_s` apart, waiting for `gate` before the piece of index `gate_at`;
    breaks the connection after `break_after` pieces; or answers with `status` at once.

    A piece is text, or a whole `delta` as a mapping, or raw bytes that are sent as they are.
    """

    pieces: Sequence[str | Mapping[str, Any] | bytes] = ()
    status: int = 200
    gate: asyncio.Event | None = None
    gate_at: int = 0
    break_after: int | None = None
    pause_s: float = 0.0
    finish_reason: str | None = "stop"
    """None: the stream ends without a reason."""

    usage: Mapping[str, Any] | None = None
    """Instead of 10 tokens of prompt and one a piece; empty: none is sent."""

    done: bool = True
    """Whether [DONE] is sent."""

    endless: bool = False
    """Begins again with the first piece, for ever."""

    body: str | None = None
    """Answer with this body, of `content_type`, instead of a stream."""

    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class ScriptedModel:
    """The server's script. Replies are used in order; the last one repeats. `requests` holds what was asked."""

    replies: list[Reply]
    reply_to: Callable[[Mapping[str, Any]], Reply] | None = None
    """Chooses the reply by the request instead, for clients that ask again or beside each other."""

    base_url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closed the connection before the reply had ended."""

    models: Sequence[Mapping[str, Any]] = ()
    """What GET /v1/models lists. Empty: there is no such path."""

    pages: dict[str, Any] = field(default_factory=dict)
    """JSON at further paths, from the server's root on."""

    tokenize: Callable[[Mapping[str, Any]], Any] | None = None
    """Answers POST /tokenize. None: there is no such path."""

    tokenized: list[dict[str, Any]] = field(default_factory=list)

    async def complete(self, request: Request) -> Response:
        asked = await request.json()
        self.requests.append(asked)
        self.headers.append(dict(request.headers))
        reply = self._next() if self.reply_to is None else self.reply_to(asked)
        if reply.body is not None:
            return Response(reply.body, reply.status, reply.headers, reply.content_type)
        if reply.status != 200:
            failure = {"error": {"message": "scripted failure"}}
            return JSONResponse(failure, status_code=reply.status, headers=reply.headers)
        return StreamingResponse(self._events(reply), media_type="text/event-stream")

    def _next(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    async def page(self, request: Request) -> Response:
        """Whatever is not a completion."""
        path = request.url.path
        if path == "/v1/models" and self.models:
            return JSONResponse({"object": "list", "data": list(self.models)})
        if path == "/tokenize" and self.tokenize is not None:
            body = await request.json()
            self.tokenized.append(body)
            return JSONResponse(self.tokenize(body))
        if path in self.pages:
            return JSONResponse(self.pages[path])
        return JSONResponse({"detail": "Not Found"}, status_code=404)

    async def _events(self, reply: Reply) -> AsyncIterator[str | bytes]:
        try:
            while True:
                async for event in self._pieces(reply):
                    yield event
                if not reply.endless:
                    break
            if reply.finish_reason is not None:
                yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}]})
            usage = _usage(len(reply.pieces)) if reply.usage is None else reply.usage
            if usage:
                yield _event({"choices": [], "usage": usage})
            if reply.done:
                yield "data: [DONE]\n\n"
        except (asyncio.CancelledError, GeneratorExit):
            self.hung_up.set()
            raise

    async def _pieces(self, reply: Reply) -> AsyncIterator[str | bytes]:
        for index, piece in enumerate(reply.pieces):
            if reply.gate is not None and index == reply.gate_at:
                await reply.gate.wait()
            if reply.break_after == index:
                raise ConnectionError("scripted break")
            await asyncio.sleep(reply.pause_s)
            yield piece if isinstance(piece, bytes) else piece_event(piece)


def piece_event(piece: str | Mapping[str, Any]) -> str:
    """The event of one piece: text, or a whole delta."""
    delta = {"content": piece} if isinstance(piece, str) else piece
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _usage(completion_tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 10, "completion_tokens": completion_tokens, "total_tokens": 10 + completion_tokens}


def _event(body: dict[str, Any]) -> str:
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", **body}
    return f"data: {json.dumps(chunk)}\n\n"


@asynccontextmanager
async def scripted_model(*replies: Reply, host: str = "127.0.0.1") -> AsyncIterator[ScriptedModel]:
    """Serves the script on a free port of an address of this machine; `base_url` of what is yielded ends in /v1."""
    model = ScriptedModel(list(replies))
    port = free_port()
    routes = [
        Route("/v1/chat/completions", model.complete, methods=["POST"]),
        Route("/{path:path}", model.page, methods=["GET", "POST"]),
    ]
    app = Starlette(routes=routes)
    server = uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="critical", lifespan="off"))
    model.base_url = f"http://{host}:{port}/v1"
    task = asyncio.create_task(server._serve())
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn offers no event to await
            await asyncio.sleep(0.01)
        yield model
    finally:
        server.should_exit = server.force_exit = True
        await task
