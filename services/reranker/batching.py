"""Dynamic batching: all callers share one model, and none waits for a batch to fill.

There is no waiting window. An idle model starts at once with what is there; while it works, what arrives gathers and
becomes the next batches. So batching costs a lone caller nothing and grows exactly with the load.

The encoder computes several batches at once, one a stream. Streams that are free at the same time share what waits, so that a
lone request is computed by all of them.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from services.reranker import metrics
from services.reranker.errors import DeviceMemoryExhausted, QueueFull, RequestExpired, ShuttingDown
from services.reranker.models import BatchLimits, Lane, TokenIds
from services.reranker.padding import pad, padded_length
from services.reranker.pooling import Reduction, Result
from services.reranker.ports import Encoder
from services.reranker.waiting import Item, Request, WaitingTexts

LARGEST_PATIENCE = 4
"""Batches of faster lanes that a waiting lane lets pass before it gets one: bulk work slows to a fifth under a storm of
queries, but never stops."""

_SHORTEST_RETRY_S = 1.0
_STARTING_TOKENS_PER_S = 5_000.0


class Batcher:
    """Gathers texts into batches and runs them, each on a thread of its own, as many at once as the encoder has streams.

    `run()` is the work; spawn it once. Cancel it once the server has drained: whoever still waits gets ShuttingDown.
    `others` are the encoders of lanes that use another model than `encoder` on the same device.
    """

    def __init__(
        self,
        encoder: Encoder,
        limits: BatchLimits,
        clock: Callable[[], float] = time.monotonic,
        others: Mapping[Lane, Encoder] | None = None,
    ) -> None:
        self._encoder = encoder
        self._encoders = dict.fromkeys(Lane, encoder) | dict(others or {})
        self._limits = limits
        self._clock = clock
        self._waiting = {lane: WaitingTexts(limits, in_bulk=lane is Lane.PASSAGE) for lane in Lane}
        self._patience = dict.fromkeys(Lane, 0)
        self._arrival = asyncio.Event()
        self._free_streams = encoder.streams
        self._closed = False
        self._tokens_per_s = _STARTING_TOKENS_PER_S

    async def submit(
        self,
        texts: Sequence[TokenIds],
        reduce: Reduction[Result],
        lane: Lane,
        timeout_s: float | None,
        on_result: Callable[[int, Result], None] | None = None,
    ) -> list[Result]:
        """What `reduce` makes of each text, in the order of `texts`.

        `on_result` is told each result with its position as it comes: what was computed is kept when the deadline passes.

        Cancelling the caller, or letting `timeout_s` pass, takes what still waits out of the queue. Raises QueueFull at
        once when the lane is full, RequestExpired, ShuttingDown, and what the encoder raises.
        """
        self._admit(texts, lane)
        request = Request(reduce, asyncio.get_running_loop().create_future(), self._clock(), on_result=on_result)
        waiting = self._waiting[lane]
        waiting.add(request, texts)
        self._arrival.set()
        try:
            async with asyncio.timeout(timeout_s):
                return await request.future
        except TimeoutError as error:
            raise RequestExpired(
                f"the deadline passed before the model had read {len(texts)} texts; "
                "send fewer texts in one request or allow it more time"
            ) from error
        finally:
            waiting.discard(request)
            if request.future.cancelled():
                metrics.UNSERVED.labels(lane.name.lower(), "abandoned").inc()
            self._gauge(lane)

    def check_open(self, lane: Lane) -> None:
        """Raises ShuttingDown or QueueFull if nothing more is taken: before work is put into preparing a request."""
        if self._closed:
            raise ShuttingDown("the model server is shutting down; ask again, another replica will answer")
        if self._waiting[lane].tokens >= self._limits.max_queued_tokens:
            raise self._refusal(lane)

    async def run(self) -> None:
        """Serves batches until cancelled."""
        pool = ThreadPoolExecutor(self._encoder.streams, thread_name_prefix="model")
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._encoder.streams):
                    group.create_task(self._run_stream(pool))
        finally:
            self._close()
            await asyncio.to_thread(pool.shutdown)

    async def _run_stream(self, pool: ThreadPoolExecutor) -> None:
        while True:
            lane, batch = self._next_batch()
            if not batch:
                self._arrival.clear()
                await self._arrival.wait()
                continue
            self._free_streams -= 1
            try:
                await self._serve(lane, batch, pool)
            finally:
                self._free_streams += 1

    def _admit(self, texts: Sequence[TokenIds], lane: Lane) -> None:
        self.check_open(lane)
        # One request always fits into an empty lane: its size is bounded where it is decoded.
        waiting = self._waiting[lane].tokens
        arriving = sum(padded_length(len(ids), self._limits.pad_to_multiple) for ids in texts)
        if waiting and waiting + arriving > self._limits.max_queued_tokens:
            raise self._refusal(lane)

    def _refusal(self, lane: Lane) -> QueueFull:
        waiting = self._waiting[lane].tokens
        metrics.UNSERVED.labels(lane.name.lower(), "queue_full").inc()
        return QueueFull(
            f"{waiting} tokens already wait for the model; ask again later, with fewer requests at a time",
            retry_after_s=max(_SHORTEST_RETRY_S, round(waiting / self._tokens_per_s, 1)),
        )

    def _next_batch(self) -> tuple[Lane, list[Item]]:
        competing = [lane for lane in Lane if self._waiting[lane]]
        impatient = [lane for lane in competing if self._patience[lane] >= LARGEST_PATIENCE]
        for chosen in [*impatient, *competing]:
            batch = self._waiting[chosen].take(sharers=self._free_streams)
            if not batch:
                continue
            for lane in competing:
                self._patience[lane] = 0 if lane is chosen else self._patience[lane] + 1
            self._gauge(chosen)
            return chosen, batch
        return Lane.QUERY, []

    async def _serve(self, lane: Lane, batch: list[Item], pool: ThreadPoolExecutor) -> None:
        started = self._clock()
        self._observe_start(lane, batch, started)
        try:
            results = await asyncio.get_running_loop().run_in_executor(pool, self._encode, lane, batch)
        except asyncio.CancelledError:
            self._fail(batch, ShuttingDown("the model server shut down before the model had read all texts; ask again"))
            raise
        except Exception as error:
            metrics.UNSERVED.labels(lane.name.lower(), "failed").inc()
            self._fail(batch, error)
            return
        for item, result in zip(batch, results, strict=True):
            item.request.deliver(item.position, result)
        self._observe_end(lane, batch, self._clock() - started)

    def _encode(self, lane: Lane, batch: list[Item]) -> list[Any]:
        try:
            return self._compute(lane, batch)
        except DeviceMemoryExhausted:
            if len(batch) == 1:
                raise
        # The lane's budget stays halved: what did not fit once will not fit the next time.
        self._waiting[lane].halve_budget()
        metrics.MEMORY_RETRIES.labels(lane.name.lower()).inc()
        middle = len(batch) // 2
        return [*self._encode(lane, batch[:middle]), *self._encode(lane, batch[middle:])]

    def _compute(self, lane: Lane, batch: list[Item]) -> list[Any]:
        input_ids, attention_mask = pad([item.ids for item in batch], self._limits.pad_to_multiple)
        encoded = self._encoders[lane].encode(input_ids, attention_mask)
        return [item.request.reduce(encoded.text(row, len(item.ids))) for row, item in enumerate(batch)]

    def _fail(self, batch: list[Item], error: Exception) -> None:
        for item in batch:
            item.request.fail(error)

    def _close(self) -> None:
        self._closed = True
        for waiting in self._waiting.values():
            for request in waiting.requests():
                request.fail(ShuttingDown("the model server shut down before the model had read all texts; ask again"))
                waiting.discard(request)

    def _gauge(self, lane: Lane) -> None:
        metrics.QUEUED_TOKENS.labels(lane.name.lower()).set(self._waiting[lane].tokens)

    def _observe_start(self, lane: Lane, batch: list[Item], now: float) -> None:
        name = lane.name.lower()
        width, read = batch[0].width, sum(len(item.ids) for item in batch)
        metrics.BATCH_TEXTS.labels(name).observe(len(batch))
        metrics.BATCH_TOKENS.labels(name).observe(width * len(batch))
        metrics.PADDING_TOKENS.labels(name).inc(width * len(batch) - read)
        metrics.TOKENS.labels(name).inc(read)
        for request in {item.request for item in batch if not item.request.started}:
            request.started = True
            metrics.QUEUE_SECONDS.labels(name).observe(now - request.arrived_at)

    def _observe_end(self, lane: Lane, batch: list[Item], seconds: float) -> None:
        metrics.INFERENCE_SECONDS.labels(lane.name.lower()).observe(seconds)
        rate = self._encoder.streams * batch[0].width * len(batch) / max(seconds, 1e-6)
        # A slow moving average is enough for the only use: telling a refused caller when to come back.
        self._tokens_per_s += 0.1 * (rate - self._tokens_per_s)
