"""What is remembered: how long a look-up takes among many people's facts, and what memory adds to the first token of an answer."""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import numpy as np
import numpy.typing as npt
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from bench.corpus import make_documents, make_queries
from bench.filling import embed_centers
from bench.report import Figure, Part
from bench.retrieval.fact_filling import fill
from bench.uploading import ingest
from cli.client.sse import read_events
from evals.samples import Samples
from evals.system import RunningSystem, running_system
from evals.tables import Table
from kit.access.principal import QUERY, Principal, use_principal
from kit.testing.openai import Reply, scripted_model

USERS, FACTS_EACH = 1_000, 100
LOOK_UPS, WARM_UP_LOOK_UPS = 80, 10
MESSAGES, WARM_UP_MESSAGES = 30, 4
"""With memory, and as many without."""
LOOK_UP_TARGET_MS, ADDED_TARGET_MS = 15.0, 12.0
COLLECTION, AGENT = "remembering", "reasoning"
EMBEDDING, INDEX, RECALL, SEARCH = (
    "query embedding (reference)",
    "index of memories",
    "`Recall`: summary and hints of a message",
    "`SearchMemory`: facts, messages and notes",
)
AUTO, OFF = "auto", "off"
_LOCAL = "local-user"
_TIMEOUT_S = 10.0
_SETTLE_S = 0.5
"""Until the turn before has been checked and learnt from."""

Ask = Callable[[str], Awaitable[object]]


def measure() -> Part:
    """Looks facts of one person after another up, then talks as one of them to a scripted model that answers at once."""
    with tempfile.TemporaryDirectory(prefix="groundwork-bench-", ignore_cleanup_errors=True) as folder:
        data_dir = Path(folder, "data")
        with running_system(data_dir) as system:
            model, centers = asyncio.run(_centers(system))
        began = time.perf_counter()
        fill(data_dir, [_LOCAL, *(f"person-{number}" for number in range(1, USERS))], FACTS_EACH, model, centers)
        fill_s = time.perf_counter() - began
        look_ups, first_tokens = asyncio.run(_measure(data_dir))
    looked_up, added = look_ups[SEARCH].median, first_tokens[AUTO].median - first_tokens[OFF].median
    return Part(
        title="Memory",
        about=(
            f"{USERS * FACTS_EACH} facts of {USERS} people, written in {fill_s:.0f} s through the write ports of the stores of a "
            f"stopped system, with made-up vectors. {LOOK_UPS} look-ups of different people, one at a time, each way in random "
            f"order. Then {MESSAGES} messages with memory and as many without, in random order, to a scripted model that answers "
            "at once."
        ),
        figures=(
            Figure(
                "look-up among 100 000 facts of 1 000 people through gRPC, ms",
                f"p50 {looked_up:.1f}, p95 {look_ups[SEARCH].p95:.1f}",
                f"p50 < {LOOK_UP_TARGET_MS:.0f}",
                looked_up < LOOK_UP_TARGET_MS,
            ),
            Figure(
                "added to a message's first token by `memory: auto`, ms",
                f"p50 {added:.1f}",
                f"p50 < {ADDED_TARGET_MS:.0f}",
                added < ADDED_TARGET_MS,
            ),
        ),
        tables=(
            _table(look_ups),
            _table({f"first token with memory {mode}": each for mode, each in first_tokens.items()}),
        ),
    )


async def _centers(system: RunningSystem) -> tuple[str, npt.NDArray[np.float32]]:
    async with system.channel("reranker") as reranker:
        return await embed_centers(reranker)


async def _measure(data_dir: Path) -> tuple[dict[str, Samples], dict[str, Samples]]:
    async with scripted_model(Reply(("The passage says ", "what it says [1]."))) as model:
        settings = {
            "GROUNDWORK_LLM_BASE_URL": model.base_url,
            "GROUNDWORK_LLM_MODEL": "scripted",
            "GROUNDWORK_VERIFY_JUDGE": "learned",
        }
        with running_system(data_dir, settings) as system:
            look_ups = await _looked_up(system)
            async with system.http() as client:
                await ingest(client, COLLECTION, make_documents(7, 4, 4_000))
                first_tokens = await _first_tokens(client)
    return look_ups, first_tokens


async def _looked_up(system: RunningSystem) -> dict[str, Samples]:
    async with (
        system.channel("memory") as memory,
        system.channel("retriever") as retriever,
        system.channel("reranker") as reranker,
    ):
        memories, index = memory_pb2_grpc.MemoryServiceStub(memory), retriever_pb2_grpc.RetrieverServiceStub(retriever)
        models = reranker_pb2_grpc.RerankerServiceStub(reranker)

        async def search(query: str) -> None:
            answer = await memories.SearchMemory(
                memory_pb2.SearchMemoryRequest(query_text=query, top_k=10), timeout=_TIMEOUT_S
            )
            if answer.degraded or len(answer.hits) != 10:
                raise RuntimeError(f"a look-up gave {len(answer.hits)} hits, degraded: {list(answer.degraded)}")

        ways: dict[str, Ask] = {
            EMBEDDING: lambda query: models.Embed(
                reranker_pb2.EmbedRequest(texts=[query], kind=reranker_pb2.EMBED_KIND_QUERY), timeout=_TIMEOUT_S
            ),
            INDEX: lambda query: index.SearchMemories(
                retriever_pb2.SearchMemoriesRequest(query_text=query, top_k=10), timeout=_TIMEOUT_S
            ),
            RECALL: lambda query: memories.Recall(memory_pb2.RecallRequest(message_text=query), timeout=_TIMEOUT_S),
            SEARCH: search,
        }
        times_ms: dict[str, list[float]] = {name: [] for name in ways}
        # Different questions each time: what was embedded once is known.
        queries = iter(make_queries(2, len(ways) * (WARM_UP_LOOK_UPS + LOOK_UPS)))
        for number in range(WARM_UP_LOOK_UPS + LOOK_UPS):
            for name in random.sample(list(ways), len(ways)):
                with use_principal(Principal("local", f"person-{random.randrange(1, USERS)}", frozenset({QUERY}))):
                    began = time.perf_counter()
                    await ways[name](next(queries))
                if number >= WARM_UP_LOOK_UPS:
                    times_ms[name].append(1000 * (time.perf_counter() - began))
    return {name: Samples.of(values) for name, values in times_ms.items()}


async def _first_tokens(client: httpx.AsyncClient) -> dict[str, Samples]:
    times_ms: dict[str, list[float]] = {AUTO: [], OFF: []}
    queries = iter(make_queries(4, 2 * (WARM_UP_MESSAGES + MESSAGES)))
    for number in range(WARM_UP_MESSAGES + MESSAGES):
        for mode in random.sample([AUTO, OFF], 2):
            first_token_ms = await _first_token_ms(client, next(queries), mode)
            if number >= WARM_UP_MESSAGES:
                times_ms[mode].append(first_token_ms)
            await asyncio.sleep(_SETTLE_S)
    return {mode: Samples.of(values) for mode, values in times_ms.items()}


async def _first_token_ms(client: httpx.AsyncClient, message: str, mode: str) -> float:
    asked = {"message": message, "agent": AGENT, "memory": mode}
    began, first, was_reminded = time.perf_counter(), 0.0, False
    address = f"/v1/collections/{COLLECTION}/chat"
    async with client.stream("POST", address, json=asked, headers={"Accept": "text/event-stream"}) as response:
        response.raise_for_status()
        async for event in read_events(response.aiter_bytes()):
            was_reminded = was_reminded or "Remembered of you" in str(event.data)
            if event.kind == "token":
                first = time.perf_counter()
                break  # the run goes on and is learnt from; what it takes to check the answer is not measured
    if was_reminded is not (mode == AUTO):
        raise RuntimeError(f"a message with memory {mode} was answered with hints: {was_reminded}")
    return 1000 * (first - began)


def _table(times_ms: dict[str, Samples]) -> Table:
    return Table(
        ("what", "p50, ms", "p95, ms", "min, ms", "max, ms"),
        [
            (name, *(f"{value:.1f}" for value in (each.median, each.p95, each.smallest, each.largest)))
            for name, each in times_ms.items()
        ],
    )
