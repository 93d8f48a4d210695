"""The requests of Open WebUI (0.12), a front end for OpenAI's API, against a running system with a scripted model. They are in the
shapes that it sends, as it sends them; what it reads of the answers is looked up as it does."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from kit.testing.openai import Reply
from tests.integration.api import Json
from tests.integration.conftest import Model
from tests.integration.scripting import observations_in
from tests.integration.system import Groundwork
from tests.integration.test_openai_functions import ANSWER, CALL, PARAMETERS, QUESTION, model

__all__ = ["model"]
pytestmark = pytest.mark.integration

SYSTEM = {"role": "system", "content": "Be kind."}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": PARAMETERS}}]
TITLE = "### Task:\nGenerate a concise title for the chat.\n### Chat History:\n<chat_history>\nUSER: Leave?\n</chat_history>"


@pytest.fixture(scope="module")
def provider(model_system: Groundwork) -> Iterator[httpx.Client]:
    """The connection as Open WebUI is given it: an address that ends in /v1, and a key."""
    headers = {"Authorization": "Bearer any", "Content-Type": "application/json", "User-Agent": "Open WebUI/0.12.4"}
    with httpx.Client(base_url=f"{model_system.base_url}/v1/", headers=headers, timeout=120) as client:
        yield client


def chunks_of(provider: httpx.Client, body: Json, path: str = "chat/completions") -> list[Json]:
    """Of a streamed answer: the data of its lines, to `[DONE]`."""
    with provider.stream("POST", path, json=body) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [each.removeprefix("data: ") for each in answer.iter_lines() if each.startswith("data: ")]
    return [json.loads(each) for each in lines if each != "[DONE]"]


def chat(model: str, *messages: Json, **more: Any) -> Json:
    return {"stream": True, "model": model, "messages": [SYSTEM, *messages], **more}


def test_models_are_listed_in_data(provider: httpx.Client) -> None:
    listed = provider.get("models").raise_for_status().json()["data"]
    assert {"groundwork", "groundwork/research"} <= {each["id"] for each in listed}


def test_chat_streams_text_sources_and_usage(provider: httpx.Client, model: str, scripted: Model) -> None:
    scripted.will(Reply(ANSWER))
    parameters = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 500, "frequency_penalty": 0.0, "seed": 3}
    said = {"role": "user", "content": QUESTION}
    usage = {"stream_options": {"include_usage": True}}
    chunks = chunks_of(provider, chat(model, said, **parameters, **usage))
    deltas = [each["choices"][0]["delta"] for each in chunks if each["choices"]]
    assert "".join(each.get("content") or "" for each in deltas) == "".join(ANSWER)
    sources = [each["url_citation"] for delta in deltas for each in delta.get("annotations", ())]
    assert [each["title"] for each in sources] == ["leave.txt"]
    page = httpx.get(sources[0]["url"])
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert chunks[-1]["usage"]["total_tokens"] > 0
    request = scripted.scripted.requests[-1]
    assert (request["temperature"], request["max_tokens"], request["seed"]) == (0.2, 500, 3)


def test_tools_are_called_there_and_the_stream_goes_on(provider: httpx.Client, model: str, scripted: Model) -> None:
    scripted.will(CALL, Reply(ANSWER))
    asked = {"role": "user", "content": QUESTION}
    first = chunks_of(provider, chat(model, asked, tools=TOOLS))
    (call,) = [each for chunk in first for each in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert (call["index"], call["function"]["name"]) == (0, "weather")

    kept = {name: value for name, value in call.items() if name != "index"}
    called = {"role": "assistant", "content": "", "tool_calls": [kept], "reasoning_content": "Hm."}
    told = {"role": "tool", "tool_call_id": call["id"], "content": "Rain, 9 degrees."}
    then = chunks_of(provider, chat(model, asked, called, told, tools=TOOLS))
    assert "".join(each["choices"][0]["delta"].get("content") or "" for each in then) == "".join(ANSWER)
    assert observations_in(scripted.scripted.requests[-1]) == ["> Rain, 9 degrees."]


def test_task_is_answered_without_a_stream(provider: httpx.Client, model: str, scripted: Model) -> None:
    scripted.will(Reply(["Leave [1]."]))
    body = {"model": model, "messages": [{"role": "user", "content": TITLE}], "stream": False, "max_tokens": 1000}
    answer = provider.post("chat/completions", json=body).raise_for_status().json()
    assert isinstance(answer["choices"][0]["message"]["content"], str)


def test_picture_is_refused_with_a_message_that_is_shown(provider: httpx.Client, model: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    said = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}
    refused = provider.post("chat/completions", json=chat(model, said))
    assert refused.status_code == 400
    assert "image_url" in refused.json()["error"]["message"]


def test_connection_of_the_responses_kind_streams_and_goes_on(
    provider: httpx.Client, model: str, scripted: Model
) -> None:
    scripted.will(CALL, Reply(ANSWER))
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}
    tools = [{"type": "function", **TOOLS[0]["function"], "strict": False}]  # type: ignore[dict-item]
    body = {"stream": True, "model": model, "input": [message], "instructions": "Be kind.", "tools": tools}
    events = chunks_of(provider, body, "responses")
    (item,) = [each["item"] for each in events if each["type"] == "response.output_item.done"]
    call = {name: item[name] for name in ("type", "call_id", "name", "arguments", "id")}
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    output = [{"type": "input_text", "text": "Rain, 9 degrees."}]
    told = {"type": "function_call_output", "call_id": item["call_id"], "output": output}
    events = chunks_of(provider, {**body, "input": [message, thought, call, told]}, "responses")
    assert "".join(each["delta"] for each in events if each["type"] == "response.output_text.delta") == "".join(ANSWER)
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["usage"]["total_tokens"] > 0


def test_texts_of_its_own_search_are_embedded(provider: httpx.Client) -> None:
    body = {"input": ["A lighthouse.", "A ferry."], "model": "groundwork/embedding"}
    data = provider.post("embeddings", json=body).raise_for_status().json()["data"]
    assert len({len(each["embedding"]) for each in data}) == 1
    assert all(isinstance(number, float) for each in data for number in each["embedding"])
