"""What the public API says once the faults are over: asked patiently, since services that were killed last may still be coming
back."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx

SETTLE_TIMEOUT_S = 300.0
POLL_S = 0.5
_WILL_STAY = (400, 404, 500)
"""Statuses of an answer that asking again does not change."""


def settled(http: httpx.Client, collection_id: str) -> list[dict[str, Any]]:
    """The documents, once none is on its way, or once none has arrived for a long time: a busy machine may take longer over all."""
    fewest, deadline = sys.maxsize, 0.0
    while True:
        began = time.monotonic()
        documents = list(documents_of(http, collection_id))
        asked_s = time.monotonic() - began
        left = sum(each["status"] not in ("ready", "failed") for each in documents)
        if left < fewest:
            fewest, deadline = left, time.monotonic() + SETTLE_TIMEOUT_S
        if not left or time.monotonic() > deadline:
            return documents
        time.sleep(max(POLL_S, 5 * asked_s))  # who asks all the time takes the machine from those who are to get done


def documents_of(http: httpx.Client, collection_id: str) -> Iterator[dict[str, Any]]:
    """All documents of the collection, page by page."""
    token = ""
    while True:
        parameters = {"page_size": 500, **({"page_token": token} if token else {})}
        page = answered(http, "GET", f"/v1/collections/{collection_id}/documents", params=parameters)
        yield from page["documents"]
        token = page.get("next_page_token") or ""
        if not token:
            return


def documents_found_by(http: httpx.Client, collection_id: str, word: str) -> set[str]:
    """Ids of the documents in whose text a search finds the word."""
    body = {
        "query": word,
        "collection_ids": [collection_id],
        "strategy": "lexical",
        "rerank": "off",
        "top_k": 20,
        "cache": False,
    }
    hits = answered(http, "POST", "/v1/search", json=body)["hits"]
    return {hit["document_id"] for hit in hits if word in hit["text"]}


def answered(http: httpx.Client, method: str, path: str, **request: Any) -> Any:
    """The JSON of a good answer. Services that were killed last may need a moment. Raises HTTPStatusError."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        try:
            response = http.request(method, path, **request)
            will_stay = response.is_success or response.status_code in _WILL_STAY
            if will_stay or time.monotonic() > deadline:
                return response.raise_for_status().json()
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_S)
