"""Streams of a model's answer: what gateway and orchestrator add to its first token, what chat completions add to that, and what
many listeners cost the gateway."""

import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
import psutil
from websockets.asyncio.client import connect

from bench.corpus import make_documents
from bench.report import Figure, Part
from bench.uploading import ingest
from cli.client.sse import read_events
from evals.samples import Samples
from evals.system import RunningSystem, running_system
from evals.tables import Table
from kit.testing.openai import Reply, ScriptedModel, scripted_model

COLLECTION = "streams"
AGENT = "reasoning"
"""Named, so that the model is asked for nothing but the answer."""
QUESTIONS, WARM_UP_QUESTIONS = 40, 5
ADDED_TARGET_MS = 5.0
COMPLETIONS_TARGET_MS = 2.0
"""What the shape of OpenAI's API may add to the stream of the same run in ours."""
LISTENERS, SILENT, SOCKETS = 1_000, 200, 500
RUNS = 4
"""That the listeners share."""
ANSWER = ("The passage says ", "what it says ", "[1].")
LONG_ANSWER = (
    "The passage says this and much besides it, word after word, so that there is more to read. " * 11 + "[1] ",
) * 600
"""Some 600 KB, more than the buffers of a connection hold."""
_OPEN_FILES = 8_192
_SETTLE_S = 2.0
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class _FirstToken:
    """Milliseconds, from the moment at which the scripted server lets its first piece go."""

    direct_ms: float
    through_ms: float
    to_the_model_ms: float
    """From the `retrieval` event until the model is asked."""
    chat_ms: float
    """Of a turn of mode `grounded`, which a chat completion is."""
    completions_ms: float


@dataclass(frozen=True)
class _Memory:
    """Resident memory of the gateway, MiB."""

    before: float
    with_listeners: float
    before_silent: float
    with_silent: float
    before_sockets: float
    with_sockets: float


def measure() -> Part:
    """One model that is scripted; its pieces wait for a sign, so that the search before them does not count."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (min(_OPEN_FILES, hard), hard)
    )  # both ends of each stream are open files
    try:
        tokens, memory = asyncio.run(_measure())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    added = (
        Samples.of([each.through_ms for each in tokens]).median - Samples.of([each.direct_ms for each in tokens]).median
    )
    completions = (
        Samples.of([each.completions_ms for each in tokens]).median
        - Samples.of([each.chat_ms for each in tokens]).median
    )
    socket_kib = 1024 * (memory.with_sockets - memory.before_sockets) / SOCKETS
    listener_kib = 1024 * (memory.with_listeners - memory.before) / LISTENERS
    return Part(
        title="Streams",
        about=(
            f"{len(tokens)} questions, each asked of a scripted model directly and through the system, as a question, a turn of a "
            "chat and a chat completion. The model holds its first piece back until the test releases it, and the time from "
            "there to the client is compared. Then "
            f"{LISTENERS} clients follow {RUNS} runs that go on, {SILENT} follow one with a long answer and read nothing, "
            f"and {SOCKETS} open `/ws/voice-chat`."
        ),
        figures=(
            Figure(
                "added to a model's first token by gateway and orchestrator, ms",
                f"p50 {added:.1f}",
                f"p50 < {ADDED_TARGET_MS:.0f}",
                added <= ADDED_TARGET_MS,
            ),
            Figure(
                "added to the first token of a chat turn by `POST /v1/chat/completions`, ms",
                f"p50 {completions:.1f}",
                f"p50 < {COMPLETIONS_TARGET_MS:.0f}",
                completions <= COMPLETIONS_TARGET_MS,
            ),
            Figure(
                f"memory of the gateway with {LISTENERS} open streams, MiB",
                f"{memory.with_listeners:.0f} ({memory.before:.0f} without; {listener_kib:.0f} KiB each)",
            ),
            Figure(
                f"memory of the gateway with {SOCKETS} open WebSockets, MiB",
                f"{memory.with_sockets:.0f} ({memory.before_sockets:.0f} without; {socket_kib:.0f} KiB each)",
            ),
            Figure(
                f"memory of the gateway with {SILENT} streams that are never read, MiB",
                f"{memory.with_silent:.0f} ({memory.before_silent:.0f} before)",
            ),
        ),
        tables=(_table(tokens),),
    )


async def _measure() -> tuple[list[_FirstToken], _Memory]:
    async with scripted_model(Reply(ANSWER)) as model:
        settings = {
            "GROUNDWORK_LLM_BASE_URL": model.base_url,
            "GROUNDWORK_LLM_MODEL": "scripted",
            "GROUNDWORK_VERIFY_JUDGE": "learned",
            "GROUNDWORK_MEMORY": "off",  # what is learnt from a turn asks the model too
        }
        with running_system(settings=settings) as system:
            async with system.http() as client:
                documents = make_documents(7, 4, 4_000)
                await ingest(client, COLLECTION, documents)
                asked = [fact.question for document in documents for fact in document.facts]
                count = QUESTIONS + WARM_UP_QUESTIONS
                questions = (asked * (count // len(asked) + 1))[:count]
                tokens = [await _first_token(client, model, question) for question in questions]
                memory = await _listened_to(system, client, model, questions[0])
    return tokens[WARM_UP_QUESTIONS:], memory


async def _first_token(client: httpx.AsyncClient, model: ScriptedModel, question: str) -> _FirstToken:
    async with _held(model) as released:
        direct_ms = 1000 * (await _first_piece(model, question) - (await released).at)
    async with _held(model) as released:
        found_at, token_at = await _found_and_first_token(client, question)
        release = await released
    async with _held(model) as released:
        _, chat_at = await _found_and_first_token(client, question, f"/v1/collections/{COLLECTION}/chat")
        chat_ms = 1000 * (chat_at - (await released).at)
    async with _held(model) as released:
        completions_ms = 1000 * (await _first_chunk(client, question) - (await released).at)
    to_the_model_ms = 1000 * (release.asked_at - found_at)
    return _FirstToken(direct_ms, 1000 * (token_at - release.at), to_the_model_ms, chat_ms, completions_ms)


@dataclass(frozen=True)
class _Release:
    """When the model was asked, and when it let its first piece go."""

    asked_at: float
    at: float


@asynccontextmanager
async def _held(model: ScriptedModel, pieces: Sequence[str] = ANSWER) -> AsyncIterator["asyncio.Task[_Release]"]:
    """The model holds its first piece back until a moment after it is asked."""
    gate, asked_before = asyncio.Event(), len(model.requests)
    model.replies[:] = [Reply(pieces, gate=gate)]

    async def release() -> _Release:
        async with asyncio.timeout(_PATIENCE_S):
            while len(model.requests) == asked_before:  # noqa: ASYNC110 - the script has no event for it
                await asyncio.sleep(0.0005)
        asked_at = time.perf_counter()
        await asyncio.sleep(0.01)
        gate.set()
        return _Release(asked_at, time.perf_counter())

    yield asyncio.create_task(release())


async def _first_piece(model: ScriptedModel, question: str) -> float:
    body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": question}]}
    async with (
        httpx.AsyncClient(trust_env=False, timeout=_PATIENCE_S) as client,
        client.stream("POST", f"{model.base_url}/chat/completions", json=body) as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith("data:"):
                return time.perf_counter()
    raise AssertionError("the model said nothing")


async def _first_chunk(client: httpx.AsyncClient, question: str) -> float:
    """When a chat completion begins to say something."""
    said = [{"role": "user", "content": question}]
    asked = {"model": f"groundwork/{AGENT}@{COLLECTION}", "stream": True, "messages": said}
    said_at = 0.0
    async with client.stream("POST", "/v1/chat/completions", json=asked) as response:
        async for line in response.raise_for_status().aiter_lines():
            if line.startswith("data: {") and json.loads(line[6:])["choices"][0]["delta"].get("content"):
                said_at = said_at or time.perf_counter()
    return said_at


async def _found_and_first_token(client: httpx.AsyncClient, question: str, path: str = "/v1/qa") -> tuple[float, float]:
    at: dict[str, float] = {}
    asked = (
        {"question": question, "collection_ids": [COLLECTION]}
        if path == "/v1/qa"
        else {"message": question, "agent": AGENT}
    )
    async with client.stream("POST", path, json=asked, headers={"Accept": "text/event-stream"}) as response:
        response.raise_for_status()
        async for event in read_events(response.aiter_bytes()):
            at.setdefault(event.kind, time.perf_counter())
    return at["retrieval"], at["token"]


async def _listened_to(
    system: RunningSystem, client: httpx.AsyncClient, model: ScriptedModel, question: str
) -> _Memory:
    gateway = psutil.Process(system.services()["gateway"]["pid"])
    before = _resident_mib(gateway)
    async with AsyncExitStack() as stack:
        gate, runs = await _going_on(stack, client, model, question, RUNS, ANSWER)
        async with asyncio.TaskGroup() as group:
            readers = [
                group.create_task(_opened(stack, system, runs[number % RUNS], 2**16)) for number in range(LISTENERS)
            ]
        await asyncio.gather(*(each.result().readuntil(b"event: retrieval") for each in readers))
        with_listeners = _resident_mib(gateway)
        gate.set()
        async with asyncio.timeout(_PATIENCE_S):
            await asyncio.gather(*(each.result().readuntil(b"event: done") for each in readers))
    before_silent = _resident_mib(gateway)
    async with AsyncExitStack() as stack:
        gate, (run_id,) = await _going_on(stack, client, model, question, 1, LONG_ANSWER)
        for _ in range(SILENT):
            await _opened(stack, system, run_id, 2**10)
        gate.set()
        async with client.stream("GET", f"/v1/runs/{run_id}/events") as response:
            await response.aread()  # to the run's end
        await asyncio.sleep(_SETTLE_S)
        with_silent = _resident_mib(gateway)
    before_sockets = _resident_mib(gateway)
    async with AsyncExitStack() as stack:
        for _ in range(SOCKETS):
            await _talking(stack, system)
        with_sockets = _resident_mib(gateway)
    return _Memory(before, with_listeners, before_silent, with_silent, before_sockets, with_sockets)


async def _talking(stack: AsyncExitStack, system: RunningSystem) -> None:
    """A client of voice that is ready to speak."""
    address = f"{system.url.replace('http', 'ws', 1)}/ws/voice-chat"
    socket = await stack.enter_async_context(connect(address, proxy=None))
    async with asyncio.timeout(_PATIENCE_S):
        assert json.loads(await socket.recv())["event"] == "ready"


async def _going_on(
    stack: AsyncExitStack,
    client: httpx.AsyncClient,
    model: ScriptedModel,
    question: str,
    count: int,
    pieces: Sequence[str],
) -> tuple[asyncio.Event, list[str]]:
    """Runs whose model waits for the event; their ids."""
    gate = asyncio.Event()
    model.replies[:] = [Reply(pieces, gate=gate)]
    asked = {"question": question, "collection_ids": [COLLECTION]}
    runs = []
    for _ in range(count):
        request = client.stream("POST", "/v1/qa", json=asked, headers={"Accept": "text/event-stream"})
        response = await stack.enter_async_context(request)
        runs.append(response.raise_for_status().headers["X-Run-Id"])
    return gate, runs


async def _opened(stack: AsyncExitStack, system: RunningSystem, run_id: str, limit: int) -> asyncio.StreamReader:
    """A client that follows a run over a connection of its own. It stops taking bytes when it has twice `limit` unread."""
    host, _, port = system.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=limit)
    stack.callback(writer.close)
    writer.write(f"GET /v1/runs/{run_id}/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    return reader


def _resident_mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 2**20


def _table(tokens: Sequence[_FirstToken]) -> Table:
    columns = {
        "straight from the model (reference)": [each.direct_ms for each in tokens],
        "through orchestrator and gateway": [each.through_ms for each in tokens],
        "in a chat turn": [each.chat_ms for each in tokens],
        "in a chat completion": [each.completions_ms for each in tokens],
        "from the evidence found to the model asked": [each.to_the_model_ms for each in tokens],
    }
    samples = {name: Samples.of(values) for name, values in columns.items()}
    return Table(
        ("what", "p50, ms", "p95, ms", "min, ms", "max, ms"),
        [
            (name, *(f"{value:.1f}" for value in (each.median, each.p95, each.smallest, each.largest)))
            for name, each in samples.items()
        ],
    )
