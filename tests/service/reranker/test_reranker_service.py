"""The real model behind the real gRPC server."""

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from groundwork.reranker.v1 import reranker_pb2 as pb
from groundwork.reranker.v1 import reranker_pb2_grpc
from sentencepiece import SentencePieceProcessor
from threadpoolctl import threadpool_info
from tokenizers import Tokenizer

from kit.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument
from kit.testing.harness import free_port, open_test_channel, running_service, running_servicer
from services.reranker.app import LocalModels, compose, load_models, run
from services.reranker.errors import ModelFileMissing
from services.reranker.models import Encoded, Int64
from services.reranker.ports import Encoder
from services.reranker.reranking import known_texts
from services.reranker.settings import RerankerSettings

PASSAGE, QUERY = pb.EMBED_KIND_PASSAGE, pb.EMBED_KIND_QUERY
_DESCRIPTORS = [pb.DESCRIPTOR.services_by_name["RerankerService"]]


def settings(models_dir: Path, **changes: Any) -> RerankerSettings:
    usual = {"reranker_store_bytes": 0, "reranker_cpu_embedding_model": "english"}
    return RerankerSettings(models_dir=models_dir, **(usual | changes))


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not a slow disk."""
    monkeypatch.setattr(known_texts, "READ_TIMEOUT_S", 20.0)


@pytest.fixture(scope="module")
def loaded(models_dir: Path) -> LocalModels:
    return load_models(settings(models_dir))


@asynccontextmanager
async def serving(models: LocalModels, configured: RerankerSettings) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(2))
        servicer, loops = await compose(models, configured, executor, stack)
        tasks = [asyncio.create_task(loop.run()) for loop in loops]
        add = reranker_pb2_grpc.add_RerankerServiceServicer_to_server
        async with running_servicer(add, servicer) as at, open_test_channel(at, services=_DESCRIPTORS) as channel:
            yield reranker_pb2_grpc.RerankerServiceStub(channel)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def stub(loaded: LocalModels, models_dir: Path) -> AsyncIterator[Any]:
    async with serving(loaded, settings(models_dir)) as stub:
        yield stub


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


class CountingEncoder:
    """The real encoder, and how many texts it read."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.texts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        self.texts += len(input_ids)
        return self._encoder.encode(input_ids, attention_mask)


def counted(loaded: LocalModels) -> tuple[CountingEncoder, LocalModels]:
    """The models, and what counts the texts they read."""
    encoder = CountingEncoder(loaded.cpu.encoder)
    return encoder, replace(loaded, cpu=replace(loaded.cpu, encoder=encoder))


async def test_passages_kept_when_they_were_embedded_are_reranked_after_a_restart_without_the_model(
    loaded: LocalModels, models_dir: Path, tmp_path: Path
) -> None:
    encoder, models = counted(loaded)
    configured = settings(models_dir, data_dir=tmp_path, reranker_store_bytes=10_000_000)
    question = "How tall is the tower in metres?"
    passages = [f"Fact {n}. It stands {n} metres tall and was finished in 1889." for n in range(20)]
    async with serving(models, configured) as stub:
        await stub.Embed(pb.EmbedRequest(texts=passages, kind=PASSAGE, keep_token_vectors=True), timeout=30)
    async with serving(models, configured) as stub:
        computed = await stub.Rerank(pb.RerankRequest(query_text=question, passages=passages), timeout=30)
    async with serving(models, configured) as stub:
        await embed(stub, question, kind=QUERY)
        encoder.texts = 0
        request = pb.RerankRequest(
            query_text=question,
            passages=["A heading above\n" + passage for passage in passages],
            content_hashes=[hashlib.sha256(passage.encode()).hexdigest() for passage in passages],
        )
        kept = await stub.Rerank(request, timeout=30)
        assert encoder.texts == 0
        await stub.Rerank(pb.RerankRequest(query_text=question, passages=["It was never seen."]), timeout=30)
        assert encoder.texts == 1
    assert list(kept.scores) == pytest.approx(list(computed.scores), abs=0.02)


async def test_forgotten_texts_are_read_again_and_the_others_are_not(
    loaded: LocalModels, models_dir: Path, tmp_path: Path
) -> None:
    encoder, models = counted(loaded)
    configured = settings(models_dir, data_dir=tmp_path, reranker_store_bytes=10_000_000)
    passages = ["The tower stands 330 metres tall.", "It was finished in 1889."]
    hashes = [hashlib.sha256(passage.encode()).hexdigest() for passage in passages]
    request = pb.RerankRequest(query_text="How tall is it?", passages=passages, content_hashes=hashes)
    async with serving(models, configured) as stub:
        await stub.Embed(pb.EmbedRequest(texts=passages, kind=PASSAGE, keep_token_vectors=True), timeout=30)
        await stub.Rerank(request, timeout=30)
        await stub.ForgetTexts(pb.ForgetTextsRequest(content_hashes=hashes[:1]), timeout=30)
        encoder.texts = 0
        await stub.Rerank(request, timeout=30)
        assert encoder.texts == 1


async def test_what_is_to_be_forgotten_must_be_sha256_and_not_too_much(stub: Any) -> None:
    await stub.ForgetTexts(pb.ForgetTextsRequest(content_hashes=["ab" * 32]), timeout=30)
    for hashes in (["ab" * 32, "solar"], ["ab" * 32] * 4097):
        with pytest.raises(InvalidArgument) as refused:
            await stub.ForgetTexts(pb.ForgetTextsRequest(content_hashes=hashes), timeout=30)
        assert refused.value.reason == "CONTENT_HASH_WRONG"


async def test_content_hashes_must_be_sha256_and_one_for_each_passage(stub: Any) -> None:
    for hashes in (["ab" * 32], ["ab" * 32, "zz"], ["ab" * 32, "ab"]):
        with pytest.raises(InvalidArgument) as refused:
            await stub.Rerank(
                pb.RerankRequest(query_text="one", passages=["two", "three"], content_hashes=hashes), timeout=30
            )
        assert refused.value.reason == "CONTENT_HASH_WRONG"


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


async def test_nothing_of_the_runtime_can_call_home(loaded: LocalModels) -> None:
    assert loaded.cpu.encoder.runtime == "openvino/cpu"
    assert not [name for name, module in sys.modules.items() if name.startswith("openvino_telemetry") and module]


async def test_service_serves_and_stops(models_dir: Path, tmp_path: Path) -> None:
    configured = settings(
        models_dir, grpc_address=f"127.0.0.1:{free_port()}", data_dir=tmp_path, reranker_store_bytes=1_000_000
    )
    async with running_service(run, configured) as address, open_test_channel(address) as channel:
        vectors = await embed(reranker_pb2_grpc.RerankerServiceStub(channel), "hello", kind=QUERY)
        assert vectors.shape == (1, 384)
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}


async def test_service_without_model_files_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ModelFileMissing, match="run `make setup`"):
        await run(settings(tmp_path))


async def test_every_model_is_named_and_the_other_is_loaded_when_it_is_asked_for(stub: Any) -> None:
    info = await stub.GetModelInfo(pb.GetModelInfoRequest(), timeout=30)
    english, multilingual = info.embedding_models
    assert english.name == info.embedding_model
    assert (multilingual.name, multilingual.dimension) == ("multilingual-e5-small-q4-centred", 384)
    texts = ["Wie lange gilt die Garantie?", "Bananen wachsen in den Tropen."]
    passages = await stub.Embed(pb.EmbedRequest(texts=texts, kind=PASSAGE, model=multilingual.name), timeout=60)
    assert passages.model == multilingual.name
    assert (await stub.Embed(pb.EmbedRequest(texts=texts, kind=PASSAGE), timeout=30)).model == english.name


async def test_model_that_the_server_does_not_have_is_refused_by_name(stub: Any) -> None:
    with pytest.raises(FailedPrecondition, match="does not embed with ada") as refused:
        await stub.Embed(pb.EmbedRequest(texts=["text"], kind=QUERY, model="ada"), timeout=30)
    assert refused.value.reason == "EMBEDDING_MODEL_UNKNOWN"


@pytest.fixture(scope="module")
def multilingual(models_dir: Path) -> LocalModels:
    return load_models(settings(models_dir, reranker_cpu_embedding_model="multilingual"))


async def test_meaning_is_found_across_languages(multilingual: LocalModels, models_dir: Path) -> None:
    said = [
        "Гарантия действует 24 месяца со дня покупки.",
        "Bananen wachsen in den Tropen.",
        "议会就新预算进行了投票。",
    ]
    asked = ["How long is the guarantee?", "fruit tropicale", "Haushalt der Regierung"]
    async with serving(multilingual, settings(models_dir)) as stub:
        passages, queries = await embed(stub, *said), await embed(stub, *asked, kind=QUERY)
        assert (queries @ passages.T).argmax(axis=1).tolist() == [0, 1, 2]
        response = await stub.Rerank(pb.RerankRequest(query_text=asked[0], passages=said), timeout=30)
        assert max(response.scores) == response.scores[0]


async def test_multilingual_model_publishes_the_tokenizer_that_counts_what_it_sees(
    multilingual: LocalModels, models_dir: Path
) -> None:
    async with serving(multilingual, settings(models_dir)) as stub:
        published = await stub.GetTokenizer(pb.GetTokenizerRequest(), timeout=30)
        info = await stub.GetModelInfo(pb.GetModelInfoRequest(), timeout=30)
        texts = ["Tokenisierung, zweimal gezählt: ไทยภาษา", "word " * 1000]
        embedded = await stub.Embed(pb.EmbedRequest(texts=texts, kind=PASSAGE), timeout=30)
    assert (published.tokenizer_json, published.sha256) == (
        b"",
        hashlib.sha256(published.sentencepiece_model).hexdigest(),
    )
    processor = SentencePieceProcessor(model_proto=published.sentencepiece_model)
    assert embedded.token_counts[0] == len(processor.encode(f"passage: {texts[0]}")) + 2
    assert (embedded.token_counts[1], info.window_tokens) == (512, 510), "the prompt takes two tokens of the window"


async def test_claims_are_told_from_changes_of_them(multilingual: LocalModels, models_dir: Path) -> None:
    passages = [
        pb.JudgedPassage(text="Keep the cabinet dry.", heading="Manual"),
        pb.JudgedPassage(
            text="The cabinet heats to 60 degrees in 20 minutes. The filter must not be washed.", heading="Manual"
        ),
    ]
    said = {
        "The cabinet heats to 60 degrees in 20 minutes.": True,
        "The cabinet heats to 90 degrees in 20 minutes.": False,
        "I have washed the filter.": False,
    }
    claims = [pb.JudgedClaim(text=text, passages=[0, 1]) for text in said]
    async with serving(multilingual, settings(models_dir)) as stub:
        answer = await stub.JudgeClaims(pb.JudgeClaimsRequest(passages=passages, claims=claims), timeout=60)
    assert [verdict.probability >= 0.5 for verdict in answer.verdicts] == list(said.values())
    first = answer.verdicts[0]
    assert passages[first.passage].text[first.start : first.end] == "The cabinet heats to 60 degrees in 20 minutes."
    assert answer.judge


async def test_server_without_the_judge_s_model_says_so(stub: Any) -> None:
    request = pb.JudgeClaimsRequest(
        passages=[pb.JudgedPassage(text="It is dry.")], claims=[pb.JudgedClaim(text="It is dry.", passages=[0])]
    )
    with pytest.raises(FailedPrecondition, match="CPU_EMBEDDING_MODEL=multilingual") as refused:
        await stub.JudgeClaims(request, timeout=30)
    assert refused.value.reason == "JUDGE_UNAVAILABLE"
