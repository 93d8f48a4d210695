"""Queries through `POST /v1/search`, as a client sends them."""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from cli.client.gateway import Gateway
from cli.errors import ApiError
from evals.datasets.models import Answer, Mode, Query
from evals.errors import SearchFailed

MOST_HITS = 200
"""The most that the API gives."""
_DEEP_AT_ONCE = 4
_WARM_UP_QUERIES = 3


class Asker:
    """Asks one collection. Documents are known by the names of their files, which are their ids in the test collection."""

    def __init__(self, gateway: Gateway, collection_id: str) -> None:
        self._gateway = gateway
        self._collection_id = collection_id

    async def ask(self, query: Query, mode: Mode, top_k: int) -> Answer:
        """Hits are passages; a document stands where its best passage stands. Raises SearchFailed."""
        body = {"query": query.text, "collection_ids": [self._collection_id], "top_k": top_k, **mode.options}
        began = time.perf_counter()
        try:
            answer = await self._gateway.request("POST", "/v1/search", json=body)
        except ApiError as error:
            raise SearchFailed(f"mode {mode.name!r}, query {query.query_id}: {error}") from error
        latency_ms = 1000 * (time.perf_counter() - began)
        names = dict.fromkeys(hit["document_name"] for hit in answer["hits"])
        return Answer(
            document_ids=[unquote(name.rpartition(".")[0]) for name in names],
            latency_ms=latency_ms,
            degraded=[each["part"] for each in answer["degraded"]],
            server_ms=answer.get("timings_ms", {}).get("total"),
            cosine=max(
                (hit["dense_score"] for hit in answer["hits"] if hit.get("dense_score") is not None), default=None
            ),
        )

    async def ask_all(
        self, queries: Sequence[Query], modes: Sequence[Mode], top_k: int, seed: int = 0
    ) -> dict[str, dict[str, Answer]]:
        """Mode name → query id → answer. One request at a time, for the latencies; each query in every mode before the next, in
        random order, so that a busy moment or a warm cache meets all modes alike."""
        rng = random.Random(seed)
        for query in queries[:_WARM_UP_QUERIES]:
            for mode in modes:
                await self.ask(query, mode, top_k)
        runs: dict[str, dict[str, Answer]] = {mode.name: {} for mode in modes}
        for query in queries:
            for mode in rng.sample(list(modes), len(modes)):
                runs[mode.name][query.query_id] = await self.ask(query, mode, top_k)
        return runs

    async def ask_deep(self, queries: Sequence[Query], mode: Mode, top_k: int = MOST_HITS) -> Mapping[str, Answer]:
        """As many hits as the API gives, several requests at a time: no latencies."""
        answers: dict[str, Answer] = {}
        waiting = iter(queries)

        async def work() -> None:
            for query in waiting:  # shared: each is taken once
                answers[query.query_id] = await self.ask(query, mode, top_k)

        async with asyncio.TaskGroup() as group:
            for _ in range(_DEEP_AT_ONCE):
                group.create_task(work())
        return answers
