"""Dynamic batching: all callers share one model, and none waits for a batch to fill.

There is no waiting window. An idle model starts at once with what is there; while it works, what arrives gathers and
becomes the next batches. So batching costs a lone caller nothing and grows exactly with the load.

The encoder computes several batches at once, one a stream. Streams that are free at the same time share what waits, so that a
lone request is computed by all of them.

Each stream is a thread that takes its next batch itself. On busy cores a way over the event loop would wake two threads between
two batches and leave the model idle for a millisecond or more each time.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from services.reranker import metrics
from services.reranker.batching.padding import multiple_for, pad, padded_length
from services.reranker.batching.waiting import Item, Request, WaitingTexts
from services.reranker.embedding.pooling import Reduction, Result
from services.reranker.errors import DeviceMemoryExhausted, QueueFull, RequestExpired, ShuttingDown
from services.reranker.models import BatchLimits, Lane, TokenIds
from services.reranker.ports import Encoder

LARGEST_PATIENCE = 4
"""Batches of faster lanes that a waiting lane lets pass before it gets one: bulk work slows to a fifth under a storm of
queries, but never stops."""

_SHORTEST_RETRY_S = 1.0
_STARTING_TOKENS_PER_S = 5_000.0


@dataclass(eq=False)
class _Batch:
    """Texts that a stream has taken."""

    lane: Lane
    items: list[Item]
    started_at: float


class Batcher:
    """Gathers texts into batches and runs them, as many at once as the encoder has streams.

    `run()` is the work; spawn it once. Cancel it once the server has drained: callers that still wait get ShuttingDown.
    `others` are the encoders of lanes that use another model than `encoder` on the same device.

    Requests and their futures belong to the event loop; what waits is shared with the streams, under one lock.
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
        self._changed = threading.Condition()
        self._free_streams = 0
        self._running: set[_Batch] = set()
        self._closed = False
        self._tokens_per_s = _STARTING_TOKENS_PER_S

    async def submit(
        self,
        texts: Sequence[TokenIds],
        reduce: Reduction[Result],
        lane: Lane,
        timeout_s: float | None,
        on_result: Callable[[int, Result], None] | None = None,
        encoder: Encoder | None = None,
    ) -> list[Result]:
        """What `reduce` makes of each text, in the order of `texts`. `encoder`: another one than the lane's, for the same device.

        `on_result` gets each result with its position as it comes: what was computed is kept when the deadline passes.

        Cancelling the caller, or letting `timeout_s` pass, takes what still waits out of the queue. Raises QueueFull at
        once when the lane is full, RequestExpired, ShuttingDown, and what the encoder raises.
        """
        request = Request(
            reduce, asyncio.get_running_loop().create_future(), self._clock(), encoder=encoder, on_result=on_result
        )
        waiting = self._waiting[lane]
        with self._changed:
            self._admit(texts, lane)
            waiting.add(request, texts)
            self._changed.notify_all()
        try:
            async with asyncio.timeout(timeout_s):
                return await request.future
        except TimeoutError as error:
            raise RequestExpired(
                f"the deadline passed before the model had read {len(texts)} texts; "
                "send fewer texts in one request or allow it more time"
            ) from error
        finally:
            with self._changed:
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
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(self._encoder.streams, thread_name_prefix="model")
        try:
            await asyncio.gather(
                *(loop.run_in_executor(pool, self._run_stream, loop) for _ in range(self._encoder.streams))
            )
        finally:
            self._close()
            await asyncio.to_thread(pool.shutdown)

    def _run_stream(self, loop: asyncio.AbstractEventLoop) -> None:
        """One stream's thread."""
        while (batch := self._wait_for_batch()) is not None:
            results: list[Any] | Exception
            try:
                results = self._encode(batch.lane, batch.items)
            except Exception as error:
                results = error
            loop.call_soon_threadsafe(self._deliver, batch, results, self._clock() - batch.started_at)

    def _wait_for_batch(self) -> _Batch | None:
        """The next batch, once there is one; None once nothing more is to be done."""
        with self._changed:
            self._free_streams += 1
            while not self._closed:
                lane, items = self._next_batch()
                if items:
                    self._free_streams -= 1
                    batch = _Batch(lane, items, self._clock())
                    self._running.add(batch)
                    return batch
                self._changed.wait()
            return None

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

    def _deliver(self, batch: _Batch, results: list[Any] | Exception, seconds: float) -> None:
        with self._changed:
            self._running.discard(batch)
        self._observe(batch, seconds)
        if isinstance(results, Exception):
            metrics.UNSERVED.labels(batch.lane.name.lower(), "failed").inc()
            self._fail(batch.items, results)
            return
        for item, result in zip(batch.items, results, strict=True):
            item.request.deliver(item.position, result)

    def _encode(self, lane: Lane, batch: list[Item]) -> list[Any]:
        try:
            return self._compute(lane, batch)
        except DeviceMemoryExhausted:
            if len(batch) == 1:
                raise
        # The lane's budget stays halved: what did not fit once will not fit the next time.
        with self._changed:
            self._waiting[lane].halve_budget()
        metrics.MEMORY_RETRIES.labels(lane.name.lower()).inc()
        middle = len(batch) // 2
        return [*self._encode(lane, batch[:middle]), *self._encode(lane, batch[middle:])]

    def _compute(self, lane: Lane, batch: list[Item]) -> list[Any]:
        texts = [item.ids for item in batch]
        input_ids, attention_mask = pad(texts, multiple_for(lane, texts, self._limits))
        encoder = batch[0].request.encoder or self._encoders[lane]
        encoded = encoder.encode(input_ids, attention_mask)
        return [item.request.reduce(encoded.text(row, item.ids)) for row, item in enumerate(batch)]

    def _fail(self, batch: list[Item], error: Exception) -> None:
        for item in batch:
            item.request.fail(error)

    def _close(self) -> None:
        """Tells all who wait, also those whose texts are being computed, and ends the streams."""
        error = ShuttingDown("the model server shut down before the model had read all texts; ask again")
        with self._changed:
            self._closed = True
            for waiting in self._waiting.values():
                for request in waiting.requests():
                    request.fail(error)
                    waiting.discard(request)
            for batch in self._running:
                self._fail(batch.items, error)
            self._changed.notify_all()

    def _gauge(self, lane: Lane) -> None:
        metrics.QUEUED_TOKENS.labels(lane.name.lower()).set(self._waiting[lane].tokens)

    def _observe(self, batch: _Batch, seconds: float) -> None:
        name, items = batch.lane.name.lower(), batch.items
        texts = [item.ids for item in items]
        width = padded_length(max(map(len, texts)), multiple_for(batch.lane, texts, self._limits))
        read = sum(map(len, texts))
        metrics.BATCH_TEXTS.labels(name).observe(len(items))
        metrics.BATCH_TOKENS.labels(name).observe(width * len(items))
        metrics.PADDING_TOKENS.labels(name).inc(width * len(items) - read)
        metrics.TOKENS.labels(name).inc(read)
        metrics.INFERENCE_SECONDS.labels(name).observe(seconds)
        for request in {item.request for item in items if not item.request.started}:
            request.started = True
            metrics.QUEUE_SECONDS.labels(name).observe(batch.started_at - request.arrived_at)
        rate = self._encoder.streams * width * len(items) / max(seconds, 1e-6)
        # A slow moving average is enough for the only use: telling a refused caller when to come back.
        self._tokens_per_s += 0.1 * (rate - self._tokens_per_s)
