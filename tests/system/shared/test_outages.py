"""Services that hang instead of dying: their ports are open, their health is old, and they do not answer. Users get an answer in
a lesser way that says so, or a clear refusal, and never a stack of somebody's internals."""

import pytest

from tests.integration.api import Api, Event, Json, only, problem, shown_text
from tests.integration.conftest import Library
from tests.integration.system import Groundwork, suspended

pytestmark = pytest.mark.integration
QUESTION = "How long is the notice period during probation?"


def degradations(events: list[Event]) -> list[Json]:
    return [event.data["degraded"] for event in events if event.kind == "thinking" and event.data["degraded"]]


def test_without_memory_a_conversation_goes_on_and_says_so(api: Api, system: Groundwork, library: Library) -> None:
    thread_id = api.post("/v1/threads")["id"]
    with suspended(system, "memory"):
        events = list(api.chat(library.collection_id, QUESTION, thread_id=thread_id))
    assert "two weeks" in shown_text(events)
    assert events[-1].data["status"] == "completed"
    assert {each["reason"] for each in degradations(events)} == {"MEMORY_UNAVAILABLE"}
    assert not [each for each in degradations(events) if "127.0.0.1" in each["message"] or "grpc" in each["message"]]


def test_without_the_model_server_words_alone_find_the_answer(api: Api, system: Groundwork, library: Library) -> None:
    with suspended(system, "reranker"):  # asked in other words, for what was asked before is remembered
        answer = api.qa(library.collection_id, "During probation, how long is the notice period?")
    assert "two weeks" in answer["answer"]
    assert [each["part"] for each in answer["degraded"]] == ["dense", "rerank"]


def test_without_search_the_answer_says_so_and_invents_nothing(api: Api, system: Groundwork, library: Library) -> None:
    with suspended(system, "retriever"):
        events = list(api.ask(library.collection_id, QUESTION))
    answer = only(events, "answer").data
    assert (answer["support_status"], answer["citations"]) == ("unavailable", [])
    assert [each["reason"] for each in degradations(events)] == ["SEARCH_UNAVAILABLE"]
    assert events[-1].kind == "done"


def test_without_the_message_store_questions_and_uploads_are_refused_with_a_time_to_come_back(
    api: Api, system: Groundwork, library: Library
) -> None:
    with suspended(system, "nats"):
        # First, for it shows nothing once it has not heard of deletions for half a minute.
        found = api.search(library.collection_id, QUESTION)
        asked = api.http.post("/v1/qa", json={"question": QUESTION, "collection_ids": [library.collection_id]})
        sent = api.send(library.collection_id, "late.txt", b"This comes too late.")
    for response in (asked, sent):
        assert problem(response, 503, "NATS_UNAVAILABLE")["retryable"]
        assert int(response.headers["retry-after"]) >= 1
    assert found["hits"], "search needs no message store"
    assert "two weeks" in api.qa(library.collection_id, QUESTION)["answer"]
