"""A scripted OpenAI-compatible server over real HTTP: tests say what the model says, how fast, and how it fails."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
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
    breaks the connection after `break_after` pieces; or answers with `status` at once."""

    pieces: Sequence[str] = ()
    status: int = 200
    gate: asyncio.Event | None = None
    gate_at: int = 0
    break_after: int | None = None
    pause_s: float = 0.0


@dataclass
class ScriptedModel:
    """The server's script. Replies are used in order; the last one repeats. `requests` holds what was asked."""

    replies: list[Reply]
    base_url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closed the connection before the reply had ended."""

    async def complete(self, request: Request) -> Response:
        self.requests.append(await request.json())
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if reply.status != 200:
            return JSONResponse({"error": {"message": "scripted failure"}}, status_code=reply.status)
        return StreamingResponse(self._events(reply), media_type="text/event-stream")

    async def _events(self, reply: Reply) -> AsyncIterator[str]:
        try:
            for index, piece in enumerate(reply.pieces):
                if reply.gate is not None and index == reply.gate_at:
                    await reply.gate.wait()
                if reply.break_after == index:
                    raise ConnectionError("scripted break")
                await asyncio.sleep(reply.pause_s)
                yield _event({"choices": [{"index": 0, "delta": {"content": piece}}]})
            yield _event({"choices": [], "usage": _usage(len(reply.pieces))})
            yield "data: [DONE]\n\n"
        except (asyncio.CancelledError, GeneratorExit):
            self.hung_up.set()
            raise


def _usage(completion_tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 10, "completion_tokens": completion_tokens, "total_tokens": 10 + completion_tokens}


def _event(body: dict[str, Any]) -> str:
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", **body}
    return f"data: {json.dumps(chunk)}\n\n"


@asynccontextmanager
async def scripted_model(*replies: Reply) -> AsyncIterator[ScriptedModel]:
    """Serves the script on a free port; `base_url` of what is yielded ends in /v1."""
    model = ScriptedModel(list(replies))
    port = free_port()
    app = Starlette(routes=[Route("/v1/chat/completions", model.complete, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical", lifespan="off"))
    model.base_url = f"http://127.0.0.1:{port}/v1"
    task = asyncio.create_task(server._serve())
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn offers no event to await
            await asyncio.sleep(0.01)
        yield model
    finally:
        server.should_exit = server.force_exit = True
        await task
