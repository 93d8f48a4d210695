"""Remote embeddings and reranking, each shape against a scripted server over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from groundwork.reranker.v1 import reranker_pb2 as pb
from groundwork.reranker.v1 import reranker_pb2_grpc
from starlette.responses import JSONResponse, PlainTextResponse

from kit.errors import GroundworkError
from kit.network.local_models import use_local_models
from kit.testing.harness import open_test_channel, running_servicer
from services.reranker.adapters.remote_api import Endpoint, RemoteApi, open_remote_api
from services.reranker.adapters.remote_embeddings import RemoteEmbedder, RemoteEmbeddingModel
from services.reranker.adapters.remote_rerank import RemoteReranker, RemoteRerankModel
from services.reranker.app import compose, load_models
from services.reranker.errors import (
    ProviderAnswerWrong,
    ProviderBusy,
    ProviderRejected,
    ProviderUnavailable,
    TextEmpty,
)
from services.reranker.models import TextKind
from services.reranker.settings import RerankerSettings
from tests.service.reranker.model_api import ModelApi, model_api, vector

PROMPTS = {TextKind.QUERY: "query: ", TextKind.PASSAGE: "passage: "}


@pytest.fixture
async def api() -> AsyncIterator[ModelApi]:
    async with model_api() as served:
        yield served


class Remote:
    """A RemoteApi whose pauses are noted and not slept."""

    def __init__(self, client: httpx.AsyncClient, base_url: str) -> None:
        self.pauses: list[float] = []
        self.now = 100.0
        endpoint = Endpoint(base_url, "secret-key", "GROUNDWORK_RERANKER_REMOTE_EMBEDDING", 2)
        self.api = RemoteApi(client, endpoint, clock=lambda: self.now, jitter=lambda: 1.0, sleep=self._pause)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
async def remote(api: ModelApi) -> AsyncIterator[Remote]:
    async with httpx.AsyncClient(base_url=api.base_url, trust_env=False) as client:
        yield Remote(client, api.base_url)


async def opened(stack: AsyncExitStack, base_url: str) -> RemoteApi:
    endpoint = Endpoint(base_url, "secret-key", "GROUNDWORK_RERANKER_REMOTE_EMBEDDING", 2)
    return await stack.enter_async_context(open_remote_api(endpoint))


@pytest.mark.parametrize(("shape", "path"), [("openai", "/v1"), ("tei", "")])
async def test_vectors_come_in_the_order_of_the_texts_in_batches_and_of_length_one(
    api: ModelApi, shape: Any, path: str
) -> None:
    async with AsyncExitStack() as stack:
        remote = await opened(stack, api.base_url + path)
        embedder = RemoteEmbedder(remote, RemoteEmbeddingModel(shape, "m", 2, PROMPTS))
        texts = ["a", "bbb", "ccccc"]
        found = await embedder.embed(texts, TextKind.PASSAGE, 10.0)
    expected = np.array([vector("passage: " + text) for text in texts])
    np.testing.assert_allclose(found.vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)
    assert len(found.token_counts) == 3
    assert min(found.token_counts) >= 1
    key = "inputs" if shape == "tei" else "input"
    assert sorted(len(body[key]) for _, body in api.requests) == [1, 2]
    assert api.authorization == ["Bearer secret-key"] * 2


async def test_total_of_tokens_is_shared_out_by_length(api: ModelApi) -> None:
    async with AsyncExitStack() as stack:
        remote = await opened(stack, api.base_url + "/v1")
        embedder = RemoteEmbedder(remote, RemoteEmbeddingModel("openai", "m", 8, {}))
        found = await embedder.embed(["a" * 30, "b" * 10], TextKind.QUERY, 10.0)
    assert found.token_counts == [15, 5]


@pytest.mark.parametrize(("shape", "path"), [("cohere", "/v2/rerank"), ("jina", "/v1/rerank"), ("tei", "/rerank")])
async def test_scores_come_in_the_order_of_the_passages(api: ModelApi, shape: Any, path: str) -> None:
    async with AsyncExitStack() as stack:
        reranker = RemoteReranker(await opened(stack, api.base_url), RemoteRerankModel(shape, "m", 2))
        scores = await reranker.rerank("q", ["a", "bbb", "cc"], 10.0)
    assert scores == [0.01, 0.03, 0.02]
    assert [asked for asked, _ in api.requests] == [path] * 2
    assert all(body["query"] == "q" for _, body in api.requests)


async def test_cohere_and_jina_get_model_and_top_n_and_tei_gets_truncation(api: ModelApi) -> None:
    async with AsyncExitStack() as stack:
        remote = await opened(stack, api.base_url)
        for shape in ("cohere", "jina", "tei"):
            await RemoteReranker(remote, RemoteRerankModel(shape, "m", 10)).rerank("q", ["a"], 10.0)  # type: ignore[arg-type]
    assert [body for _, body in api.requests] == [
        {"model": "m", "query": "q", "documents": ["a"], "top_n": 1},
        {"model": "m", "query": "q", "documents": ["a"], "top_n": 1, "return_documents": False},
        {"query": "q", "texts": ["a"], "truncate": True, "raw_scores": False},
    ]


async def test_what_may_pass_is_tried_again_after_growing_pauses(api: ModelApi, remote: Remote) -> None:
    api.failures = [JSONResponse({}, 500), JSONResponse({}, 503), JSONResponse({}, 408)]
    assert await remote.api.post("embed", {"inputs": ["a"]}, 30.0) == [vector("a")]
    assert remote.pauses == [0.5, 1.0, 2.0]


async def test_pause_is_as_long_as_the_api_asks(api: ModelApi, remote: Remote) -> None:
    api.failures = [JSONResponse({}, 429, headers={"retry-after": "7"})]
    await remote.api.post("embed", {"inputs": ["a"]}, 30.0)
    assert remote.pauses == [7.0]


async def test_pause_longer_than_the_deadline_is_told_to_the_caller_at_once(api: ModelApi, remote: Remote) -> None:
    api.failures = [JSONResponse({"message": "quota"}, 429, headers={"retry-after": "60"})]
    with pytest.raises(ProviderBusy, match=r"answered HTTP 429.*quota") as refused:
        await remote.api.post("embed", {"inputs": ["a"]}, 5.0)
    assert (refused.value.retry_after_s, remote.pauses) == (60.0, [])


@pytest.mark.parametrize(
    ("status", "cure"),
    [(401, "_API_KEY"), (404, "_URL, _API and _MODEL"), (413, "_BATCH_TEXTS"), (422, "_API and _MODEL")],
)
async def test_refusal_is_not_tried_again_and_names_the_setting_to_check(
    api: ModelApi, remote: Remote, status: int, cure: str
) -> None:
    api.failures = [PlainTextResponse("no such thing", status)]
    with pytest.raises(ProviderRejected, match=f"HTTP {status}: no such thing.*REMOTE_EMBEDDING.*{cure}") as refused:
        await remote.api.post("embed", {"inputs": ["a"]}, 5.0)
    assert not refused.value.retryable
    assert "secret-key" not in refused.value.message
    assert len(api.requests) == 1


async def test_breaker_leaves_a_failing_api_alone_and_probes_it_later(api: ModelApi, remote: Remote) -> None:
    api.failures = [JSONResponse({}, 500)] * 5
    with pytest.raises(ProviderUnavailable, match="HTTP 500"):
        await remote.api.post("embed", {"inputs": ["a"]}, 60.0)
    with pytest.raises(ProviderUnavailable, match="failed 5 times in a row") as refused:
        await remote.api.post("embed", {"inputs": ["a"]}, 60.0)
    assert refused.value.reason == "MODEL_PROVIDER_BREAKER_OPEN"
    assert len(api.requests) == 5
    remote.now += 11
    assert await remote.api.post("embed", {"inputs": ["a"]}, 60.0) == [vector("a")]


async def test_api_that_cannot_be_reached_is_named_with_its_setting() -> None:
    async with httpx.AsyncClient(base_url="http://127.0.0.1:9", trust_env=False) as client:
        remote = Remote(client, "http://127.0.0.1:9")
        with pytest.raises(ProviderUnavailable, match=r"127\.0\.0\.1:9 cannot be reached.*REMOTE_EMBEDDING_URL"):
            await remote.api.post("embed", {"inputs": ["a"]}, 0.4)


async def test_silent_api_ends_with_the_deadline(api: ModelApi, remote: Remote) -> None:
    api.gate = asyncio.Event()
    with pytest.raises(ProviderUnavailable, match=r"did not answer within 0\.1 s"):
        await remote.api.post("embed", {"inputs": ["a"]}, 0.1)
    api.gate.set()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (PlainTextResponse("<html>"), "not JSON"),
        (JSONResponse([[1.0, 2.0]]), "shape .1, 2. for 2 texts"),
        (JSONResponse([[1.0], [1.0, 2.0]]), "not 2 vectors"),
        (JSONResponse([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]), "without length"),
        (JSONResponse({"error": "x"}), "not 2 vectors"),
        (JSONResponse([[1.0, 2.0], [1.0, 2.0]]), "2 numbers where it sent 3 before"),
    ],
)
async def test_vectors_that_are_none_are_refused(api: ModelApi, remote: Remote, answer: Any, says: str) -> None:
    embedder = RemoteEmbedder(remote.api, RemoteEmbeddingModel("tei", "m", 8, {}))
    await embedder.probe()
    assert embedder.dimension == 3
    api.failures = [answer]
    with pytest.raises(ProviderAnswerWrong, match=says):
        await embedder.embed(["a", "b"], TextKind.PASSAGE, 5.0)


@pytest.mark.parametrize(
    "answer",
    [
        [{"index": 0, "score": 1.0}],
        [{"index": 0, "score": 1.0}, {"index": 2, "score": 1.0}],
        {"results": []},
        [1.0, 2.0],
    ],
)
async def test_scores_that_do_not_cover_the_passages_are_refused(api: ModelApi, remote: Remote, answer: Any) -> None:
    api.failures = [JSONResponse(answer)]
    with pytest.raises(ProviderAnswerWrong):
        await RemoteReranker(remote.api, RemoteRerankModel("tei", "m", 8)).rerank("q", ["a", "b"], 5.0)


async def test_api_that_is_down_stops_the_start_unless_the_length_of_its_vectors_is_set(
    api: ModelApi, remote: Remote
) -> None:
    api.failures = [JSONResponse({}, 503)] * 5
    with pytest.raises(ProviderUnavailable, match="HTTP 503"):
        await RemoteEmbedder(remote.api, RemoteEmbeddingModel("tei", "m", 8, {})).probe()
    embedder = RemoteEmbedder(remote.api, RemoteEmbeddingModel("tei", "m", 8, {}, dimensions=3))
    await embedder.probe()
    assert embedder.dimension == 3
    remote.now += 11
    assert (await embedder.embed(["a"], TextKind.QUERY, 5.0)).vectors.shape == (1, 3)


async def test_blank_text_is_refused_before_anything_is_sent(api: ModelApi, remote: Remote) -> None:
    with pytest.raises(TextEmpty):
        await RemoteEmbedder(remote.api, RemoteEmbeddingModel("tei", "m", 8, {})).embed([" "], TextKind.QUERY, 5.0)
    assert not api.requests


def settings(models_dir: Path, base_url: str, **changes: Any) -> RerankerSettings:
    remote = {
        "reranker_remote_embedding_url": base_url + "/v1",
        "reranker_remote_embedding_model": "text-embedding-3-small",
        "reranker_remote_rerank_url": base_url,
        "reranker_remote_rerank_model": "rerank-v3.5",
    }
    return RerankerSettings(models_dir=models_dir, **(remote | changes))


@pytest.mark.parametrize(("is_local", "asked"), [(False, 0), (None, 2)])
async def test_call_bound_to_local_models_reaches_a_remote_api_only_if_it_is_local(
    api: ModelApi, tmp_path: Path, is_local: bool | None, asked: int
) -> None:
    said = {"reranker_remote_embedding_local": is_local, "reranker_remote_rerank_local": is_local}
    configured = settings(tmp_path, api.base_url, **said)
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(1))
        servicer, _ = await compose(load_models(configured), configured, executor, stack)
        api.requests.clear()
        add: Callable[..., None] = reranker_pb2_grpc.add_RerankerServiceServicer_to_server
        address = await stack.enter_async_context(running_servicer(add, servicer))
        channel = await stack.enter_async_context(open_test_channel(address))
        stub = reranker_pb2_grpc.RerankerServiceStub(channel)
        calls = [
            lambda: stub.Embed(pb.EmbedRequest(texts=["hello"], kind=pb.EMBED_KIND_QUERY), timeout=60),
            lambda: stub.Rerank(pb.RerankRequest(query_text="q", passages=["aa", "b"]), timeout=60),
        ]
        for call in calls:
            with use_local_models(only=True):
                if is_local is None:
                    await call()
                    continue
                with pytest.raises(GroundworkError, match="_LOCAL") as refused:
                    await call()
            assert refused.value.reason == "LOCAL_MODELS_ONLY"
    assert len(api.requests) == asked


async def test_service_over_remote_models_needs_no_model_file(api: ModelApi, tmp_path: Path) -> None:
    configured = settings(tmp_path, api.base_url)
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(1))
        servicer, batchers = await compose(load_models(configured), configured, executor, stack)
        assert not batchers
        add: Callable[..., None] = reranker_pb2_grpc.add_RerankerServiceServicer_to_server
        address = await stack.enter_async_context(running_servicer(add, servicer))
        services = [pb.DESCRIPTOR.services_by_name["RerankerService"]]
        channel = await stack.enter_async_context(open_test_channel(address, services=services))
        stub = reranker_pb2_grpc.RerankerServiceStub(channel)
        info = await stub.GetModelInfo(pb.GetModelInfoRequest(), timeout=60)
        embedded = await stub.Embed(pb.EmbedRequest(texts=["hello"], kind=pb.EMBED_KIND_QUERY), timeout=60)
        scored = await stub.Rerank(pb.RerankRequest(query_text="q", passages=["aa", "b"]), timeout=60)
        tokenizer = await stub.GetTokenizer(pb.GetTokenizerRequest(), timeout=60)
        api.failures = [PlainTextResponse("bad key", 401)]
        with pytest.raises(GroundworkError, match="_API_KEY") as refused:
            await stub.Embed(pb.EmbedRequest(texts=["hello"], kind=pb.EMBED_KIND_QUERY), timeout=60)
    assert (info.embedding_model, info.dimension, info.runtime) == ("text-embedding-3-small", 3, "openai/remote")
    assert (info.rerank_model, info.rerank_runtime, info.window_tokens) == ("rerank-v3.5", "cohere/remote", 512)
    assert (embedded.dimension, len(embedded.vectors)) == (3, 12)
    assert list(scored.scores) == pytest.approx([0.02, 0.01])
    assert tokenizer.tokenizer_json == b""
    assert refused.value.reason == "MODEL_PROVIDER_REJECTED"


async def test_remote_model_whose_key_is_wrong_stops_the_start(api: ModelApi, tmp_path: Path) -> None:
    configured = settings(tmp_path, api.base_url)
    api.failures = [PlainTextResponse("bad key", 401)]
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(1))
        with pytest.raises(ProviderRejected, match="GROUNDWORK_RERANKER_REMOTE_EMBEDDING_API_KEY"):
            await compose(load_models(configured), configured, executor, stack)
