"""Bulk indexing with an answer for each document: what a full queue refused is sent again, what is wrong fails with the
server's reason. Documents are sent whole under ids of their own, so that sending one twice leaves one."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kit.deadline import remaining_s
from services.retriever.adapters.elasticsearch.connection import ElasticsearchConnection, is_transient
from services.retriever.adapters.server_retry import WRITE
from services.retriever.errors import IndexUnavailable

_BYTES_PER_REQUEST = 1_000_000
"""What aiohttp still sends in one go without holding up the event loop. Larger ones are no faster at our few writers; a server
takes 100 MB at most."""


@dataclass(frozen=True)
class BulkDocument:
    """A document as it is sent: two lines of NDJSON."""

    identifier: str
    source: str

    @classmethod
    def of(cls, identifier: str, source: dict[str, Any]) -> "BulkDocument":
        return cls(identifier, json.dumps(source, ensure_ascii=False, separators=(",", ":")))

    @property
    def lines(self) -> tuple[str, str]:
        return json.dumps({"index": {"_id": self.identifier}}), self.source

    @property
    def size_bytes(self) -> int:
        return len(self.source.encode()) + 64


async def index_all(
    server: ElasticsearchConnection, index: str, routing: str, documents: Sequence[BulkDocument]
) -> None:
    """Returns once all of them are in the translog of the primary and its replicas. Raises IndexUnavailable."""
    for request in _requests(documents):
        await _index(server, index, routing, request)


async def _index(server: ElasticsearchConnection, index: str, routing: str, documents: Sequence[BulkDocument]) -> None:
    failures = 0
    while True:
        refused = await _send(server, index, routing, documents)
        if not refused:
            return
        failures += 1
        for item in refused.values():
            _raise_if_final(item, failures)
        documents = [documents[position] for position in refused]
        wait_s = WRITE.wait_s(failures, None)
        left_s = remaining_s()
        if left_s is not None and wait_s >= left_s:
            raise _refusal(next(iter(refused.values())))
        await asyncio.sleep(wait_s)


async def _send(
    server: ElasticsearchConnection, index: str, routing: str, documents: Sequence[BulkDocument]
) -> dict[int, dict[str, Any]]:
    """The results of those that were not indexed, by position."""
    lines: Any = [line for document in documents for line in document.lines]
    answer = await server.write(
        lambda client: client.bulk(
            index=index,
            operations=lines,
            routing=routing,
            filter_path=["errors", "items.*.status", "items.*.error"],
        )
    )
    if not answer["errors"]:
        return {}
    results = [item["index"] for item in answer["items"]]
    return {position: result for position, result in enumerate(results) if result["status"] >= 300}


def _raise_if_final(item: dict[str, Any], failures: int) -> None:
    if not is_transient(item["status"]) or failures >= WRITE.attempts:
        raise _refusal(item)


def _refusal(item: dict[str, Any]) -> IndexUnavailable:
    error = item.get("error") or {}
    reason = f"{item['status']} {error.get('type', 'unknown')}: {error.get('reason', 'no reason given')}"
    if is_transient(item["status"]):
        return IndexUnavailable(f"Elasticsearch is too busy to index chunks ({reason}); try again", retry_after_s=1.0)
    return IndexUnavailable(f"Elasticsearch cannot index a chunk ({reason})", retryable=False)


def _requests(documents: Sequence[BulkDocument]) -> Iterator[list[BulkDocument]]:
    """Cut where a request would have too many bytes; a document that is too large by itself goes alone."""
    request: list[BulkDocument] = []
    size_bytes = 0
    for document in documents:
        if request and size_bytes + document.size_bytes > _BYTES_PER_REQUEST:
            yield request
            request, size_bytes = [], 0
        request.append(document)
        size_bytes += document.size_bytes
    if request:
        yield request
