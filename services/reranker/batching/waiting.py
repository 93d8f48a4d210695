"""What waits for the model: one queue per lane, from which batches of similar length are taken."""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.reranker.batching.padding import padded_length
from services.reranker.embedding.pooling import Reduction
from services.reranker.models import BatchLimits, TokenIds
from services.reranker.ports import Encoder

SHORTEST_NEIGHBOUR = 0.5
"""A text joins a batch only if it is at least this share of the longest one's length: below, padding costs more than a
batch of its own."""


@dataclass(eq=False)
class Request:
    """One caller's texts, and the future that gets all their results, in order."""

    reduce: Reduction[Any]
    future: "asyncio.Future[list[Any]]"
    arrived_at: float
    items: "list[Item]" = field(default_factory=list)
    results: dict[int, Any] = field(default_factory=dict)
    total: int = 0
    started: bool = False
    encoder: Encoder | None = None
    """Reads its texts. A batch is of one encoder; None stands for the lane's."""
    on_result: Callable[[int, Any], None] | None = None
    """Told each result with its position as it comes, also when nobody waits for the whole any more."""

    @property
    def over(self) -> bool:
        """Nobody waits for it any more: answered, failed, cancelled or past its deadline."""
        return self.future.done()

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def deliver(self, position: int, result: Any) -> None:
        self.results[position] = result
        if self.on_result is not None:
            self.on_result(position, result)
        if len(self.results) == self.total and not self.future.done():
            self.future.set_result([self.results[index] for index in range(self.total)])


@dataclass(eq=False)
class Item:
    """One text of a request."""

    request: Request
    position: int
    ids: TokenIds
    width: int
    """Tokens after padding."""
    key: tuple[int, int] = (0, 0)
    """Width, then arrival: unique, so that the sorted list never compares items."""


class WaitingTexts:
    """The texts of one lane, sorted by length.

    A batch is filled with texts of anybody, for the same encoder, that are as long as its first or the next shorter, so padding
    stays small. Which is first: where people wait, the longest text of the request whose turn it is, so that every request
    advances every round. In bulk, the next shorter than those of the last batch, and the longest again after the shortest: a
    sweep meets every text, and the runtime, which prepares itself anew for each other shape (5 % of the time), seldom has to.
    Every other batch may go to a request that is one batch or less: it need not wait for the sweep.
    """

    def __init__(self, limits: BatchLimits, *, in_bulk: bool = False) -> None:
        self._limits = limits
        self._in_bulk = in_bulk
        self._swept = (0, 0)
        self._was_small = False
        self._max_tokens = limits.max_tokens
        self._sorted: list[tuple[tuple[int, int], Item]] = []
        self._turns: deque[Request] = deque()
        self._arrivals = 0
        self.tokens = 0

    def __bool__(self) -> bool:
        return bool(self._sorted)

    def add(self, request: Request, texts: Sequence[TokenIds]) -> None:
        for position, ids in enumerate(texts):
            self._arrivals += 1
            width = padded_length(len(ids), self._limits.pad_to_multiple)
            item = Item(request, position, ids, width, key=(width, self._arrivals))
            insort(self._sorted, (item.key, item), key=lambda entry: entry[0])
            request.items.append(item)
            self.tokens += width
        request.total = len(texts)
        request.items.sort(key=lambda item: item.key)
        self._turns.append(request)

    def discard(self, request: Request) -> None:
        """Forgets what still waits of `request`."""
        for item in request.items:
            del self._sorted[bisect_left(self._sorted, item.key, key=lambda entry: entry[0])]
            self.tokens -= item.width
        request.items.clear()
        if request in self._turns:
            self._turns.remove(request)

    def take(self, sharers: int = 1) -> list[Item]:
        """The next batch, longest text first; empty when nothing waits. `sharers` streams are free: it is one's share."""
        for request in [request for request in self._turns if request.over]:
            self.discard(request)
        if not self._turns:
            return []
        small = self._small() if self._in_bulk else None
        first = small or (self._next_of_sweep() if self._in_bulk else self._longest_of_turn())
        batch = self._neighbours(first, -(-self.tokens // sharers))
        self._was_small = small is not None
        if not small:
            self._swept = min(item.key for item in batch)
        for item in batch:
            self._remove(item)
        return batch

    def halve_budget(self) -> None:
        """Makes later batches half as large: the device has less memory than was thought. One text always fits a batch."""
        self._max_tokens = max(1, self._max_tokens // 2)

    def requests(self) -> list[Request]:
        return list(self._turns)

    def _longest_of_turn(self) -> Item:
        first = self._turns[0].items[-1]
        self._turns.rotate(-1)
        return first

    def _small(self) -> Item | None:
        """The longest text of the first request that fits a batch whole, unless the last batch began with such a one."""
        if self._was_small:
            return None
        room = self._limits.max_tokens
        whole = (request for request in self._turns if len(request.items) == request.total)
        return next((each.items[-1] for each in whole if sum(item.width for item in each.items) <= room), None)

    def _next_of_sweep(self) -> Item:
        # By key and not by width: texts that arrive meanwhile, however many are as long, wait for the next sweep.
        before = bisect_left(self._sorted, self._swept, key=lambda entry: entry[0])
        return self._sorted[before - 1][1]  # the longest of all where none is left before

    def _neighbours(self, first: Item, share_tokens: int) -> list[Item]:
        max_tokens = min(self._max_tokens, share_tokens)
        room = max(1, min(self._limits.max_texts, max_tokens // first.width))
        end = bisect_right(self._sorted, first.width, key=lambda entry: entry[0][0])
        shortest = first.width * SHORTEST_NEIGHBOUR
        batch = [first]
        for position in range(end - 1, -1, -1):
            item = self._sorted[position][1]
            if len(batch) >= room or item.width < shortest:
                break
            if item is not first and item.request.encoder is first.request.encoder:
                batch.append(item)
        return batch

    def _remove(self, item: Item) -> None:
        del self._sorted[bisect_left(self._sorted, item.key, key=lambda entry: entry[0])]
        self.tokens -= item.width
        item.request.items.remove(item)
        if not item.request.items:
            self._turns.remove(item.request)
