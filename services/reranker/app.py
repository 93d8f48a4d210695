"""Composition root of the model server: the only file that names concrete adapters.

Two questions are answered here, each for embeddings and for scores: where (remote, GPU, CPU; `providers.py` holds the order),
and with what. Late interaction needs token vectors, which only the CPU model gives: it scores wherever nothing better does.
"""

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import structlog
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from threadpoolctl import threadpool_limits

from kit.process.service import Service
from services.reranker import metrics
from services.reranker.adapters.cpu_model import LoadedModel, embedding_models, load
from services.reranker.adapters.sqlite_store import SqlitePassageStore
from services.reranker.batching.batching import Batcher
from services.reranker.embedding.embedder import Embedding
from services.reranker.embedding.pooling import NUMBERS_A_BYTE, VECTOR_FORMAT
from services.reranker.embedding.preparation import PairPreparation, Preparation
from services.reranker.embedding.providers import choose
from services.reranker.errors import ModelFileMissing
from services.reranker.handlers import RerankerServicer
from services.reranker.judging.entailing import EntailmentJudging
from services.reranker.judging.judging import ClaimJudging, Judging
from services.reranker.judging.reading import ReadText
from services.reranker.model_files import EmbeddingModel
from services.reranker.models import (
    EmbeddingModelInfo,
    Lane,
    ModelInfo,
    Provider,
    TextKind,
    TokenizerDefinition,
    TokenizerForm,
    VectorSpace,
)
from services.reranker.on_demand import OnDemandEmbedder
from services.reranker.ports import Encoder, TextEmbedder, TextReranker
from services.reranker.reranking.cross_encoding import CrossEncoding
from services.reranker.reranking.known_texts import KnownTexts
from services.reranker.reranking.late_interaction import Reranking
from services.reranker.reranking.passage_cache import TextCache
from services.reranker.settings import RerankerSettings

if TYPE_CHECKING:
    from services.reranker.adapters.sentence_transformers import BiEncoder, CrossEncoder, EntailmentModel

_PREPARATION_THREADS = 2
_STORE_THREADS = 2
"""One reads and one writes."""
NO_TOKENIZER = TokenizerDefinition(TokenizerForm.HUGGING_FACE, b"")

_log = structlog.get_logger()


@dataclass(frozen=True)
class LocalModels:
    """What runs on this machine; None is what nobody needs."""

    embedding: Provider
    reranking: Provider
    cpu: LoadedModel | None
    other_cpu_models: tuple[EmbeddingModel, ...]
    """Loaded when a text is to be embedded with them."""
    bi_encoder: "BiEncoder | None"
    cross_encoder: "CrossEncoder | None"
    entailment: "EntailmentModel | None" = None


@dataclass(frozen=True)
class _Embedder:
    embedder: TextEmbedder
    info: EmbeddingModelInfo
    tokenizer: TokenizerDefinition


@dataclass(frozen=True)
class _Scorer:
    reranker: TextReranker
    name: str
    runtime: str


@dataclass(frozen=True)
class _Parts:
    models: LocalModels
    settings: RerankerSettings
    batchers: dict[Provider, Batcher]
    executor: Executor
    stack: AsyncExitStack
    known: KnownTexts | None
    """Token vectors, where late interaction scores."""


async def run(settings: RerankerSettings) -> None:
    """Serves until a signal stops it. Raises what loading raises, such as ModelFileMissing, before the port is bound."""
    limit_blas_threads()
    models = await asyncio.to_thread(load_models, settings)
    async with Service("reranker", settings) as service:
        executor = service.stack.enter_context(ThreadPoolExecutor(_PREPARATION_THREADS, thread_name_prefix="prepare"))
        servicer, loops = await compose(models, settings, executor, service.stack)
        for loop in loops:
            service.spawn(loop.run())
        service.add_servicer(
            reranker_pb2_grpc.add_RerankerServiceServicer_to_server,
            servicer,
            reranker_pb2.DESCRIPTOR.services_by_name["RerankerService"],
        )
        await service.serve()


def limit_blas_threads() -> None:
    """Late interaction is many small products. OpenBLAS divides each among all cores and spins until the slowest has its part:
    30 passages took 128 ms on two busy cores, and 5 ms with one thread."""
    threadpool_limits(limits=1, user_api="blas")


async def compose(
    models: LocalModels, settings: RerankerSettings, executor: Executor, stack: AsyncExitStack
) -> tuple[RerankerServicer, list[Batcher | KnownTexts]]:
    """The servicer, and the part whose `run()` must be running for it to answer. Connections end with `stack`."""
    batchers = _batchers(models, settings)
    known = await _known_texts(models.cpu, settings, stack) if models.reranking is Provider.CPU and models.cpu else None
    parts = _Parts(models, settings, batchers, executor, stack, known)
    embedder, scorer = await _embedder(parts), await _scorer(parts)
    others = {model.name: _on_demand(model, parts) for model in models.other_cpu_models}
    info = ModelInfo(
        embedding=embedder.info,
        rerank_model=scorer.name,
        rerank_runtime=scorer.runtime,
        others=tuple(other.info for other in others.values()),
    )
    metrics.MODEL_INFO.labels("embedding", info.embedding.name, info.embedding.runtime).set(1)
    metrics.MODEL_INFO.labels("rerank", info.rerank_model, info.rerank_runtime).set(1)
    _log.info("models_ready", embedding=info.embedding.name, runtime=info.embedding.runtime, rerank=info.rerank_model)
    embedders = {each.info.name: each.embedder for each in (embedder, *others.values())}
    servicer = RerankerServicer(embedders, scorer.reranker, info, embedder.tokenizer, known, _judging(parts))
    return servicer, [*batchers.values(), *([known] if known else [])]


async def _known_texts(cpu: LoadedModel, settings: RerankerSettings, stack: AsyncExitStack) -> KnownTexts:
    executor = stack.enter_context(ThreadPoolExecutor(_STORE_THREADS, thread_name_prefix="store"))
    store = None
    if settings.reranker_store_bytes:
        dimension = cpu.encoder.dimension
        space = VectorSpace(f"{cpu.model.name}/{VECTOR_FORMAT}", dimension, dimension // NUMBERS_A_BYTE)
        store = await asyncio.to_thread(
            SqlitePassageStore,
            settings.store_folder,
            settings.reranker_store_bytes,
            space,
            max_idle_days=settings.reranker_store_days,
        )
        stack.push_async_callback(asyncio.to_thread, store.close)
    return KnownTexts(TextCache(settings.reranker_cache_bytes), store, executor)


def _batchers(models: LocalModels, settings: RerankerSettings) -> dict[Provider, Batcher]:
    """One per device: what shares a device shares a queue."""
    batchers = {}
    if models.cpu is not None:
        batchers[Provider.CPU] = Batcher(models.cpu.encoder, settings.cpu_limits)
    first = models.bi_encoder or models.cross_encoder or models.entailment
    if first is not None:
        others: dict[Lane, Encoder] = {Lane.RERANK: models.cross_encoder} if models.cross_encoder else {}
        batchers[Provider.GPU] = Batcher(first, settings.gpu_limits, others=others)
    return batchers


async def _embedder(parts: _Parts) -> _Embedder:
    models = parts.models
    if models.embedding is Provider.REMOTE:
        return await _remote_embedder(parts.settings, parts.stack)
    batcher = parts.batchers[models.embedding]
    if models.embedding is Provider.GPU and models.bi_encoder is not None:
        return _gpu_embedder(models.bi_encoder, batcher, parts.executor)
    assert models.cpu is not None
    preparation = _preparation(models.cpu, parts.executor)
    encoder = models.cpu.encoder
    return _Embedder(
        Embedding(preparation, batcher, parts.known),
        EmbeddingModelInfo(models.cpu.model.name, encoder.dimension, preparation.window_tokens, encoder.runtime),
        models.cpu.tokenizer.definition,
    )


def _judging(parts: _Parts) -> ClaimJudging | None:
    """None where neither a model with entailment labels nor the model of the learned judge is loaded."""
    if (model := parts.models.entailment) is not None:
        from services.reranker.adapters.tokenizers import HuggingFacePairTokenizer  # noqa: PLC0415 - as below

        tokenizer = HuggingFacePairTokenizer(model.tokenizer_json.decode(), model.window_tokens)
        preparation = PairPreparation(tokenizer, parts.executor)
        return EntailmentJudging(f"{model.name}/entailment", preparation, parts.batchers[Provider.GPU], model)
    cpu = parts.models.cpu
    if cpu is None or cpu.pieces_of is None:
        return None
    cache = TextCache[ReadText](parts.settings.reranker_judge_cache_bytes)
    return Judging(
        cpu.encoder.runtime,
        _preparation(cpu, parts.executor),
        parts.batchers[Provider.CPU],
        cpu.pieces_of,
        cache,
        parts.executor,
        parts.settings.judge_rules,
    )


def _preparation(model: LoadedModel, executor: Executor) -> Preparation:
    return Preparation(model.tokenizer, executor, model.model.prompts)


def _on_demand(model: EmbeddingModel, parts: _Parts) -> _Embedder:
    """Shares the queue of the model for new texts: both compute on the same cores."""
    batcher = parts.batchers[Provider.CPU]

    def embedder_of(loaded: LoadedModel) -> Embedding:
        metrics.MODEL_INFO.labels("embedding", model.name, loaded.encoder.runtime).set(1)
        _log.info("model_loaded", embedding=model.name, runtime=loaded.encoder.runtime)
        return Embedding(_preparation(loaded, parts.executor), batcher, encoder=loaded.encoder)

    # Not among the threads that tokenize: requests for the other model go on meanwhile.
    executor = parts.stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="load"))
    assert parts.models.cpu is not None
    runtime = parts.models.cpu.encoder.runtime
    return _Embedder(
        OnDemandEmbedder(partial(load, parts.settings, model), embedder_of, executor),
        EmbeddingModelInfo(model.name, model.dimension, model.window_tokens, runtime),
        NO_TOKENIZER,
    )


def _gpu_embedder(model: "BiEncoder", batcher: Batcher, executor: Executor) -> _Embedder:
    from services.reranker.adapters.tokenizers import HuggingFaceTokenizer  # noqa: PLC0415 - as below

    tokenizer = HuggingFaceTokenizer(model.tokenizer_json, model.window_tokens)
    preparation = Preparation(tokenizer, executor, model.prompts)
    return _Embedder(
        Embedding(preparation, batcher),
        EmbeddingModelInfo(model.name, model.dimension, preparation.window_tokens, model.runtime),
        tokenizer.definition,
    )


async def _remote_embedder(settings: RerankerSettings, stack: AsyncExitStack) -> _Embedder:
    from services.reranker.adapters import remote_api, remote_embeddings  # noqa: PLC0415 - as below

    endpoint = remote_api.Endpoint(
        settings.reranker_remote_embedding_url,
        settings.reranker_remote_embedding_api_key.get_secret_value(),
        "GROUNDWORK_RERANKER_REMOTE_EMBEDDING",
        settings.reranker_remote_concurrency,
        settings.reranker_remote_embedding_local,
    )
    api = settings.reranker_remote_embedding_api
    model = remote_embeddings.RemoteEmbeddingModel(
        api,
        settings.reranker_remote_embedding_model,
        settings.reranker_remote_embedding_batch_texts or remote_embeddings.DEFAULT_BATCH_TEXTS[api],
        {
            TextKind.QUERY: settings.reranker_remote_embedding_query_prompt,
            TextKind.PASSAGE: settings.reranker_remote_embedding_passage_prompt,
        },
        settings.reranker_remote_embedding_dimensions,
    )
    client = await stack.enter_async_context(remote_api.open_remote_api(endpoint))
    embedder = remote_embeddings.RemoteEmbedder(client, model)
    await embedder.probe()
    window_tokens = settings.reranker_remote_embedding_window_tokens
    info = EmbeddingModelInfo(model.model, embedder.dimension, window_tokens, f"{api}/remote")
    return _Embedder(embedder, info, NO_TOKENIZER)


async def _scorer(parts: _Parts) -> _Scorer:
    models = parts.models
    if models.reranking is Provider.REMOTE:
        return await _remote_scorer(parts.settings, parts.stack)
    batcher = parts.batchers[models.reranking]
    if models.reranking is Provider.GPU and models.cross_encoder is not None:
        return _gpu_scorer(models.cross_encoder, batcher, parts.executor)
    assert models.cpu is not None
    assert parts.known is not None
    return _Scorer(
        Reranking(_preparation(models.cpu, parts.executor), batcher, parts.known, parts.executor),
        f"{models.cpu.model.name}/late-interaction",
        models.cpu.encoder.runtime,
    )


def _gpu_scorer(model: "CrossEncoder", batcher: Batcher, executor: Executor) -> _Scorer:
    from services.reranker.adapters.tokenizers import HuggingFacePairTokenizer  # noqa: PLC0415 - as below

    tokenizer = HuggingFacePairTokenizer(model.tokenizer_json.decode(), model.window_tokens)
    return _Scorer(CrossEncoding(PairPreparation(tokenizer, executor), batcher), model.name, model.runtime)


async def _remote_scorer(settings: RerankerSettings, stack: AsyncExitStack) -> _Scorer:
    from services.reranker.adapters import remote_api, remote_rerank  # noqa: PLC0415 - as below

    endpoint = remote_api.Endpoint(
        settings.reranker_remote_rerank_url,
        settings.reranker_remote_rerank_api_key.get_secret_value(),
        "GROUNDWORK_RERANKER_REMOTE_RERANK",
        settings.reranker_remote_concurrency,
        settings.reranker_remote_rerank_local,
    )
    api = settings.reranker_remote_rerank_api
    batch_texts = settings.reranker_remote_rerank_batch_texts or remote_rerank.DEFAULT_BATCH_TEXTS[api]
    model = remote_rerank.RemoteRerankModel(api, settings.reranker_remote_rerank_model, batch_texts)
    client = await stack.enter_async_context(remote_api.open_remote_api(endpoint))
    return _Scorer(remote_rerank.RemoteReranker(client, model), model.model, f"{api}/remote")


def load_models(settings: RerankerSettings) -> LocalModels:
    """Chooses, loads and warms up what runs on this machine. Blocking: half a second on a CPU, many on a GPU."""
    from services.reranker.adapters import sentence_transformers  # noqa: PLC0415 - loaded off the event loop

    has_gpu = cache(lambda: sentence_transformers.gpu_available(settings.reranker_gpu_device))
    embedding, reranking = (
        choose(
            getattr(settings, f"reranker_{part}_provider"),
            remote_url=getattr(settings, f"reranker_remote_{part}_url"),
            gpu_model=getattr(settings, f"reranker_gpu_{part}_model"),
            has_gpu=has_gpu,
        )
        for part in ("embedding", "rerank")
    )
    cross_encoder = _load_cross_encoder(settings) if reranking is Provider.GPU else None
    if cross_encoder is None and reranking is Provider.GPU:
        reranking = Provider.CPU
    bi_encoder = None
    if embedding is Provider.GPU:
        bi_encoder = sentence_transformers.BiEncoder(
            settings.reranker_gpu_embedding_model,
            settings.reranker_gpu_device,
            may_download=settings.reranker_gpu_download,
        )
    entailment = None
    if settings.reranker_gpu_judge_model:
        entailment = sentence_transformers.EntailmentModel(
            settings.reranker_gpu_judge_model,
            settings.reranker_gpu_device,
            may_download=settings.reranker_gpu_download,
        )
    if cross_encoder or bi_encoder or entailment:
        sentence_transformers.show_device_memory(settings.reranker_gpu_device)
    cpu, *others = embedding_models(settings)
    return LocalModels(
        embedding,
        reranking,
        load(settings, cpu) if Provider.CPU in (embedding, reranking) else None,
        tuple(others) if embedding is Provider.CPU else (),
        bi_encoder,
        cross_encoder,
        entailment,
    )


def _load_cross_encoder(settings: RerankerSettings) -> "CrossEncoder | None":
    """None when nobody asked for the GPU and the model's files are not there: then the CPU scores."""
    from services.reranker.adapters.sentence_transformers import CrossEncoder  # noqa: PLC0415 - as below

    try:
        return CrossEncoder(
            settings.reranker_gpu_rerank_model,
            settings.reranker_gpu_device,
            may_download=settings.reranker_gpu_download,
        )
    except ModelFileMissing as error:
        if settings.reranker_rerank_provider == "gpu":
            raise
        _log.warning(
            "model_provider_passed_over", provider="gpu", model=settings.reranker_gpu_rerank_model, error=str(error)
        )
        return None
