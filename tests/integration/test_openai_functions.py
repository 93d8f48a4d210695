"""OpenAI's API of a running system with a scripted model, by the official client: functions of the caller's, answers by a schema,
how words are chosen, and responses that go on from others."""

import asyncio
import json
import os
import signal
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any, cast

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from kit.testing.openai import Reply
from tests.integration.api import Api, Event
from tests.integration.conftest import Model
from tests.integration.scripting import calling, observations_in
from tests.integration.system import START_TIMEOUT_S, Groundwork, wait_until
from tests.integration.test_openai import strict

pytestmark = pytest.mark.integration

QUESTION = "How long is the leave, and what is the weather in Emden?"
FACT = "Every employee has 28 days of leave a year."
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = [
    {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": PARAMETERS}}
]
FLAT: Any = [{"type": "function", "name": "weather", "description": "Tells it.", "parameters": PARAMETERS}]
CALL = calling(("weather", {"city": "Emden"}))
ANSWER = ["Every employee has 28 days of leave a year [1]. ", "In Emden it rains."]


@pytest.fixture(scope="module")
def client(model_system: Groundwork) -> Iterator[OpenAI]:
    with OpenAI(api_key="any", base_url=f"{model_system.base_url}/v1", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def model(model_system: Groundwork) -> str:
    """The name of the model that searches a collection with the fact."""
    with Api.open(model_system.base_url) as api:
        collection_id = api.new_collection()
        assert api.ingest(collection_id, "leave.txt", FACT.encode())["status"] == "ready"
    return f"groundwork@{collection_id}"


def test_function_is_called_by_the_caller_and_the_answer_goes_on(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(CALL, Reply(ANSWER))
    messages: list[Any] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": QUESTION}]
    asked = strict(
        client.chat.completions.create(model=model, messages=messages, tools=WEATHER, tool_choice="required")
    )
    (choice,) = asked.choices
    (call,) = choice.message.tool_calls
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Emden"})
    (request,) = scripted.scripted.requests
    assert request["tool_choice"] == "required"
    assert [each["function"]["name"] for each in request["tools"]] == ["weather"]
    assert "Be kind." in request["messages"][0]["content"]
    assert FACT in request["messages"][-1]["content"]

    messages += [choice.message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "Rain, 9 degrees."}]
    answer = strict(client.chat.completions.create(model=model, messages=messages, tools=WEATHER))
    (said,) = answer.choices
    assert (said.message.content, said.finish_reason) == ("".join(ANSWER), "stop")
    (annotation,) = said.message.annotations
    assert said.message.content[annotation.url_citation.start_index :].startswith("[1]")
    assert observations_in(scripted.scripted.requests[-1]) == ["> Rain, 9 degrees."]


def test_loop_of_functions_goes_on_after_every_gateway_was_killed(
    client: OpenAI, model: str, scripted: Model, model_system: Groundwork
) -> None:
    scripted.will(CALL, Reply(ANSWER))
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    key = {"Idempotency-Key": uuid.uuid4().hex}
    asked = client.chat.completions.create(model=model, messages=messages, tools=WEATHER, extra_headers=key)
    kill_all(model_system, "gateway")
    again = strict(client.chat.completions.create(model=model, messages=messages, tools=WEATHER, extra_headers=key))
    assert again.choices[0].message.tool_calls == asked.choices[0].message.tool_calls
    (call,) = again.choices[0].message.tool_calls or ()
    told = {"role": "tool", "tool_call_id": call.id, "content": "Rain, 9 degrees."}
    messages += [again.choices[0].message.model_dump(), told]
    answer = strict(client.chat.completions.create(model=model, messages=messages, tools=WEATHER))
    assert answer.choices[0].message.content == "".join(ANSWER)
    assert len(scripted.scripted.requests) == 2, "nothing is asked twice"
    assert observations_in(scripted.scripted.requests[-1]) == ["> Rain, 9 degrees."]


def kill_all(system: Groundwork, service: str) -> None:
    """Kills all processes of a service, and waits until others stand in their place."""
    killed = {each["pid"] for each in system.processes_of(service)}
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: system.is_up(service) and killed.isdisjoint(each["pid"] for each in system.processes_of(service)),
        f"{service} is up again",
        timeout_s=START_TIMEOUT_S,
        more=system.printed,
    )


def test_stream_ends_in_the_calls(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(Reply(["Let me see.", *CALL.pieces], finish_reason="tool_calls"))  # type: ignore[arg-type]
    asked: list[Any] = [{"role": "user", "content": QUESTION}]
    with client.chat.completions.stream(model=model, messages=asked, tools=WEATHER) as stream:
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls or ()
    assert (final.choices[0].finish_reason, call.function.arguments) == ("tool_calls", '{"city": "Emden"}')


def test_two_calls_are_one_where_only_one_at_a_time_is_wanted(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(calling(("weather", {"city": "Emden"}), ("weather", {"city": "Leer"})))
    asked: list[Any] = [{"role": "user", "content": QUESTION}]
    both = client.chat.completions.create(model=model, messages=asked, tools=WEATHER)
    assert len(both.choices[0].message.tool_calls or ()) == 2
    one = client.chat.completions.create(model=model, messages=asked, tools=WEATHER, parallel_tool_calls=False)
    assert len(one.choices[0].message.tool_calls or ()) == 1


def test_call_whose_arguments_do_not_fit_is_written_again(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(calling(("weather", {"town": "Emden"})), CALL)
    answer = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": QUESTION}], tools=WEATHER
    )
    assert answer.choices[0].message.tool_calls
    assert "do not fit" in observations_in(scripted.scripted.requests[-1])[0]


def test_response_goes_on_from_the_one_before(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(CALL, Reply(ANSWER), Reply(["Nothing else [1]."]))
    first = strict(client.responses.create(model=model, input=QUESTION, tools=FLAT))
    (call,) = first.output
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "weather", {"city": "Emden"})
    given: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}]
    second = strict(client.responses.create(model=model, input=given, tools=FLAT, previous_response_id=first.id))
    assert second.output_text == "".join(ANSWER)
    assert observations_in(scripted.scripted.requests[-1]) == ["> Rain."]
    items = client.responses.input_items.list(second.id, order="asc").data
    assert [each.type for each in items] == ["message", "function_call", "function_call_output"]

    with client.responses.stream(model=model, input="And what else?", previous_response_id=second.id) as events:
        third = events.get_final_response()
    assert third.previous_response_id == second.id
    told = [(each["role"], each["content"]) for each in scripted.scripted.requests[-1]["messages"]]
    assert ("user", QUESTION) in told
    assert ("assistant", "Every employee has 28 days of leave a year. In Emden it rains.") in told

    kept = strict(client.responses.retrieve(second.id))
    assert (kept.output_text, kept.status) == (second.output_text, "completed")
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model=model, input="And?", previous_response_id=second.id)


def test_response_streams_its_calls(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(CALL)
    with client.responses.stream(model=model, input=QUESTION, tools=FLAT) as events:
        kinds = [each.type for each in events]
        final = events.get_final_response()
    assert "response.function_call_arguments.done" in kinds
    assert "response.output_text.delta" not in kinds
    assert [each.type for each in final.output] == ["function_call"]


def test_results_must_fit_the_calls(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(CALL)
    first = client.responses.create(model=model, input=QUESTION, tools=FLAT)
    wrong: Any = [{"type": "function_call_output", "call_id": "call9", "output": "Rain."}]
    with pytest.raises(openai.BadRequestError, match="call9"):
        client.responses.create(model=model, input=wrong, tools=FLAT, previous_response_id=first.id)
    calls = [{"id": each, "type": "function", "function": {"name": "w", "arguments": "{}"}} for each in "ab"]
    messages: list[Any] = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "Rain."},
    ]
    with pytest.raises(openai.BadRequestError, match="is missing"):
        client.chat.completions.create(model=model, messages=messages, tools=WEATHER)


class Leave(BaseModel):
    days: int
    who: str


def test_answer_follows_a_schema_and_its_citations_have_places(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(Reply(['{"days": 28, "who": "Every employee has leave [1]."}']))
    asked: list[Any] = [{"role": "user", "content": "How long is the leave?"}]
    parsed = client.chat.completions.parse(model=model, messages=asked, response_format=Leave)
    message = parsed.choices[0].message
    assert message.parsed == Leave(days=28, who="Every employee has leave.")
    (annotation,) = message.annotations or ()
    assert (message.content or "")[: annotation.url_citation.start_index].endswith("has leave")
    assert scripted.scripted.requests[-1]["response_format"]["json_schema"]["schema"]["required"] == ["days", "who"]
    answer = client.responses.parse(model=model, input="How long is the leave?", text_format=Leave)
    assert answer.output_parsed == Leave(days=28, who="Every employee has leave.")
    with client.responses.stream(model=model, input="How long is the leave?", text_format=Leave) as events:
        assert events.get_final_response().output_parsed == answer.output_parsed
    anything = client.chat.completions.create(model=model, messages=asked, response_format={"type": "json_object"})
    assert json.loads(anything.choices[0].message.content or "")["days"] == 28


def test_answer_that_follows_no_schema_is_a_refusal_in_words(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(Reply(["I would rather not."]))
    parsed = client.chat.completions.parse(
        model=model, messages=[{"role": "user", "content": "How long is the leave?"}], response_format=Leave
    )
    assert (parsed.choices[0].message.parsed, parsed.choices[0].message.content) == (None, None)
    assert parsed.choices[0].message.refusal


def test_schema_and_functions_work_together(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(CALL, Reply(["Rain."]), Reply(['{"days": 28, "who": "Emden"}']))
    first = client.responses.parse(model=model, input=QUESTION, tools=FLAT, text_format=Leave)
    given: Any = [{"type": "function_call_output", "call_id": first.output[0].call_id, "output": "Rain."}]  # type: ignore[union-attr]
    second = client.responses.parse(
        model=model, input=given, tools=FLAT, text_format=Leave, previous_response_id=first.id
    )
    assert second.output_parsed == Leave(days=28, who="Emden")


def test_words_are_chosen_as_the_request_says(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(Reply([f"{FACT[:-1]} [1]."]))
    client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "How long is the leave?"}],
        temperature=0.7,
        top_p=0.9,
        seed=7,
        stop=["END", "STOP"],
        max_completion_tokens=99,
    )
    *chooses_agent, request = scripted.scripted.requests
    assert [each["temperature"] for each in chooses_agent] == [0.0] * len(chooses_agent)
    wished = {"temperature": 0.7, "top_p": 0.9, "seed": 7, "stop": ["END", "STOP"], "max_tokens": 99}
    assert {name: request[name] for name in wished} == wished


def test_response_that_is_not_to_be_stored_is_gone(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(Reply([f"{FACT[:-1]} [1]."]))
    answer = client.responses.create(model=model, input="How long is the leave?", store=False)
    wait_until(lambda: is_gone(client, answer.id), "what is not to be stored is deleted", timeout_s=90)


def is_gone(client: OpenAI, response_id: str) -> bool:
    """Its run may be closing its books when it is deleted: then it goes within a minute."""
    try:
        client.responses.retrieve(response_id)
    except openai.NotFoundError:
        return True
    return False


def test_response_in_the_background_is_fetched_later(client: OpenAI, model: str, scripted: Model) -> None:
    scripted.will(Reply([f"{FACT[:-1]} [1]."]))
    begun = strict(client.responses.create(model=model, input="How long is the leave?", background=True))
    assert begun.status == "in_progress"
    events = client.get(f"/runs/{begun.id.removeprefix('resp_')}/events", cast_to=str)
    assert "event: done" in events
    assert strict(client.responses.retrieve(begun.id)).output_text == f"{FACT[:-1]} [1]."


def test_client_that_hangs_up_ends_the_run_and_its_model(
    client: OpenAI, model: str, scripted: Model, model_api: Api
) -> None:
    asked: list[Any] = [{"role": "user", "content": QUESTION}]
    streams: list[Callable[[], openai.Stream[Any]]] = [
        lambda: client.chat.completions.create(model=model, messages=asked, stream=True),
        lambda: client.responses.create(model=model, input=QUESTION, stream=True),
    ]
    for begin in streams:
        scripted.will(Reply(ANSWER, gate=asyncio.Event(), gate_at=1))
        stream = begin()
        wait_until(lambda: len(scripted.scripted.requests) == 1, "the model writes")
        stream.close()
        done = model_api.replay(stream.response.headers["x-run-id"])[-1]
        assert (done.kind, done.data["status"]) == ("done", "cancelled")
        wait_until(scripted.scripted.hung_up.is_set, "the connection to the model is closed")


def test_run_of_our_own_api_goes_on_when_its_client_hangs_up(model: str, scripted: Model, model_api: Api) -> None:
    gate = asyncio.Event()
    scripted.will(Reply(ANSWER, gate=gate, gate_at=1))
    events = cast("Generator[Event, None, None]", model_api.ask(model.partition("@")[2], QUESTION))
    run_id = next(events).data["run_id"]
    wait_until(lambda: len(scripted.scripted.requests) == 1, "the model writes")
    events.close()
    scripted.open(gate)
    assert model_api.replay(run_id)[-1].data["status"] == "completed"
