"""The public API as far as an evaluation needs it, in memory: keeps documents, finds those that share most words with the query."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx

from cli.client.gateway import Gateway

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
URL = "http://groundwork.test"


class EventStream(httpx.AsyncByteStream):
    """Present states first, then each change, as `GET /v1/events` does. Breaks off after `breaks_after` events."""

    def __init__(self, api: "FakeApi", breaks_after: int | None) -> None:
        self._api = api
        self._left = breaks_after

    async def __aiter__(self) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._api.listeners.append(queue)
        for document in self._api.documents.values():
            queue.put_nowait(document)
        while self._left is None or self._left > 0:
            document = await queue.get()
            if self._left is not None:
                self._left -= 1
            yield f"event: document\ndata: {json.dumps(document)}\n\n".encode()
        raise httpx.ReadError("the connection was reset")


@dataclass
class FakeApi:
    """`failing` are names that fail; `stuck` stay queued; `refuses` are search options that are answered with 422."""

    failing: frozenset[str] = frozenset()
    stuck: frozenset[str] = frozenset()
    refuses: frozenset[str] = frozenset()
    degraded: bool = False
    stream_breaks_after: int | None = None
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    collections: set[str] = field(default_factory=set)
    searches: list[dict[str, Any]] = field(default_factory=list)
    listeners: list["asyncio.Queue[dict[str, Any]]"] = field(default_factory=list)
    _clock: "count[int]" = field(default_factory=lambda: count(1))

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[Gateway]:
        async with httpx.AsyncClient(base_url=URL, transport=httpx.MockTransport(self.handle)) as http:
            yield Gateway(URL, http)

    async def handle(self, request: httpx.Request) -> httpx.Response:
        match request.method, request.url.path.split("/")[2:]:
            case "POST", ["collections"]:
                return self._create(json.loads(request.content)["id"])
            case "DELETE", ["collections", collection_id]:
                self.collections.discard(collection_id)
                return httpx.Response(204)
            case "POST", ["collections", _, "documents"]:
                return self._upload(await request.aread())
            case "GET", ["events"]:
                # Broken once: the second stream lives.
                stream, self.stream_breaks_after = EventStream(self, self.stream_breaks_after), None
                return httpx.Response(200, stream=stream)
            case "POST", ["search"]:
                return self._search(json.loads(request.content))
        return httpx.Response(404)

    def _create(self, collection_id: str) -> httpx.Response:
        if collection_id in self.collections:
            return httpx.Response(409, json={"detail": "it exists"})
        self.collections.add(collection_id)
        return httpx.Response(201, json={"id": collection_id})

    def _upload(self, form: bytes) -> httpx.Response:
        found = re.search(rb'filename="([^"]+)".*?\r\n\r\n(.*)\r\n--', form, re.DOTALL)
        assert found
        name, text = found[1].decode(), found[2].decode()
        if self.texts.get(name) == text:
            return httpx.Response(202, json={"document": self.documents[name]})
        self.texts[name] = text
        queued = self._change(name, "queued")
        if name not in self.stuck:
            asyncio.get_running_loop().call_soon(self._change, name, "failed" if name in self.failing else "ready")
        return httpx.Response(202, json={"document": queued})

    def _change(self, name: str, status: str) -> dict[str, Any]:
        error = {"reason": "EMPTY", "message": "there is no text in it"} if status == "failed" else None
        self.documents[name] = {
            "id": f"id-{name}",
            "name": name,
            "status": status,
            "error": error,
            "report": {"chunk_count": 2},
            # Whole seconds come without a fraction, as pydantic writes them: their text sorts differently.
            "updated_at": (_EPOCH + timedelta(milliseconds=500 * next(self._clock))).isoformat(),
        }
        for queue in self.listeners:
            queue.put_nowait(self.documents[name])
        return self.documents[name]

    def _search(self, body: dict[str, Any]) -> httpx.Response:
        self.searches.append(body)
        if refused := self.refuses.intersection(body):
            return httpx.Response(
                422, json={"detail": f"unknown option {', '.join(refused)}", "reason": "INVALID_REQUEST"}
            )
        wanted = set(re.findall(r"\w+", body["query"].lower()))
        shared = {name: len(wanted & set(re.findall(r"\w+", text.lower()))) for name, text in self.texts.items()}
        ranked = [name for name in sorted(shared, key=lambda each: -shared[each]) if shared[name]]
        hits = [{"document_name": name} for name in ranked for _ in range(2)][: body["top_k"]]
        return httpx.Response(200, json={"hits": hits, "degraded": [{"part": "dense"}] if self.degraded else []})
