"""The HTTP API as these tests use it: a thin client that fails loudly, and a reader of event streams."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

Json = dict[str, Any]
INGEST_TIMEOUT_S = 300.0
SETTLED = {"ready", "failed"}
EVENT_STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Event:
    """One event of a stream; `seq` is its id."""

    kind: str
    data: Json
    seq: int | None


class Api:
    """One gateway."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    @classmethod
    @contextmanager
    def open(cls, base_url: str) -> Iterator["Api"]:
        with httpx.Client(base_url=base_url, timeout=300, trust_env=False) as http:
            yield cls(http)

    def get(self, path: str, **parameters: Any) -> Json:
        return ok(self.http.get(path, params=parameters))

    def post(self, path: str, body: Json | None = None) -> Json:
        return ok(self.http.post(path, json=body))

    def new_collection(self) -> str:
        """A collection of this test's own."""
        collection_id = f"test-{uuid.uuid4().hex[:12]}"
        self.post("/v1/collections", {"id": collection_id, "name": collection_id})
        return collection_id

    def send(
        self, collection_id: str, name: str, content: bytes, metadata: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """The upload, whatever the answer."""
        fields = {"metadata": json.dumps(metadata)} if metadata else None
        path = f"/v1/collections/{collection_id}/documents"
        return self.http.post(path, data=fields, files={"file": (name, content)})

    def upload(self, collection_id: str, name: str, content: bytes, metadata: Mapping[str, str] | None = None) -> Json:
        """Uploads a file; the document as acknowledged."""
        response = self.send(collection_id, name, content, metadata)
        assert response.status_code == 202, response.text
        document: Json = response.json()["document"]
        return document

    def settled(self, document_id: str) -> Json:
        """The document, once it is ready or has failed: its last event."""
        *_, last = self.events("GET", f"/v1/documents/{document_id}/events")
        assert last.data["status"] in SETTLED, last
        return last.data

    def ingest(self, collection_id: str, name: str, content: bytes, metadata: Mapping[str, str] | None = None) -> Json:
        """Uploads a file and waits until it is searchable."""
        document = self.settled(self.upload(collection_id, name, content, metadata)["id"])
        assert document["status"] == "ready", document
        return document

    def ingest_files(self, collection_id: str, paths: Iterable[Path]) -> dict[str, Json]:
        """Uploads files and waits until they are searchable; documents by name."""
        uploaded = [self.upload(collection_id, path.name, path.read_bytes()) for path in paths]
        return {each["name"]: self.settled(each["id"]) for each in uploaded}

    def search(self, collection_id: str, query: str, **more: Any) -> Json:
        return self.post("/v1/search", {"query": query, "collection_ids": [collection_id], **more})

    def qa(self, collection_id: str, question: str, **more: Any) -> Json:
        return self.post("/v1/qa", {"question": question, "collection_ids": [collection_id], **more})

    def events(
        self, method: str, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Event]:
        """An event stream to its end. Closing it early hangs up."""
        with self.http.stream(method, path, json=body, headers={**EVENT_STREAM, **(headers or {})}) as response:
            if response.status_code != 200:
                response.read()
                raise AssertionError(f"{method} {path}: {response.status_code} {response.text}")
            assert response.headers["content-type"].startswith("text/event-stream")
            yield from parse_events(response.iter_lines())

    def ask(self, collection_id: str, question: str, **more: Any) -> Iterator[Event]:
        """A question, answered as events."""
        return self.events("POST", "/v1/qa", {"question": question, "collection_ids": [collection_id], **more})

    def chat(self, collection_id: str, message: str, **more: Any) -> Iterator[Event]:
        """A message, answered as events by an agent that is named: no model is asked which one it is for."""
        body = {"message": message, "agent": "reasoning", **more}
        return self.events("POST", f"/v1/collections/{collection_id}/chat", body)

    def converse(self, message: str, **more: Any) -> Iterator[Event]:
        """A message that may use tools, answered as events."""
        return self.events("POST", "/v1/chat", {"message": message, **more})

    def converse_json(self, message: str, *, status: int = 200, **more: Any) -> Json:
        """The same as JSON; 202 when a person has to decide first."""
        response = self.http.post("/v1/chat", json={"message": message, **more}, headers={"Accept": "application/json"})
        assert response.status_code == status, response.text
        return ok(response)

    def decide(self, approval: Json, decision: str) -> Json:
        """Allows or denies the call that was shown."""
        body = {"decision": decision, "arguments_hash": approval["arguments_hash"]}
        return self.post(f"/v1/approvals/{approval['id']}", body)

    def replay(self, run_id: str, after: int = 0) -> list[Event]:
        """A finished run's events from the log."""
        return list(self.events("GET", f"/v1/runs/{run_id}/events?after={after}"))


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """WHATWG event streams, as far as the gateway uses them."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                seq = int(fields["id"]) if "id" in fields else None
                yield Event(fields["event"], json.loads(fields["data"]), seq)
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def ok(response: httpx.Response) -> Json:
    """The JSON body of a good answer; {} when it has none."""
    assert response.is_success, (
        f"{response.request.method} {response.request.url}: {response.status_code} {response.text}"
    )
    body: Json = response.json() if response.content else {}
    return body


def problem(response: httpx.Response, status: int, reason: str) -> Json:
    """The body of an error, whose shape is checked (RFC 9457 and our own members)."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"].startswith("application/problem+json")
    body: Json = response.json()
    assert body["status"] == status
    assert body["reason"] == reason, body
    assert {"type", "title", "code", "detail", "trace_id", "retryable"} <= body.keys()
    assert body["detail"]
    return body


def shown_text(events: Iterable[Event]) -> str:
    """What a client shows after these events: each token replaces from its offset on."""
    text = ""
    for event in events:
        if event.kind == "token":
            text = text[: event.data["offset"]] + event.data["text"]
    return text


def only(events: Iterable[Event], kind: str) -> Event:
    """The one event of that kind."""
    found = [event for event in events if event.kind == kind]
    assert len(found) == 1, f"{len(found)} events {kind!r}"
    return found[0]


def assert_complete(events: list[Event]) -> None:
    """A whole run: every seq once, in order, `done` last and only there, one answer that is what was shown."""
    seen = [(event.seq, event.kind) for event in events]
    assert [seq for seq, _ in seen] == list(range(1, len(events) + 1)), seen
    assert [event.kind for event in events].count("done") == 1
    assert events[-1].kind == "done"
    assert only(events, "answer").data["text"] == shown_text(events)
