"""`groundwork demo` against a scripted server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.unit.cli.conftest import FakeServer, Handler, run_event

Command = Callable[..., Result]
CONTENT = b"The ferry leaves at nine."
LISTED = {"collection": "demo", "documents": ["ferry.txt"], "questions": ["When does it leave?", "What's a ferry?"]}
COLLECTION = {"id": "demo", "name": "demo", "owner": "anna", "visibility": "private"}
DOCUMENT = {
    "id": "d1",
    "name": "ferry.txt",
    "status": "ready",
    "sha256": hashlib.sha256(CONTENT).hexdigest(),
    "progress": 1,
    "error": None,
    "updated_at": "2026-01-01T00:00:00.000Z",
}
CITATION = {"number": 1, "document_name": "ferry.txt", "text": CONTENT.decode(), "heading_path": []}
ANSWER = run_event(
    "answer", 2, text="At nine. [1]", citations=[CITATION], support_status="supported", method="extractive"
)


@pytest.fixture
def stored(server: FakeServer) -> dict[str, list[dict[str, Any]]]:
    """What the server has, and is given: collections and documents."""
    stored: dict[str, list[dict[str, Any]]] = {"collections": [], "documents": []}

    def made(http: Handler) -> None:
        stored["collections"].append(COLLECTION)
        http.json(COLLECTION, 201)

    def uploaded(http: Handler) -> None:
        assert CONTENT in http.body
        stored["documents"].append(DOCUMENT)
        http.json({"document": DOCUMENT}, 202)

    def sample(http: Handler) -> None:
        http.send_response(200)
        http.send_header("content-length", str(len(CONTENT)))
        http.end_headers()
        http.wfile.write(CONTENT)

    server.on("GET", "/samples/samples.json", lambda http: http.json(LISTED))
    server.on("GET", "/samples/ferry.txt", sample)
    server.on("GET", "/v1/collections/default", lambda http: http.json({"id": "default", "owner": "anna"}))
    server.on("GET", "/v1/collections", lambda http: http.json({"collections": stored["collections"]}))
    server.on("POST", "/v1/collections", made)
    documents = "/v1/collections/demo/documents"
    server.on("GET", documents, lambda http: http.json({"documents": stored["documents"], "next_page_token": None}))
    server.on("POST", documents, uploaded)
    server.on("GET", "/v1/events", lambda http: http.stream())
    done = run_event("done", 3, status="completed")
    server.on("POST", "/v1/collections/demo/chat", lambda http: http.stream(run_event("run", 1), ANSWER, done))
    return stored


@pytest.mark.usefixtures("stored")
def test_samples_are_loaded_asked_and_questions_suggested(server: FakeServer, groundwork: Command) -> None:
    result = groundwork("demo")
    assert result.exit_code == 0
    assert result.stdout == "At nine. [1]\n\n[1] ferry.txt: “The ferry leaves at nine.”\n"
    assert "1 sample documents can be asked now" in result.stderr
    assert f"GROUNDWORK_URL={server.url} " in result.stderr
    assert "ask 'What'\"'\"'s a ferry?' --collection demo" in result.stderr
    (question,) = (json.loads(body) for _, path, body in server.requests if path == "/v1/collections/demo/chat")
    assert question["message"] == "When does it leave?"


def test_a_second_time_they_are_there_and_nothing_is_uploaded(
    server: FakeServer, groundwork: Command, stored: dict[str, Any]
) -> None:
    stored["collections"], stored["documents"] = [COLLECTION], [DOCUMENT]
    result = groundwork("demo")
    assert result.exit_code == 0
    assert "are there already, in the collection `demo`" in result.stderr
    assert server.asked("POST") == ["/v1/collections/demo/chat"]


def test_a_sample_that_has_changed_is_uploaded_again(
    server: FakeServer, groundwork: Command, stored: dict[str, Any]
) -> None:
    stored["collections"], stored["documents"] = [COLLECTION], [{**DOCUMENT, "sha256": "00"}]
    told = json.loads(groundwork("demo", "--json").stdout)
    assert (told["loaded_count"], told["collection_id"], told["answer"]["answer"]) == (1, "demo", "At nine. [1]")
    assert "/v1/collections/demo/documents" in server.asked("POST")


def test_a_collection_of_that_name_of_somebody_else_is_left_alone(
    server: FakeServer, groundwork: Command, stored: dict[str, Any]
) -> None:
    stored["collections"] = [{**COLLECTION, "owner": "bert"}]
    groundwork("demo")
    assert ("POST", "/v1/collections", b'{"name":"demo"}') in server.requests


def test_a_server_without_samples_says_so(groundwork: Command) -> None:
    result = groundwork("demo")
    assert result.exit_code == 1
    assert "has no samples" in result.stderr
