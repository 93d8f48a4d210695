"""The model port against real servers: what the scripted one says otherwise is a mistake of the script."""

import json
from dataclasses import replace

import pytest

from kit.llm import (
    ChatMessage,
    FinishReason,
    Meter,
    ModelRejected,
    PromptTooLong,
    Request,
    WrongEndpoint,
    estimate_tokens,
)
from kit.llm.endpoint.endpoint import EndpointConfig, open_endpoint
from kit.llm.endpoint.presets import TokenizerApi
from kit.llm.schema_calls import SchemaCalls
from tests.data.scripts import TEXTS
from tests.real_models import LLAMA_CPP_CONTEXT_TOKENS, LLAMA_CPP_KEY
from tests.service.kit.llm.asking import SEARCH, answer, calls_of, finish_of, text_of

pytestmark = pytest.mark.timeout(600)
QUESTION = Request([ChatMessage("user", "Say hello.")], max_tokens=24)
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "large": {"type": "boolean"}},
    "required": ["city", "large"],
    "additionalProperties": False,
}


async def test_answer_is_streamed_and_counted(real_model: EndpointConfig) -> None:
    meter = Meter()
    async with open_endpoint(real_model) as endpoint:
        deltas = await answer(endpoint, replace(QUESTION, meter=meter))
    finish = finish_of(deltas)
    assert text_of(deltas)
    assert len(deltas) > 2
    assert finish.reason in {FinishReason.STOP, FinishReason.LENGTH}
    assert not finish.usage.estimated
    assert 0 < finish.usage.completion_tokens <= 24
    assert meter.total == finish.usage


async def test_used_up_tokens_are_told(real_model: EndpointConfig) -> None:
    async with open_endpoint(real_model) as endpoint:
        finish = finish_of(await answer(endpoint, replace(QUESTION, max_tokens=3)))
    assert (finish.reason, finish.usage.completion_tokens) == (FinishReason.LENGTH, 3)


async def test_answer_follows_its_schema(real_model: EndpointConfig) -> None:
    request = Request([ChatMessage("user", "Name a city.")], max_tokens=120, schema=SCHEMA)
    async with open_endpoint(real_model) as endpoint:
        deltas = await answer(endpoint, request)
    if finish_of(deltas).reason is FinishReason.STOP:
        value = json.loads(text_of(deltas))
        assert value.keys() == {"city", "large"}
        assert isinstance(value["large"], bool)
    else:
        assert text_of(deltas).lstrip().startswith("{")


async def test_forced_call_that_runs_out_of_tokens_has_no_text(real_model: EndpointConfig) -> None:
    request = Request(
        [ChatMessage("user", "Find cats.")], max_tokens=6, tools=(SEARCH,), tool_choice="required", temperature=0
    )
    async with open_endpoint(real_model) as endpoint:
        await endpoint.count_tokens(["a"])
        deltas = await answer(endpoint, request)
        if endpoint.info().provider != "vllm":
            pytest.skip("this server's template offers the model no tools")
    assert text_of(deltas) == ""
    assert finish_of(deltas).reason is FinishReason.LENGTH
    assert len(calls_of(deltas)) <= 1


@pytest.mark.parametrize("tool_choice", ["required", SEARCH.name])
async def test_tool_is_called_by_schema(real_model: EndpointConfig, tool_choice: str) -> None:
    question = [ChatMessage("user", "When was the tower built? Search for it.")]
    request = Request(question, max_tokens=200, tools=(SEARCH,), tool_choice=tool_choice)
    async with open_endpoint(real_model) as endpoint:
        deltas = await answer(SchemaCalls(endpoint), request)
    assert finish_of(deltas).reason is FinishReason.TOOL_CALLS
    assert text_of(deltas) == ""
    ((_, name, arguments),) = calls_of(deltas)
    assert (name, list(json.loads(arguments))) == ("search", ["query"])


async def test_prompt_that_is_too_long_is_told_apart_from_a_wrong_key(real_model: EndpointConfig) -> None:
    async with open_endpoint(real_model) as endpoint:
        await endpoint.count_tokens(["a"])
        words = "word " * (endpoint.info().context_tokens + 10)
        with pytest.raises(PromptTooLong):
            await answer(endpoint, replace(QUESTION, messages=[ChatMessage("user", words)]))


async def test_context_is_the_servers_own_and_tokens_are_counted_by_it(real_model: EndpointConfig) -> None:
    async with open_endpoint(real_model) as endpoint:
        text = "Say hello to the world, and to nobody else. " * 20
        (count,) = await endpoint.count_tokens([text])
        assert endpoint.info().context_tokens > 0
        if endpoint.preset.tokenizer is TokenizerApi.NONE:
            pytest.skip("this server counts no tokens")
        if real_model.api_key == LLAMA_CPP_KEY:
            assert endpoint.info().context_tokens == LLAMA_CPP_CONTEXT_TOKENS
        (plain,) = await endpoint.count_tokens(["Say hello."])
        without = finish_of(await answer(endpoint, replace(QUESTION, max_tokens=1))).usage.prompt_tokens
        longer = [ChatMessage("user", f"Say hello.{text}")]
        with_text = finish_of(await answer(endpoint, replace(QUESTION, messages=longer, max_tokens=1))).usage
    assert abs((with_text.prompt_tokens - without) - count) <= 3
    assert without > plain


async def test_estimate_is_not_below_a_vocabulary_made_for_english(real_model: EndpointConfig) -> None:
    async with open_endpoint(real_model) as endpoint:
        counts = await endpoint.count_tokens(list(TEXTS.values()))
    counted = dict(zip(TEXTS, counts, strict=True))
    assert {name: count for name, count in counted.items() if estimate_tokens(TEXTS[name]) < count} == {}


async def test_wrong_name_and_wrong_address_are_named(real_model: EndpointConfig) -> None:
    async with open_endpoint(replace(real_model, base_url=f"{real_model.base_url}/nonsense")) as endpoint:
        with pytest.raises(WrongEndpoint, match="_BASE_URL"):
            await answer(endpoint, QUESTION)
    if real_model.api_key:
        async with open_endpoint(replace(real_model, api_key="another-key")) as endpoint:
            with pytest.raises(ModelRejected, match="_API_KEY"):
                await answer(endpoint, QUESTION)
