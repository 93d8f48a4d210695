"""The real model behind the real gRPC server."""

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from groundwork.reranker.v1 import reranker_pb2 as pb
from groundwork.reranker.v1 import reranker_pb2_grpc
from tokenizers import Tokenizer

from kit.errors import DeadlineExceeded, InvalidArgument
from kit.testing.harness import TEST_SECRET, free_port, open_test_channel, running_service, running_servicer
from services.reranker.app import LoadedModel, assemble, load, run
from services.reranker.errors import ModelFileMissing
from services.reranker.settings import RerankerSettings

PASSAGE, QUERY = pb.EMBED_KIND_PASSAGE, pb.EMBED_KIND_QUERY
_DESCRIPTORS = [pb.DESCRIPTOR.services_by_name["RerankerService"]]


def settings(models_dir: Path, **changes: Any) -> RerankerSettings:
    return RerankerSettings(auth_secret=TEST_SECRET, models_dir=models_dir, **changes)


@pytest.fixture(scope="module")
def loaded(models_dir: Path) -> LoadedModel:
    return load(settings(models_dir))


@pytest.fixture
async def stub(loaded: LoadedModel, models_dir: Path) -> AsyncIterator[Any]:
    executor = ThreadPoolExecutor(2)
    servicer, batcher = assemble(loaded, settings(models_dir), executor)
    loop = asyncio.create_task(batcher.run())
    add = reranker_pb2_grpc.add_RerankerServiceServicer_to_server
    async with running_servicer(add, servicer) as address, open_test_channel(address, services=_DESCRIPTORS) as channel:
        yield reranker_pb2_grpc.RerankerServiceStub(channel)
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
    await asyncio.to_thread(executor.shutdown)


async def embed(stub: Any, *texts: str, kind: Any = PASSAGE) -> Any:
    response = await stub.Embed(pb.EmbedRequest(texts=texts, kind=kind), timeout=30)
    return np.frombuffer(response.vectors, dtype="<f4").reshape(len(texts), response.dimension)


async def test_meaning_decides_which_passage_is_nearest(stub: Any) -> None:
    passages = await embed(
        stub,
        "The warranty covers defects in material for 24 months from the date of purchase.",
        "Bananas are rich in potassium and grow in tropical climates.",
        "The parliament voted on the new budget late on Tuesday night.",
    )
    queries = await embed(
        stub, "How long is the guarantee?", "healthy fruit", "government spending decision", kind=QUERY
    )
    assert (queries @ passages.T).argmax(axis=1).tolist() == [0, 1, 2]


async def test_vectors_have_length_one_and_keep_the_order_of_the_request(stub: Any) -> None:
    texts = ["A short one.", "A much longer text about rivers, " * 12, "Mountains.", "Volcanoes erupt. " * 30]
    together = await embed(stub, *texts)
    assert together.shape == (4, 384)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, rtol=1e-5)
    alone = np.concatenate([await embed(stub, text) for text in texts])
    assert (together * alone).sum(axis=1).min() > 0.99


async def test_token_counts_stop_at_the_window(stub: Any) -> None:
    request = pb.EmbedRequest(texts=["hello world", "hello " * 1000], kind=PASSAGE)
    response = await stub.Embed(request, timeout=30)
    assert list(response.token_counts) == [4, 256]
    assert response.model == "all-MiniLM-L6-v2-int8"


async def test_passage_that_answers_the_question_scores_highest(stub: Any) -> None:
    passages = [
        "The tower was painted in 1968 and again in 2010.",
        "It stands 330 metres tall and was finished in 1889.",
        "Tickets can be bought online or at the entrance.",
    ]
    request = pb.RerankRequest(query_text="How tall is the tower in metres?", passages=passages)
    response = await stub.Rerank(request, timeout=30)
    scores = list(response.scores)
    assert scores.index(max(scores)) == 1
    assert all(-1.0 <= score <= 1.0 for score in scores)
    assert response.model.startswith("all-MiniLM-L6-v2-int8/")
    assert list((await stub.Rerank(request, timeout=30)).scores) == pytest.approx(scores, abs=0.02)


async def test_model_info_names_models_window_and_runtime(stub: Any) -> None:
    info = await stub.GetModelInfo(pb.GetModelInfoRequest(), timeout=30)
    assert (info.embedding_model, info.dimension, info.window_tokens) == ("all-MiniLM-L6-v2-int8", 384, 256)
    assert info.runtime == "openvino/cpu"
    assert info.rerank_model


async def test_published_tokenizer_counts_what_the_model_sees_without_padding_or_truncation(stub: Any) -> None:
    response = await stub.GetTokenizer(pb.GetTokenizerRequest(), timeout=30)
    assert response.sha256 == hashlib.sha256(response.tokenizer_json).hexdigest()
    definition = json.loads(response.tokenizer_json)
    assert (definition["padding"], definition["truncation"]) == (None, None)
    tokenizer = Tokenizer.from_str(response.tokenizer_json.decode())
    text = "Tokenisation, counted twice."
    embedded = await stub.Embed(pb.EmbedRequest(texts=[text], kind=PASSAGE), timeout=30)
    assert list(embedded.token_counts) == [len(tokenizer.encode(text).ids)]
    assert len(tokenizer.encode("word " * 1000).ids) == 1002


async def test_missing_kind_empty_text_and_no_text_are_refused(stub: Any) -> None:
    for request, reason in (
        (pb.EmbedRequest(texts=["text"]), "EMBED_KIND_MISSING"),
        (pb.EmbedRequest(texts=["text", " "], kind=PASSAGE), "TEXT_EMPTY"),
        (pb.EmbedRequest(kind=PASSAGE), "TEXT_COUNT_OUT_OF_RANGE"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            await stub.Embed(request, timeout=30)
        assert refused.value.reason == reason


async def test_caller_that_gives_up_leaves_the_model_to_the_next(stub: Any) -> None:
    with pytest.raises(DeadlineExceeded):
        await stub.Embed(pb.EmbedRequest(texts=["a long passage " * 80] * 1024, kind=PASSAGE), timeout=0.3)
    assert (await embed(stub, "still here", kind=QUERY)).shape == (1, 384)


async def test_nothing_of_the_runtime_can_call_home(loaded: LoadedModel) -> None:
    assert loaded.encoder.runtime == "openvino/cpu"
    assert not [name for name, module in sys.modules.items() if name.startswith("openvino_telemetry") and module]


async def test_service_serves_and_stops(models_dir: Path) -> None:
    configured = settings(models_dir, grpc_address=f"127.0.0.1:{free_port()}")
    async with running_service(run, configured) as address, open_test_channel(address) as channel:
        vectors = await embed(reranker_pb2_grpc.RerankerServiceStub(channel), "hello", kind=QUERY)
        assert vectors.shape == (1, 384)


async def test_service_without_model_files_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ModelFileMissing, match="run `make setup`"):
        await run(settings(tmp_path))
