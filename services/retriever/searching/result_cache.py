"""Answers that are remembered: to the same request, and to one that asks the same in other forms of its words.

Vectors alone do not tell whether two queries ask the same: to multilingual-e5-small two words that it does not know are as near to
each other as "gets" to "get", and to every model a flight from Paris to London is nearly one from London to Paris. So their words
must be the same and in the same order, up to their endings and to those that carry no meaning, and the vectors must agree as well.

An answer is worth what its collections were when it was computed: each carries their versions, which every change of a pointer
raises, so that a new revision or a deletion voids all answers over the collection at once. What is returned has been compared
with the versions of now, never with a clock alone.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kit.language.phrases import phrase_tokens
from kit.language.terms import stem, words
from services.retriever.models import (
    Chunk,
    QueryVectors,
    SearchPlan,
    SearchRequest,
    SearchResult,
    SearchScope,
)
from services.retriever.options import SearchOptions
from services.retriever.searching.engines import phrases_by_query

Versions = tuple[int, ...]
_BYTES_PER_HIT = 2000
_BYTES_PER_DROPPED = 400
_BYTES_PER_CHARACTER = 2
"""About what Python needs for them."""
_WITHOUT_MEANING = words("a an the is are was were be do does did of s me my our your please")
_MAX_WORDINGS = 64
"""Answers that a request is compared with: the newest that differ from it in their wording only."""


@dataclass(frozen=True)
class CacheKey:
    """What an answer depends on, but for the collections' content."""

    request: SearchRequest
    plan: SearchPlan

    @classmethod
    def of(cls, request: SearchRequest, plan: SearchPlan) -> "CacheKey":
        return cls(replace(request, explain=False, no_cache=False), plan)

    @cached_property
    def beyond_wording(self) -> Hashable:
        """What two requests must have in common to be compared by meaning. No model knows anything of quotation marks."""
        stems = tuple(map(_stems, self.request.queries))
        return replace(self.request, queries=()), self.plan, tuple(phrases_by_query(self.request)), stems


def _stems(query_text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in phrase_tokens(query_text) if word not in _WITHOUT_MEANING)


@dataclass(frozen=True)
class _Entry:
    """A remembered answer. `queries` are the vectors of its queries, when they were embedded."""

    result: SearchResult
    versions: Versions
    expires_at_s: float
    size_bytes: int
    queries: QueryVectors | None


class ResultCache:
    """Bounded by bytes; the least recently used answer goes first."""

    def __init__(self, options: SearchOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._entries: OrderedDict[CacheKey, _Entry] = OrderedDict()
        self._wordings: dict[Hashable, list[CacheKey]] = {}
        self._size_bytes = 0

    @property
    def is_on(self) -> bool:
        return self._options.cache_bytes > 0

    def get(self, key: CacheKey, versions: Versions) -> SearchResult | None:
        """The answer to the same request, if nothing has changed since."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.versions != versions or entry.expires_at_s <= self._clock():
            self._forget(key)
            return None
        self._entries.move_to_end(key)
        return entry.result

    def similar(self, key: CacheKey, queries: QueryVectors, versions: Versions) -> SearchResult | None:
        """The answer to a request whose every query means what this one's does, if nothing has changed since."""
        for known in list(reversed(self._wordings.get(key.beyond_wording, ()))):
            result = self.get(known, versions)
            if result is not None and self._means_the_same(self._entries[known].queries, queries):
                return result
        return None

    def put(self, key: CacheKey, result: SearchResult, queries: QueryVectors | None, versions: Versions) -> None:
        """Remembers an answer that was computed from the collections at `versions`."""
        size_bytes = _size_bytes(result)
        if size_bytes > self._options.cache_bytes:
            return
        self._forget(key)
        expires_at_s = self._clock() + self._options.cache_ttl_s
        self._entries[key] = _Entry(result, versions, expires_at_s, size_bytes, queries)
        self._size_bytes += size_bytes
        if queries is not None:
            wordings = self._wordings.setdefault(key.beyond_wording, [])
            wordings.append(key)
            del wordings[:-_MAX_WORDINGS]
        while self._size_bytes > self._options.cache_bytes:
            self._forget(next(iter(self._entries)))

    def drop_outdated(self, versions_now: Callable[[SearchScope], Versions]) -> None:
        """Lets go of answers that nothing may return any more: they hold text of documents that may have been deleted."""
        now_s = self._clock()
        for key, entry in list(self._entries.items()):
            if entry.expires_at_s <= now_s or entry.versions != versions_now(key.request.scope):
                self._forget(key)

    def _means_the_same(self, known: QueryVectors | None, queries: QueryVectors) -> bool:
        if known is None or known.keys() != queries.keys():
            return False
        return all(
            known[space].shape == vectors.shape
            and bool(np.all(np.sum(known[space] * vectors, axis=1) >= self._options.cache_similarity))
            for space, vectors in queries.items()
        )

    def _forget(self, key: CacheKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self._size_bytes -= entry.size_bytes
        wordings = self._wordings.get(key.beyond_wording, [])
        if key in wordings:
            wordings.remove(key)
        if not wordings:
            self._wordings.pop(key.beyond_wording, None)


def _size_bytes(result: SearchResult) -> int:
    characters = sum(_characters(chunk) for hit in result.hits for chunk in (hit.chunk, *hit.before, *hit.after))
    chunks = sum(1 + len(hit.before) + len(hit.after) for hit in result.hits)
    return _BYTES_PER_HIT * (1 + chunks) + _BYTES_PER_DROPPED * len(result.dropped) + _BYTES_PER_CHARACTER * characters


def _characters(chunk: Chunk) -> int:
    return len(chunk.text) + sum(len(key) + len(value) for key, value in chunk.metadata.items())
