"""People at work while something happens to the system: two ask and two upload, each one request after the other. One of each two
keeps its connection, the other takes a fresh one each time. None tries anything again: what fails has failed."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

from cli.client.sse import Event, read_events

REQUEST_TIMEOUT_S = 120.0
SETTLE_TIMEOUT_S = 300.0
_POLL_S = 0.2
_LETTERS = "bcdfghjkmp"
_PAGE = 1000
FACT = "During probation the notice period is two weeks. It is four weeks after that."
_QUESTION = "During probation, how long is the notice period?"
"""Answered by words alone, too: while no model server answers, search by meaning is gone."""


@dataclass
class Tally:
    """What became of the requests."""

    seconds: list[float] = field(default_factory=list)
    """Of each request, to the last byte of its answer."""
    failures: list[str] = field(default_factory=list)
    answers: int = 0
    degraded: int = 0
    """Answers that say that they went without a part of the system."""
    read_on: int = 0
    """Streams that a gateway ended in good order before their answer was out, and that were read on from another."""
    uploads: dict[str, str] = field(default_factory=dict)
    """Of each acknowledged document the one word that no other has, and its id."""
    began_at: float = field(default_factory=time.perf_counter)

    @property
    def requests(self) -> int:
        return len(self.seconds)


class _Failed(Exception):
    """An answer that a user would not take for one."""


@asynccontextmanager
async def traffic(
    url: str, collection_id: str, headers: Mapping[str, str] | None = None, *, talks: bool = False
) -> AsyncIterator[Tally]:
    """Makes the collection, with a document to ask about, and has it used until the block ends; requests in hand are let end.
    `headers` go with each request: an API key, where one is asked for. With `talks` somebody chats too, in threads and with tools.
    """
    tally, enough, connect = Tally(), asyncio.Event(), _Connect(url, headers or {})
    async with connect() as client:
        (await client.post("/v1/collections", json={"id": collection_id})).raise_for_status()
        await _upload(client, collection_id, "handbook.txt", FACT)
        await _settled(client, collection_id)
    async with asyncio.TaskGroup() as group:
        for number, is_kept in enumerate((True, False)):
            for work in (_Asker(collection_id), _Uploader(collection_id, number)):
                group.create_task(_keep_on(work.request, connect, tally, enough, is_kept=is_kept))
        if talks:
            group.create_task(_keep_on(_talk, connect, tally, enough, is_kept=False))
        try:
            yield tally
        finally:
            enough.set()


async def lost_uploads(
    url: str, collection_id: str, tally: Tally, headers: Mapping[str, str] | None = None
) -> list[str]:
    """Acknowledged documents that do not become ready, or that a search for their word does not find."""
    async with _Connect(url, headers or {})() as client:
        ready = await _settled(client, collection_id)
        lost = [f"{word}: not ready" for word, document_id in tally.uploads.items() if document_id not in ready]
        for word, document_id in tally.uploads.items():
            body = {
                "query": word,
                "collection_ids": [collection_id],
                "strategy": "lexical",
                "rerank": "off",
                "top_k": 5,
            }
            hits = (await client.post("/v1/search", json=body)).raise_for_status().json()["hits"]
            if [hit["document_id"] for hit in hits if word in hit["text"]] != [document_id]:
                lost.append(f"{word}: not found once")
    return lost


@dataclass(frozen=True)
class _Connect:
    """Opens clients of one gateway."""

    url: str
    headers: Mapping[str, str]

    def __call__(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url, headers=dict(self.headers), timeout=REQUEST_TIMEOUT_S, trust_env=False
        )


_Request = Callable[[httpx.AsyncClient, Tally], Awaitable[None]]


async def _keep_on(request: _Request, connect: _Connect, tally: Tally, enough: asyncio.Event, *, is_kept: bool) -> None:
    while not enough.is_set():
        async with connect() as client:
            await _noted(request, client, tally)
            while is_kept and not enough.is_set():
                await _noted(request, client, tally)


async def _noted(request: _Request, client: httpx.AsyncClient, tally: Tally) -> None:
    began = time.perf_counter()
    try:
        await request(client, tally)
    except (httpx.HTTPError, _Failed) as error:
        ended = time.perf_counter()
        waited, at = f"after {ended - began:.2f} s", f"{ended - tally.began_at:.1f} s into the traffic"
        tally.failures.append(f"{type(error).__name__}: {error} ({waited}, {at})")
    tally.seconds.append(time.perf_counter() - began)


class _Asker:
    """Asks for answers in one piece and for streams of events, in turn."""

    def __init__(self, collection_id: str) -> None:
        self._collection_id = collection_id
        self._numbers = count(1)

    async def request(self, client: httpx.AsyncClient, tally: Tally) -> None:
        body = {"question": _QUESTION, "collection_ids": [self._collection_id]}
        if next(self._numbers) % 2:
            answer = _good(await client.post("/v1/qa", json=body)).json()
            text, degraded = str(answer["answer"]), bool(answer["degraded"])
        else:
            events = await _all_events(client, body, tally)
            text = next(str(event.data["text"]) for event in events if event.kind == "answer")
            degraded = any(event.data.get("degraded") for event in events if event.kind == "thinking")
        if "two weeks" not in text:
            raise _Failed(f"no answer: {text}")
        tally.answers += 1
        tally.degraded += degraded


class _Uploader:
    """Uploads one small document after the other."""

    def __init__(self, collection_id: str, number: int) -> None:
        self._collection_id = collection_id
        self._number = number
        self._numbers = count(1)

    async def request(self, client: httpx.AsyncClient, tally: Tally) -> None:
        digits = f"{self._number}{next(self._numbers):05d}"
        word = "zq" + "".join(_LETTERS[int(digit)] for digit in digits) + "ux"
        text = f"The mooring {word} lies in the harbour of Emden."
        tally.uploads[word] = await _upload(client, self._collection_id, f"mooring-{digits}.txt", text)


async def _talk(client: httpx.AsyncClient, _: Tally) -> None:
    """A thread, and in it a question that a tool answers."""
    thread = _good(await client.post("/v1/threads", json={})).json()
    body = {"message": "What is 12*7?", "thread_id": thread["id"]}
    answer = _good(await client.post("/v1/chat", json=body, headers={"accept": "application/json"})).json()
    if "84" not in answer["answer"]:
        raise _Failed(f"no answer: {answer}")
    messages = _good(await client.get(f"/v1/threads/{thread['id']}")).json()["messages"]
    if [each["role"] for each in messages] != ["user", "assistant"]:
        raise _Failed(f"the thread holds {len(messages)} messages; degraded: {answer['degraded']}")


async def _upload(client: httpx.AsyncClient, collection_id: str, name: str, text: str) -> str:
    """The id of the acknowledged document."""
    path = f"/v1/collections/{collection_id}/documents"
    answer = _good(await client.post(path, files={"file": (name, text.encode())}))
    return str(answer.json()["document"]["id"])


async def _all_events(client: httpx.AsyncClient, body: dict[str, Any], tally: Tally) -> list[Event]:
    """A question's events, complete and in order; a stream that ends in good order before its last event is read on, as browsers
    do."""
    events = [event async for event in _stream(client, "POST", "/v1/qa", body)]
    while events and events[-1].kind != "done":
        tally.read_on += 1
        path, after = f"/v1/runs/{events[0].data['run_id']}/events", events[-1].seq
        events += [event async for event in _stream(client, "GET", f"{path}?after={after}")]
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        raise _Failed(f"events missing or doubled: {[(event.seq, event.kind) for event in events]}")
    if events[-1].data["status"] != "completed":
        raise _Failed(f"the run ended as {events[-1].data}")
    return events


async def _stream(
    client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None = None
) -> AsyncIterator[Event]:
    async with client.stream(method, path, json=body, headers={"accept": "text/event-stream"}) as response:
        if response.is_error:
            await response.aread()
        _good(response)
        async for event in read_events(response.aiter_bytes()):
            yield event


def _good(response: httpx.Response) -> httpx.Response:
    if response.is_error:
        raise _Failed(f"{response.request.method} {response.request.url.path}: {response.status_code} {response.text}")
    return response


async def _settled(client: httpx.AsyncClient, collection_id: str) -> set[str]:
    """Ids of the documents that are ready, once none is on its way."""
    path = f"/v1/collections/{collection_id}/documents"
    waiting = {"status": ("queued", "processing"), "page_size": "1"}
    async with asyncio.timeout(SETTLE_TIMEOUT_S):
        while _good(await client.get(path, params=waiting)).json()["documents"]:  # noqa: ASYNC110 - a condition over HTTP
            await asyncio.sleep(_POLL_S)
    ready, token = set[str](), ""
    while True:
        query = {"status": "ready", "page_size": str(_PAGE), "page_token": token}
        page = _good(await client.get(path, params=query)).json()
        ready |= {document["id"] for document in page["documents"]}
        if not (token := page["next_page_token"] or ""):
            return ready
