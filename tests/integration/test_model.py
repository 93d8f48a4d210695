"""Answers by a language model: streamed as they are written, stopped when told, and replaced by quotes when the model fails."""

import asyncio
import threading
from dataclasses import dataclass

import pytest

from kit.testing.openai import Reply
from tests.integration.api import Api, Event, Json, assert_complete, only, problem, shown_text
from tests.integration.conftest import Model
from tests.integration.system import Groundwork, another_gateway, wait_until

pytestmark = pytest.mark.integration

QUESTION = "How long is the notice period during probation?"
GOOD = ("During ", "probation ", "the notice ", "period is ", "two weeks ", "[1].")
TOO_LONG = '{"error": {"message": "This model\'s maximum context length is 16384 tokens", "code": 400}}'
GOOD_TEXT = "During probation the notice period is two weeks [1]."


def degradations(events: list[Event]) -> list[Json]:
    return [event.data["degraded"] for event in events if event.kind == "thinking" and event.data["degraded"]]


def test_an_answer_is_shown_while_the_model_still_writes_it(model_api: Api, handbook: str, scripted: Model) -> None:
    gate = asyncio.Event()
    scripted.will(Reply(GOOD, gate=gate, gate_at=3))
    events: list[Event] = []
    for event in model_api.ask(handbook, QUESTION):
        events.append(event)
        if event.kind == "token":
            scripted.open(gate)  # until here the model has not finished
    assert_complete(events)
    answer = only(events, "answer").data
    assert answer["text"] == GOOD_TEXT
    assert (answer["method"], answer["support_status"]) == ("model", "similar_wording")
    assert answer["citations"][0]["document_name"] == "handbook.md"
    usage = only(events, "usage").data
    assert (usage["model"], usage["prompt_tokens"], usage["completion_tokens"]) == ("scripted", 10, len(GOOD))
    assert degradations(events) == []


def test_the_model_is_given_the_sources_and_the_conversation(model_api: Api, handbook: str, scripted: Model) -> None:
    thread_id = model_api.post("/v1/threads")["id"]
    scripted.will(Reply(["A leased bicycle costs 28 euros a month [1]."]))
    list(model_api.chat(handbook, "What does a leased bicycle cost?", thread_id=thread_id))
    list(model_api.chat(handbook, "And may it be used in private?", thread_id=thread_id))
    first, second = (request["messages"] for request in scripted.scripted.requests)
    assert "28 euros" in first[-1]["content"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert second[1]["content"] == "What does a leased bicycle cost?"


def test_cancel_stops_the_model_and_the_run_stays_cancelled(model_api: Api, handbook: str, scripted: Model) -> None:
    scripted.will(Reply(GOOD, gate=asyncio.Event(), gate_at=2))
    events: list[Event] = []
    for event in model_api.ask(handbook, QUESTION):
        events.append(event)
        if event.kind == "token" and len([each for each in events if each.kind == "token"]) == 1:
            run = model_api.post(f"/v1/runs/{event.data['run_id']}/cancel")
            assert run["status"] == "running"
    assert events[-1].data["status"] == "cancelled"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert not [event for event in events if event.kind == "answer"]
    wait_until(scripted.scripted.hung_up.is_set, "the connection to the model is closed")
    run_id = events[0].data["run_id"]
    wait_until(lambda: model_api.get(f"/v1/runs/{run_id}")["status"] == "cancelled", "the run is cancelled")
    assert model_api.replay(run_id) == events
    assert model_api.post(f"/v1/runs/{run_id}/cancel")["status"] == "cancelled", "a second wish is harmless"


def test_a_stopped_question_stays_in_its_thread_and_is_understood_later(
    model_api: Api, handbook: str, scripted: Model
) -> None:
    thread_id = model_api.post("/v1/threads")["id"]
    scripted.will(Reply(["A leased ", "bicycle ", "costs "], gate=asyncio.Event(), gate_at=2))
    for event in model_api.chat(handbook, "What does a leased bicycle cost?", thread_id=thread_id):
        if event.kind == "token":
            model_api.post(f"/v1/runs/{event.data['run_id']}/cancel")
    asked, written = model_api.get(f"/v1/threads/{thread_id}")["messages"]
    assert (asked["text"], asked["run_status"]) == ("What does a leased bicycle cost?", None)
    assert written["text"].startswith("A leased")
    assert written["run_status"] == "cancelled"
    scripted.will(Reply(["It costs 28 euros a month【1†source】."]))
    list(model_api.chat(handbook, "And may it be used in private?", thread_id=thread_id))
    told = [message["content"] for message in scripted.scripted.requests[0]["messages"]]
    assert "What does a leased bicycle cost?" in told
    assert any(each.startswith("A leased") and "stopped" in each for each in told)
    assert "(handbook.md; " in told[-1], "each passage with its headings"


def test_a_cancelled_question_without_a_stream_ends_in_a_problem(
    model_api: Api, handbook: str, scripted: Model
) -> None:
    scripted.will(Reply(GOOD, gate=asyncio.Event(), gate_at=2))

    def cancel() -> None:
        with Api.open(str(model_api.http.base_url)) as api:
            wait_until(lambda: len(scripted.scripted.requests) > 0, "the model is asked")
            api.post(f"/v1/runs/{api.get('/v1/runs', page_size=1)['runs'][0]['id']}/cancel")

    canceller = threading.Thread(target=cancel)
    canceller.start()
    response = model_api.http.post("/v1/qa", json={"question": QUESTION, "collection_ids": [handbook]})
    canceller.join()
    body = problem(response, 499, "RUN_CANCELLED")
    run = f"/v1/runs/{body['run_id']}"
    wait_until(lambda: model_api.get(run)["status"] == "cancelled", "the run is cancelled")


@dataclass(frozen=True)
class Failure:
    """A way in which a model fails, and what is said about it."""

    reply: Reply
    reason: str


@pytest.mark.parametrize(
    "failure",
    [
        Failure(Reply(status=500), "LLM_UNAVAILABLE"),
        Failure(Reply(status=401), "LLM_CREDENTIALS_REFUSED"),
        Failure(Reply(status=400, body=TOO_LONG), "LLM_PROMPT_TOO_LONG"),
        Failure(Reply(body="<!doctype html>", content_type="text/html"), "LLM_WRONG_ENDPOINT"),
        Failure(Reply(GOOD, break_after=0), "LLM_UNAVAILABLE"),
        Failure(Reply(GOOD, break_after=4), "LLM_UNAVAILABLE"),
        Failure(Reply(()), "LLM_BAD_ANSWER"),
        Failure(Reply(["   \n", " "]), "LLM_BAD_ANSWER"),
        Failure(Reply(["Bananas grow ", "on the moon [1]."]), "UNSUPPORTED_ANSWER"),
    ],
    ids=("500", "401", "too long", "web page", "broken at once", "broken in the middle", "empty", "blank", "rubbish"),
)
def test_a_failing_model_is_replaced_by_quotes_and_that_is_said(
    model_api: Api, handbook: str, scripted: Model, failure: Failure
) -> None:
    scripted.will(failure.reply)
    events = list(model_api.ask(handbook, QUESTION))
    assert_complete(events)
    assert [each["part"] for each in degradations(events)] == ["llm"]
    assert [each["reason"] for each in degradations(events)] == [failure.reason]
    answer = only(events, "answer").data
    assert (answer["method"], answer["support_status"]) == ("extractive", "supported")
    assert "two weeks" in answer["text"]
    assert events[-1].data["status"] == "completed"
    body = model_api.qa(handbook, QUESTION)
    assert [each["reason"] for each in body["degraded"]] == [failure.reason]
    assert body["method"] == "extractive"


def test_half_a_sentence_is_cut_off_and_the_answer_is_not_supported_as_a_whole(
    model_api: Api, handbook: str, scripted: Model
) -> None:
    scripted.will(Reply([*GOOD, " After ", "probation the notice"], finish_reason="length"))
    events = list(model_api.ask(handbook, QUESTION))
    assert_complete(events)
    assert [each["reason"] for each in degradations(events)] == ["ANSWER_LENGTH"]
    answer = only(events, "answer").data
    assert (answer["text"], answer["method"], answer["support_status"]) == (GOOD_TEXT, "model", "partial")
    assert shown_text(events) == GOOD_TEXT


def test_thoughts_are_neither_shown_nor_answered(model_api: Api, handbook: str, scripted: Model) -> None:
    thoughts = [{"reasoning_content": "The handbook [1] says so."}, "<think>", "Let me see [2].</th", "ink>\n\n"]
    scripted.will(Reply([*thoughts, *GOOD]))
    events = list(model_api.ask(handbook, QUESTION))
    assert only(events, "answer").data["text"] == shown_text(events) == GOOD_TEXT
    assert "Let me" not in str([event.data for event in events])


def test_a_model_that_falls_silent_is_given_up(model_api: Api, handbook: str, scripted: Model) -> None:
    scripted.will(Reply(GOOD, gate=asyncio.Event(), gate_at=2))
    events = list(model_api.ask(handbook, QUESTION))
    assert_complete(events)
    assert [each["reason"] for each in degradations(events)] == ["LLM_TIMEOUT"]
    assert "two weeks" in shown_text(events)


def test_a_source_that_the_model_invents_is_removed_before_anyone_sees_it(
    model_api: Api, handbook: str, scripted: Model
) -> None:
    scripted.will(Reply([*GOOD[:-1], "[1]", "[", "7", "]."]))
    events = list(model_api.ask(handbook, QUESTION))
    assert_complete(events)
    assert "[7" not in "".join(event.data["text"] for event in events if event.kind == "token")
    assert [each["reason"] for each in degradations(events)] == ["INVENTED_CITATION"]
    assert [each["number"] for each in only(events, "answer").data["citations"]] == [1]


@pytest.mark.parametrize("verify", ["remove", "off"])
def test_a_sentence_that_no_source_carries_is_left_out_or_not_checked(
    model_api: Api, handbook: str, scripted: Model, verify: str
) -> None:
    invented = "Bananas grow on the moon."
    scripted.will(Reply([*GOOD, f" {invented} [1]"]))
    asked = {"question": QUESTION, "collection_ids": [handbook], "verify": verify}
    answer = model_api.post("/v1/qa", asked)
    checked = answer["verification"]
    assert checked is not None, answer
    assert checked["verify"] == verify
    assert (invented in answer["answer"]) is (verify != "remove")
    assert (f"{invented} [" in answer["answer"]) is (verify == "off")
    verdicts = {each["sentence"]: each["verdict"] for each in checked["sentences"]}
    if verify == "off":
        assert (verdicts, answer["support_status"], checked["checked_by"]) == ({}, None, None)
    else:
        assert verdicts[invented] == "not_found"
        assert (checked["removed"], checked["checked_by"]["measured"]) == (int(verify == "remove"), False)
    stored = f"/v1/runs/{answer['run_id']}"
    wait_until(lambda: model_api.get(stored)["answer"], "the answer is kept")
    assert model_api.get(stored)["answer"]["verification"] == checked


def test_a_word_for_verify_that_nobody_knows_is_refused(model_api: Api, handbook: str) -> None:
    asked = {"question": QUESTION, "collection_ids": [handbook], "verify": "perhaps"}
    assert model_api.http.post("/v1/qa", json=asked).status_code == 400


def test_a_refusal_of_the_model_is_a_refusal(model_api: Api, handbook: str, scripted: Model) -> None:
    scripted.will(Reply(["The documents ", "do not say."]))
    answer = model_api.qa(handbook, QUESTION)
    assert (answer["status"], answer["support_status"], answer["citations"]) == ("refused", "insufficient", [])


def test_a_dropped_stream_goes_on_at_another_gateway_and_nothing_comes_twice(
    model_api: Api, model_system: Groundwork, handbook: str, scripted: Model
) -> None:
    gate = asyncio.Event()
    scripted.will(Reply([piece for _ in range(4) for piece in GOOD], pause_s=0.06, gate=gate, gate_at=12))
    first: list[Event] = []
    stream = model_api.ask(handbook, QUESTION)
    for event in stream:
        first.append(event)
        if len([each for each in first if each.kind == "token"]) == 3:
            break
    stream.close()  # type: ignore[attr-defined] # a generator: closing it hangs up
    run_id, last_id = first[0].data["run_id"], str(first[-1].seq)
    with another_gateway(model_system) as url, Api.open(url) as other:
        rest: list[Event] = []
        for event in other.events("GET", f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": last_id}):
            rest.append(event)
            scripted.open(gate)
        assert_complete([*first, *rest])
        for api in (other, model_api):
            assert api.replay(run_id) == [*first, *rest]
            for seen in range(0, len(first) + len(rest), 5):
                assert api.replay(run_id, after=seen) == [*first, *rest][seen:]
            nothing_left = api.http.get(f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": str(rest[-1].seq)})
            assert nothing_left.status_code == 204


def test_an_operator_changes_the_model_while_everything_runs(model_api: Api, handbook: str, scripted: Model) -> None:
    scripted.will(Reply(GOOD))
    try:
        changed = model_api.http.put("/v1/models/answer", json={"provider": "scripted", "model": "another"})
        assert changed.status_code == 200, changed.text
        assert [each["model"] for each in changed.json()["chain"]] == ["another", "scripted"]
        # Whoever else is there hears of it a moment later.
        wait_until(lambda: model_api.qa(handbook, QUESTION)["usage"]["model"] == "another", "the other model is asked")
        assert scripted.scripted.requests[-1]["model"] == "another"
    finally:
        model_api.http.delete("/v1/models/answer")
    wait_until(
        lambda: model_api.qa(handbook, QUESTION)["usage"]["model"] == "scripted", "the configured model is asked"
    )
    refused = model_api.http.put("/v1/models/answer", json={"provider": "nobody", "model": "m"})
    assert "there are scripted" in problem(refused, 400, "UNKNOWN_MODEL")["detail"]
    day = model_api.get("/v1/usage", group_by="model")
    assert {row["key"] for row in day["rows"]} >= {"another", "scripted"}


def test_a_brought_model_cannot_be_one_of_this_machine(model_api: Api, handbook: str, scripted: Model) -> None:
    scripted.scripted.requests.clear()
    model = {"base_url": scripted.scripted.base_url, "api_key": "k", "model": "mine"}
    body = {"question": QUESTION, "collection_ids": [handbook], "model": model}
    problem(model_api.http.post("/v1/qa", json=body), 412, "ADDRESS_REFUSED")
    assert not scripted.scripted.requests
