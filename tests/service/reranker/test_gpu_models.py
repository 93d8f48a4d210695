"""The GPU's adapters over tiny models that are made here, with random weights; on the CPU unless torch sees a GPU."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="skipped: install groundwork[gpu]")
sentence_transformers = pytest.importorskip("sentence_transformers", reason="skipped: install groundwork[gpu]")

from groundwork.reranker.v1 import reranker_pb2 as pb  # noqa: E402
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors  # noqa: E402
from transformers import (  # noqa: E402
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
)

from services.reranker.adapters.sentence_transformers import BiEncoder, CrossEncoder, EntailmentModel  # noqa: E402
from services.reranker.adapters.tokenizers import HuggingFacePairTokenizer, HuggingFaceTokenizer  # noqa: E402
from services.reranker.app import compose, load_models  # noqa: E402
from services.reranker.batching.padding import pad  # noqa: E402
from services.reranker.errors import DeviceMemoryExhausted, ModelFileMissing, ModelUnusable  # noqa: E402
from services.reranker.models import TextKind  # noqa: E402
from services.reranker.settings import RerankerSettings  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOLERANCE = 0.02 if DEVICE == "cuda" else 1e-4
"""bf16 has eight bits of precision."""
WINDOW = 24
WORDS = [
    "red",
    "green",
    "blue",
    "lamp",
    "moon",
    "river",
    "stone",
    "over",
    "under",
    "the",
    "and",
    "query",
    "passage",
    ":",
]
SPECIAL = ["[CLS]", "[PAD]", "[UNK]", "[SEP]"]
"""In XLM-RoBERTa's order: padding is not 0."""
QUERY = "the red lamp"
PASSAGES = ["blue moon over the river", "red lamp", "stone " * 40, "green", "red lamp"]
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def tokenizer(types: bool) -> Any:
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer, words.normalizer = pre_tokenizers.Whitespace(), normalizers.Lowercase()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 0), ("[SEP]", 3)]
    )
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=WINDOW, model_input_names=names, **special)


def save(folder: Path, model: Any, types: bool = True) -> str:
    model.eval()
    model.save_pretrained(folder)
    tokenizer(types).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module", params=["bert", "roberta"])
def cross_encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """BERT tells query and passage apart by types; RoBERTa, as in bge-reranker-v2-m3, counts positions by its padding token."""
    torch.manual_seed(3)
    size = {"vocab_size": len(SPECIAL + WORDS), "num_labels": 1, "pad_token_id": 1, **SIZE}
    folder = tmp_path_factory.mktemp("cross")
    if request.param == "bert":
        config = BertConfig(max_position_embeddings=WINDOW, initializer_range=0.5, **size)
        return save(folder, BertForSequenceClassification(config))
    # Two positions are spent on the padding token and what stands below it.
    config = XLMRobertaConfig(
        max_position_embeddings=WINDOW + 2,
        bos_token_id=0,
        eos_token_id=3,
        initializer_range=0.5,
        **size,
    )
    return save(folder, XLMRobertaForSequenceClassification(config), types=False)


@pytest.fixture(scope="module")
def bi_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    torch.manual_seed(5)
    config = BertConfig(vocab_size=len(SPECIAL + WORDS), max_position_embeddings=WINDOW, initializer_range=0.5, **SIZE)
    plain = save(tmp_path_factory.mktemp("bert"), BertModel(config))
    prompts = {"query": "query : ", "document": "passage : "}
    model = sentence_transformers.SentenceTransformer(plain, device="cpu", prompts=prompts, local_files_only=True)
    folder = str(tmp_path_factory.mktemp("bi"))
    model.save(folder)
    return folder


def score(model: CrossEncoder, passages: list[str], multiple: int = 16) -> Any:
    pairs = HuggingFacePairTokenizer(model.tokenizer_json.decode(), model.window_tokens)
    return model.encode(*pad(pairs.tokenize_pairs(QUERY, passages), multiple)).pooled.reshape(-1)


def test_cross_encoder_scores_as_the_library_does_whatever_the_padding(cross_encoder: str) -> None:
    model = CrossEncoder(cross_encoder, DEVICE)
    reference = sentence_transformers.CrossEncoder(cross_encoder, device=DEVICE, local_files_only=True)
    expected = reference.predict([(QUERY, passage) for passage in PASSAGES], show_progress_bar=False)
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(score(model, PASSAGES), expected, atol=TOLERANCE)
    np.testing.assert_allclose(score(model, PASSAGES, multiple=1), expected, atol=TOLERANCE)
    np.testing.assert_allclose([score(model, [passage])[0] for passage in PASSAGES], expected, atol=TOLERANCE)


def test_bi_encoder_embeds_as_the_library_does_with_its_prompts(bi_encoder: str) -> None:
    model = BiEncoder(bi_encoder, DEVICE)
    assert model.prompts == {TextKind.QUERY: "query : ", TextKind.PASSAGE: "passage : "}
    assert (model.dimension, model.window_tokens) == (32, WINDOW)
    texts = HuggingFaceTokenizer(model.tokenizer_json, model.window_tokens)
    found = model.encode(*pad(texts.tokenize(["passage : " + text for text in PASSAGES]), 16)).pooled
    reference = sentence_transformers.SentenceTransformer(bi_encoder, device=DEVICE, local_files_only=True)
    expected = reference.encode(PASSAGES, prompt_name="document", normalize_embeddings=True)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


def test_full_memory_is_told_from_other_failures(cross_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CrossEncoder(cross_encoder, DEVICE)

    def refuse(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(model._model.model, "forward", refuse)
    with pytest.raises(DeviceMemoryExhausted, match="lower GROUNDWORK_RERANKER_GPU_BATCH_TOKENS"):
        score(model, PASSAGES)


def test_model_that_is_not_here_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(ModelFileMissing, match="GROUNDWORK_RERANKER_GPU_DOWNLOAD=true"):
        CrossEncoder(str(tmp_path / "nothing"), DEVICE)
    with pytest.raises(ModelFileMissing, match="hf download"):
        CrossEncoder("example/none-such-model", DEVICE)


def test_classifier_of_several_labels_is_no_reranker(tmp_path: Path) -> None:
    config = BertConfig(vocab_size=len(SPECIAL + WORDS), max_position_embeddings=WINDOW, num_labels=3, **SIZE)
    with pytest.raises(ModelUnusable, match="3 scores for a pair where one is wanted"):
        CrossEncoder(save(tmp_path, BertForSequenceClassification(config)), DEVICE)


def entailment_model(folder: Path, labels: dict[int, str]) -> str:
    torch.manual_seed(7)
    size = {"vocab_size": len(SPECIAL + WORDS), "max_position_embeddings": WINDOW, "initializer_range": 0.5, **SIZE}
    config = BertConfig(id2label=labels, label2id={label: number for number, label in labels.items()}, **size)
    return save(folder, BertForSequenceClassification(config))


def test_entailment_is_read_by_the_names_of_the_labels(tmp_path: Path) -> None:
    folder = entailment_model(tmp_path, {0: "CONTRADICTION", 1: "ENTAILMENT", 2: "NEUTRAL"})
    model = EntailmentModel(folder, DEVICE)
    reference = sentence_transformers.CrossEncoder(folder, device=DEVICE, local_files_only=True)
    expected = reference.predict(
        [(QUERY, passage) for passage in PASSAGES], show_progress_bar=False, activation_fn=torch.nn.Softmax(dim=-1)
    )
    pairs = HuggingFacePairTokenizer(model.tokenizer_json.decode(), model.window_tokens)
    found = model.encode(*pad(pairs.tokenize_pairs(QUERY, PASSAGES), 16)).pooled
    np.testing.assert_allclose(found, expected[:, [1, 2, 0]], atol=TOLERANCE)


def test_model_without_entailment_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match="none for entailment"):
        EntailmentModel(entailment_model(tmp_path, {0: "good", 1: "bad", 2: "ugly"}), DEVICE)


async def test_service_judges_claims_by_the_entailment_model(tmp_path: Path, models_dir: Path) -> None:
    labels = {0: "entailment", 1: "neutral", 2: "contradiction"}
    settings = RerankerSettings(
        models_dir=models_dir,
        data_dir=tmp_path / "data",
        reranker_embedding_provider="cpu",
        reranker_rerank_provider="cpu",
        reranker_gpu_device=DEVICE,
        reranker_gpu_judge_model=entailment_model(tmp_path / "nli", labels),
    )
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(1))
        servicer, loops = await compose(await asyncio.to_thread(load_models, settings), settings, executor, stack)
        tasks = [asyncio.create_task(loop.run()) for loop in loops]
        request = pb.JudgeClaimsRequest(
            passages=[pb.JudgedPassage(text="the red lamp"), pb.JudgedPassage(text="blue moon")],
            claims=[pb.JudgedClaim(text="red lamp", passages=[0, 1])],
        )
        said = await servicer.JudgeClaims(request, None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert said.judge.endswith("/entailment")
    assert not said.measured
    (verdict,) = said.verdicts
    assert 0.0 < verdict.probability < 1.0
    assert 0.0 < verdict.contradiction <= 1.0 - verdict.probability


async def test_service_runs_both_models_on_one_device(cross_encoder: str, bi_encoder: str, tmp_path: Path) -> None:
    settings = RerankerSettings(
        models_dir=tmp_path,
        reranker_embedding_provider="gpu",
        reranker_rerank_provider="gpu",
        reranker_gpu_device=DEVICE,
        reranker_gpu_embedding_model=bi_encoder,
        reranker_gpu_rerank_model=cross_encoder,
    )
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(1))
        models_ = await asyncio.to_thread(load_models, settings)
        servicer, (batcher,) = await compose(models_, settings, executor, stack)
        task = asyncio.create_task(batcher.run())
        embedded = await servicer.Embed(pb.EmbedRequest(texts=["red", "stone " * 40], kind=pb.EMBED_KIND_PASSAGE), None)
        scored = await servicer.Rerank(pb.RerankRequest(query_text=QUERY, passages=PASSAGES), None)
        info = await servicer.GetModelInfo(pb.GetModelInfoRequest(), None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    vectors = np.frombuffer(embedded.vectors, dtype="<f4").reshape(2, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)
    assert list(embedded.token_counts) == [5, WINDOW]
    np.testing.assert_allclose(scored.scores, score(models_.cross_encoder, PASSAGES), atol=TOLERANCE)
    assert scored.scores[1] == scored.scores[4]
    assert (info.runtime, info.rerank_runtime) == (f"sentence-transformers/{DEVICE}",) * 2
    assert info.window_tokens == WINDOW - 2


def test_gpu_model_that_nobody_asked_for_is_passed_over_when_it_is_not_here(models_dir: Path) -> None:
    settings = RerankerSettings(models_dir=models_dir, reranker_gpu_device="cpu")
    loaded = load_models(settings)
    assert (loaded.cross_encoder, loaded.bi_encoder) == (None, None)
    assert loaded.cpu is not None
