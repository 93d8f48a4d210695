"""A scripted model API over real HTTP on loopback: OpenAI, text-embeddings-inference, Cohere and Jina by their paths."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kit.testing.harness import free_port


@dataclass
class ModelApi:
    """Answers well unless `failures` holds an answer to give instead. `requests` holds path and body of all that was asked."""

    failures: list[Response] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)
    base_url: str = ""
    gate: asyncio.Event | None = None

    async def answer(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append((request.url.path, body))
        self.authorization.append(request.headers.get("authorization"))
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            return self.failures.pop(0)
        return JSONResponse(_right_answer(request.url.path, body))


def _right_answer(path: str, body: dict[str, Any]) -> Any:
    if path == "/v1/embeddings":
        data = [{"index": i, "embedding": vector(text)} for i, text in enumerate(body["input"])]
        return {"data": data[::-1], "usage": {"prompt_tokens": 10 * len(data)}}
    if path == "/embed":
        return [vector(text) for text in body["inputs"]]
    passages = body["texts"] if path == "/rerank" else body["documents"]
    key = "score" if path == "/rerank" else "relevance_score"
    scored = [{"index": i, key: len(text) / 100} for i, text in enumerate(passages)]
    best_first = sorted(scored, key=lambda result: -result[key])
    return best_first if path == "/rerank" else {"results": best_first}


def vector(text: str) -> list[float]:
    """Three numbers, not of length one."""
    return [float(len(text)), 2.0, 0.0]


@asynccontextmanager
async def model_api() -> AsyncIterator[ModelApi]:
    """Serves on a free port until the block ends."""
    api = ModelApi()
    port = free_port()
    paths = ("/v1/embeddings", "/embed", "/v2/rerank", "/v1/rerank", "/rerank")
    app = Starlette(routes=[Route(path, api.answer, methods=["POST"]) for path in paths])
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical", lifespan="off"))
    api.base_url = f"http://127.0.0.1:{port}"
    task = asyncio.create_task(server._serve())
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield api
    finally:
        server.should_exit = server.force_exit = True
        await task
