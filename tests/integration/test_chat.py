"""Chats with tools where no language model is set up, as a user gets the system: the words of the message decide."""

import pytest

from tests.integration.api import Api, assert_complete, only, problem
from tests.integration.conftest import Library
from tests.integration.scripting import kinds
from tests.integration.system import wait_until

pytestmark = pytest.mark.integration

QUESTION = "How long is the notice period during probation?"


def test_question_is_searched_by_the_tool_and_cited(api: Api, library: Library) -> None:
    events = list(api.converse(QUESTION, collection_ids=[library.collection_id]))
    assert_complete(events)
    expected = ["run", "plan", "tool", "tool_result", "retrieval", "verification", "answer", "usage", "done"]
    assert kinds(events) == expected
    assert only(events, "plan").data["route"] == "search"
    call, result = only(events, "tool").data, only(events, "tool_result").data
    assert (call["name"], result["ok"], result["error"]) == ("search", True, None)
    assert call["call_id"] == result["call_id"]
    answer = only(events, "answer").data
    assert "two weeks" in answer["text"]
    assert (answer["method"], answer["support_status"]) == ("extractive", "supported")
    assert {each["document_id"] for each in answer["citations"]} == {library.id_of("handbook.md")}
    assert api.replay(events[0].data["run_id"]) == events


def test_sum_is_done_and_told_as_json(api: Api) -> None:
    body = api.converse_json("What is 12*7?")
    assert (body["answer"], body["status"], body["citations"]) == ("12*7 = 84", "completed", [])
    (call,) = body["tool_calls"]
    assert (call["name"], call["arguments"], call["ok"]) == ("math_eval", {"expression": "12*7"}, True)
    wait_until(lambda: api.get(f"/v1/runs/{body['run_id']}")["status"] == "completed", "the run has ended")


def test_small_talk_calls_nothing_and_says_what_can_be_asked(api: Api) -> None:
    events = list(api.converse("Hello!"))
    assert_complete(events)
    assert kinds(events) == ["run", "plan", "answer", "usage", "done"]
    assert "your documents" in only(events, "answer").data["text"]


def test_only_the_named_tools_are_used(api: Api) -> None:
    body = api.converse_json(QUESTION, tools=[])
    assert (body["tool_calls"], body["citations"], body["support_status"]) == ([], [], "unavailable")
    assert "Allow a tool" in body["answer"]
    listed = {each["name"] for each in api.get("/v1/tools")["tools"]}
    assert {"search", "math_eval", "rag_index"} <= listed
    assert "send_email" not in listed, "no mail server is set up"
    refused = api.http.post("/v1/chat", json={"message": "Hello!", "tools": ["search", "launch_rocket"]})
    assert "launch_rocket" in problem(refused, 400, "INVALID_RUN_REQUEST")["detail"]


def test_thread_keeps_the_turns_of_a_chat(api: Api, library: Library) -> None:
    thread_id = api.post("/v1/threads")["id"]
    messages = ["When was the lighthouse of Roter Sand finished?", "And when was it switched off?", "What is 12*7?"]
    answers = [
        api.converse_json(message, thread_id=thread_id, collection_ids=[library.collection_id]) for message in messages
    ]
    assert "1986" in answers[1]["answer"], "understood from the turn before"
    thread = api.get(f"/v1/threads/{thread_id}")
    told = [(each["role"], each["run_id"], each["text"]) for each in thread["messages"]]
    assert told == [
        turn
        for message, body in zip(messages, answers, strict=True)
        for turn in (("user", body["run_id"], message), ("assistant", body["run_id"], body["answer"]))
    ]
