"""What each provider does differently, as it comes over the wire."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kit.llm import FinishReason, ModelRejected, TokenUsage, ToolCall
from kit.llm.endpoint.presets import PRESETS, preset_of_address
from kit.llm.messages import ChatMessage
from kit.testing.openai import Reply
from tests.service.kit.llm.asking import QUESTION, SEARCH, TOOL_QUESTION, answer, asked, calls_of, finish_of, text_of

SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": False}


async def body_sent(preset: str, model: str = "m", **changes: Any) -> dict[str, Any]:
    async with asked(Reply(["a"]), preset=preset, model=model) as (script, endpoint):
        await answer(endpoint, replace(QUESTION, **changes))
    return script.requests[0]


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_recognised_by_its_usual_address(name: str) -> None:
    preset = PRESETS[name]
    if preset.hosts:
        assert preset_of_address(preset.base_url) is preset


def test_other_addresses_are_no_provider() -> None:
    for url in ("http://127.0.0.1:8000/v1", "https://api.openai.com.evil.example/v1", "https://notapi.x.ai/v1"):
        assert preset_of_address(url).name == "openai-compatible"


async def test_openai_calls_the_limit_by_its_new_name_and_its_thinkers_take_no_temperature() -> None:
    plain = await body_sent("openai", "gpt-4.1-mini")
    assert (plain["max_completion_tokens"], plain["temperature"]) == (16, 0.0)
    for model in ("o3-mini", "gpt-5.2"):
        thinker = await body_sent("openai", model)
        assert "temperature" not in thinker
        assert "max_tokens" not in thinker


async def test_openai_leaves_room_for_thoughts() -> None:
    async with asked(preset="openai", model="gpt-5-mini") as (_, endpoint):
        assert endpoint.info().reasoning_tokens > 0
        assert endpoint.info().context_tokens >= 128_000
    async with asked(preset="openai", model="gpt-4.1-mini") as (_, endpoint):
        assert endpoint.info().reasoning_tokens == 0


REFUSED_LIMIT = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
REFUSED_TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model."
REFUSED_STREAM_OPTIONS = 'Invalid JSON payload received. Unknown name "stream_options": Cannot find field.'


async def test_field_that_a_server_does_not_know_is_left_out_from_then_on() -> None:
    refusals = [
        Reply(status=400, body=json.dumps({"error": {"message": message}}))
        for message in (REFUSED_LIMIT, REFUSED_TEMPERATURE, REFUSED_STREAM_OPTIONS)
    ]
    async with asked(*refusals, Reply(["Yes."])) as (script, endpoint):
        assert text_of(await answer(endpoint)) == "Yes."
        assert text_of(await answer(endpoint)) == "Yes."
    for body in script.requests[3:]:
        assert body["max_completion_tokens"] == 16
        assert not {"max_tokens", "temperature", "stream_options"} & body.keys()
    assert len(script.requests) == 5


async def test_server_that_refuses_again_and_again_is_not_asked_again_and_again() -> None:
    body = json.dumps({"error": {"message": REFUSED_LIMIT}})
    async with asked(Reply(status=400, body=body)) as (script, endpoint):
        with pytest.raises(ModelRejected):
            await answer(endpoint)
    assert len(script.requests) == 2


async def test_anthropic_ignores_response_format_so_the_schema_stands_in_the_prompt() -> None:
    body = await body_sent("anthropic", schema=SCHEMA, temperature=1.5)
    assert "response_format" not in body
    assert json.dumps(SCHEMA) in body["messages"][-1]["content"]
    assert (body["temperature"], body["max_tokens"]) == (1.0, 16)


async def test_gemini_sends_calls_without_index_and_id_and_wants_its_signature_back() -> None:
    call = {"id": "", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    signed = {**call, "extra_content": {"google": {"thought_signature": "sig"}}}
    reply = Reply([{"tool_calls": [signed, call]}], finish_reason="stop")
    async with asked(reply, preset="gemini", model="gemini-3-pro") as (script, endpoint):
        deltas = await answer(endpoint, TOOL_QUESTION)
        assert finish_of(deltas).reason is FinishReason.TOOL_CALLS
        (first_id, *_), (second_id, *_) = calls_of(deltas)
        assert first_id
        assert first_id != second_id
        told = ChatMessage("assistant", "", [ToolCall(first_id, "search", "{}", signature="sig")])
        await answer(endpoint, replace(TOOL_QUESTION, messages=[*QUESTION.messages, told]))
    sent = script.requests[1]["messages"][-1]["tool_calls"][0]
    assert sent["extra_content"] == {"google": {"thought_signature": "sig"}}


async def test_gemini_counts_thoughts_in_the_total_only() -> None:
    usage = {"prompt_tokens": 138, "completion_tokens": 24, "total_tokens": 448}
    async with asked(Reply(["a"], usage=usage), preset="gemini", model="gemini-2.5-flash") as (_, endpoint):
        assert finish_of(await answer(endpoint)).usage == TokenUsage(138, 310)
        assert endpoint.info().reasoning_tokens > 0


async def test_grok_sends_its_thoughts_beside_and_its_usage_with_every_chunk() -> None:
    def chunk(delta: dict[str, str], tokens: int) -> bytes:
        usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens + 7}
        return f"data: {json.dumps({'choices': [{'delta': delta}], 'usage': usage})}\n\n".encode()

    reply = Reply([chunk({"reasoning_content": "Hm."}, 1), chunk({"content": "Yes."}, 2)], usage={})
    async with asked(reply, preset="grok", model="grok-4") as (script, endpoint):
        deltas = await answer(endpoint)
    assert text_of(deltas) == "Yes."
    assert finish_of(deltas).usage == TokenUsage(5, 9)
    assert "max_completion_tokens" in script.requests[0]


async def test_vllm_is_told_to_hold_calls_to_the_shape_of_their_schema() -> None:
    bounded = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "pattern": "^a", "maxLength": 1000, "description": "What to look for."},
            "top_k": {"type": "integer", "minimum": 1},
            "kinds": {"type": "array", "minItems": 1, "items": {"enum": ["a", "b"]}},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }
    (tool,) = (await body_sent("vllm", tools=[replace(SEARCH, parameters=bounded)]))["tools"]
    assert tool["function"]["strict"] is True
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "What to look for."},
            "top_k": {"type": "integer"},
            "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }
    (tool,) = (await body_sent("openai", tools=[replace(SEARCH, parameters=bounded)]))["tools"]
    assert tool["function"]["parameters"] == bounded
    assert "strict" not in tool["function"]


async def test_ollama_sends_every_call_whole_at_index_0_and_knows_no_tool_choice() -> None:
    def call(call_id: str, arguments: str) -> dict[str, Any]:
        function = {"name": "search", "arguments": arguments}
        return {"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": function}]}

    other = replace(SEARCH, name="other")
    request = replace(TOOL_QUESTION, tools=(SEARCH, other), tool_choice="search")
    async with asked(Reply([call("a", '{"query": 1}'), call("b", '{"query": 2}')]), preset="ollama") as (
        script,
        endpoint,
    ):
        deltas = await answer(endpoint, request)
    assert calls_of(deltas) == [("a", "search", '{"query": 1}'), ("b", "search", '{"query": 2}')]
    assert [tool["function"]["name"] for tool in script.requests[0]["tools"]] == ["search"]


async def test_calls_without_ids_at_one_index_are_told_apart_by_their_names() -> None:
    call = {"index": 0, "function": {"name": "search", "arguments": {"query": "cats"}}}
    async with asked(Reply([{"tool_calls": [call]}, {"tool_calls": [call]}])) as (_, endpoint):
        assert [each[1:] for each in calls_of(await answer(endpoint, TOOL_QUESTION))] == [
            ("search", '{"query": "cats"}')
        ] * 2


async def test_vllm_is_told_by_what_it_says_and_counts_tokens() -> None:
    async with asked(Reply(["a"])) as (script, endpoint):
        script.models = [{"id": "m", "owned_by": "vllm", "max_model_len": 2048}]
        script.tokenize = lambda body: {"count": len(body["prompt"]), "max_model_len": 2048, "tokens": []}
        assert await endpoint.count_tokens(["hello", "hello", "hi"]) == [5, 5, 2]
        assert await endpoint.count_tokens(["hello"]) == [5]
        assert (endpoint.info().provider, endpoint.info().context_tokens) == ("vllm", 2048)
    assert len(script.tokenized) == 2, "what was counted is remembered"
    assert script.tokenized[0]["add_special_tokens"] is False


async def test_llama_cpp_is_told_by_what_it_says_and_counts_tokens() -> None:
    async with asked(Reply(["a"])) as (script, endpoint):
        script.models = [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}]
        script.pages["/props"] = {"default_generation_settings": {"n_ctx": 512}}
        script.tokenize = lambda body: {"tokens": [1] * len(body["content"])}
        assert await endpoint.count_tokens(["hello"]) == [5]
        assert (endpoint.info().provider, endpoint.info().context_tokens) == ("llama.cpp", 512)


async def test_ollama_says_the_context_of_a_model_that_runs() -> None:
    async with asked(Reply(["a"])) as (script, endpoint):
        script.models = [{"id": "m", "owned_by": "library"}]
        script.pages["/api/ps"] = {"models": [{"name": "m", "model": "m", "context_length": 32768}]}
        await endpoint.count_tokens(["hello"])
        assert (endpoint.info().provider, endpoint.info().context_tokens) == ("ollama", 32768)


async def test_server_that_says_nothing_gets_a_usual_context_and_an_estimate() -> None:
    async with asked(Reply(["a"])) as (_, endpoint):
        assert await endpoint.count_tokens(["hello there"]) >= [2]
        assert endpoint.info().context_tokens == 16_384


async def test_server_whose_tokenizer_breaks_down_is_estimated() -> None:
    async with asked(Reply(["a"])) as (script, endpoint):
        script.models = [{"id": "m", "owned_by": "vllm", "max_model_len": 2048}]
        script.tokenize = lambda _: {"nonsense": True}
        (count,) = await endpoint.count_tokens(["hello there, how are you"])
        assert count >= 6
        await endpoint.count_tokens(["another text"])
    assert len(script.tokenized) == 1, "it is left alone for a while"
