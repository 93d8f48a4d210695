"""Composition root of the retriever: the one place that names its adapters and owns their lives."""

import asyncio
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager

from groundwork.retriever.v1 import retriever_pb2
from groundwork.retriever.v1.retriever_pb2_grpc import add_RetrieverServiceServicer_to_server

from kit.jetstream import Nats
from kit.jetstream.leases import NatsLeases
from kit.language.detection import FastTextLanguages
from kit.language.question_language import QuestionLanguages
from kit.process.service import Service
from kit.stores.message_store import lasting, open_message_store
from services.retriever import metrics
from services.retriever.adapters.collection_models import NatsCollectionModels
from services.retriever.adapters.collections import NatsCollections
from services.retriever.adapters.edge.spaces import EdgeSpaces
from services.retriever.adapters.model_server import ModelServer, ModelServerReplicas
from services.retriever.adapters.revisions import NatsRevisions
from services.retriever.adapters.tantivy.index import TantivyIndex
from services.retriever.concurrency import KeyedLock
from services.retriever.errors import EngineUnsupported
from services.retriever.handlers import RetrieverServicer
from services.retriever.indexes.engine_answer import DENSE, LEXICAL, Part
from services.retriever.indexes.observed import Engine, ObservedDense, ObservedLexical
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.memories.memory_index import MemoryIndex
from services.retriever.model_change.embedding_builder import EmbeddingBuilder
from services.retriever.model_change.embedding_changes import EmbeddingChanges
from services.retriever.model_change.embedding_map import EmbeddingMap
from services.retriever.model_change.evaluator import Evaluator
from services.retriever.ports import LexicalIndex, OwnIndex
from services.retriever.revisions.activation import RevisionSwitch
from services.retriever.revisions.chunk_reader import ChunkReader
from services.retriever.revisions.copying import DenseCopier
from services.retriever.revisions.freshness import Freshness
from services.retriever.revisions.index_gaps import IndexGaps
from services.retriever.revisions.indexing import RevisionWriter
from services.retriever.revisions.removal import Remover
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.revisions.revision_reader import RevisionReader
from services.retriever.revisions.written import WrittenRevisions
from services.retriever.searching.engines import Engines
from services.retriever.searching.query_language import QueryLanguages
from services.retriever.searching.reranking import RerankStage
from services.retriever.searching.result_cache import ResultCache
from services.retriever.searching.search import Searcher
from services.retriever.settings import RetrieverSettings
from services.retriever.state import LEASE_TTL_S, LEASES
from services.retriever.upkeep.caretaker import Caretaker
from services.retriever.upkeep.engine_watch import EngineWatch
from services.retriever.upkeep.erasing import DOCUMENTS, MEMORIES, Eraser
from services.retriever.upkeep.forgetting import ForgettingRemoval
from services.retriever.upkeep.reconciler import Reconciler
from services.retriever.upkeep.refill import Refiller

_WATCH_RETRY_S = 0.5
"""After a kill the change of an embedding model rests for so long."""
_MODELS_PATIENCE_S = 0.5
"""Long enough for a connection to another replica."""


async def run(settings: RetrieverSettings) -> None:
    """Serves until a signal stops it."""
    async with Service("retriever", settings) as service:
        stack = service.stack
        # tantivy first: its writer lock keeps a second process out of both indexes.
        lexical, own_lexical = await _open_lexical(settings, stack)
        dense, own_dense = await _open_dense(settings, stack)
        # How long searches may go on without the store is a setting: see Freshness.
        nats = await open_message_store(service, settings, stops_after_s=math.inf)
        store = await NatsRevisions.open(nats)
        collections = await NatsCollections.open(nats)
        model_store = await NatsCollectionModels.open(nats)
        # Without retries, and not patient: a search that waits for a restart is worse than one that says what it went without.
        patience_s = min(_MODELS_PATIENCE_S, settings.connection_patience_s)
        models = ModelServer(await service.channel(settings.reranker_address, patience_s=patience_s))

        revisions = RevisionMap(staleness_s=settings.retriever_staleness_s)
        freshness = Freshness(store, revisions, staleness_s=settings.retriever_staleness_s)
        metrics.POINTER_AGE.set_function(lambda: revisions.age_s)
        written = WrittenRevisions(time.monotonic)
        turns, writing = KeyedLock(), KeyedLock()
        replicas = ModelServerReplicas(settings.reranker_address, service.signer, service.certificates)
        removal = ForgettingRemoval(lexical, revisions, replicas)
        remover = Remover(dense, removal, store, revisions, written, turns)
        gaps = IndexGaps(revisions)
        own = {part: index for part, index in ((DENSE, own_dense), (LEXICAL, own_lexical)) if index is not None}
        shared = [] if own_lexical else [LEXICAL]
        copier = DenseCopier(dense, lexical, models, collections)
        refiller = Refiller(dense, lexical, copier, revisions, gaps, writing, list(own), shared)
        reconciler = Reconciler(dense, lexical, store, revisions, gaps, remover, settings.reconcile)
        reader = ChunkReader((lexical, dense), revisions, collections)
        detector = FastTextLanguages()
        await asyncio.to_thread(detector.load)
        collection_models = EmbeddingMap()
        searcher = Searcher(
            Engines(dense, lexical, models, QueryLanguages(QuestionLanguages(detector)), settings.search),
            RerankStage(models, settings.search),
            reader,
            revisions,
            gaps,
            ResultCache(settings.search),
            settings.search,
            collections,
            collection_models,
        )
        switch = RevisionSwitch(dense, lexical, store, revisions, remover, written, turns)
        servicer = RetrieverServicer(
            searcher,
            reader,
            RevisionWriter(dense, lexical, revisions, written, settings.indexing, writing, switch.place),
            switch,
            revisions,
            RevisionReader(dense, lexical, revisions, refiller.is_filling),
            EmbeddingChanges(model_store, collection_models, revisions, models, collections),
            await _open_memories(service, settings, models),
        )
        service.spawn(
            lasting(
                "revisions",
                lambda: revisions.follow(store, retry_s=_WATCH_RETRY_S, resync_s=settings.retriever_resync_s),
            )
        )
        service.spawn(lasting("collections", collections.follow))
        builder = EmbeddingBuilder(
            model_store,
            collection_models,
            revisions,
            dense,
            copier,
            Evaluator(searcher, lexical, revisions),
            switch.place,
            writing,
            collections,
        )
        await _change_models(service, nats, collection_models, model_store, builder)
        service.spawn(searcher.forget_outdated())
        service.report(freshness.troubles)
        _watch_engines(service, EngineWatch(dense, lexical, gaps))
        service.spawn(lasting("freshness", freshness.run))
        service.spawn(lasting("removal", remover.run))
        service.spawn(lasting("reconciling", reconciler.run))
        service.spawn(refiller.run())
        _take_care(service, own, revisions, gaps)
        service.require("revisions", revisions.wait_loaded, holds_port=True)
        service.require("collections", collections.wait_known, holds_port=True)
        service.require("fresh revisions", freshness.wait_confirmed, holds_port=True)
        service.require("compared indexes", reconciler.wait_compared)
        service.add_servicer(
            add_RetrieverServiceServicer_to_server,
            servicer,
            retriever_pb2.DESCRIPTOR.services_by_name["RetrieverService"],
        )
        await service.serve()


async def _change_models(
    service: Service, nats: Nats, known: EmbeddingMap, store: NatsCollectionModels, builder: EmbeddingBuilder
) -> None:
    leases = await NatsLeases.open(nats, LEASES.name, ttl_s=LEASE_TTL_S)
    service.spawn(lasting("collection models", lambda: known.follow(store)))
    service.spawn(lasting("embedding", lambda: builder.run(leases.hold)))
    service.require("collection models", known.wait_loaded, holds_port=True)


def _take_care(service: Service, own: Mapping[Part, OwnIndex], revisions: RevisionMap, gaps: IndexGaps) -> None:
    for part, index in own.items():
        service.spawn(Caretaker(part, index, revisions, gaps).run())
        service.spawn(Eraser(part, index, DOCUMENTS, "documents").run())


def _watch_engines(service: Service, watch: EngineWatch) -> None:
    service.report(watch.troubles)
    service.spawn(watch.run())


async def _open_memories(service: Service, settings: RetrieverSettings, models: ModelServer) -> MemoryIndex:
    """The indexes of what is remembered of people, beside those of documents."""
    mine = settings.for_memories()
    lexical, own_lexical = await _open_lexical(mine, service.stack)
    dense, own_dense = await _open_dense(mine, service.stack)
    for part, own in ((DENSE, own_dense), (LEXICAL, own_lexical)):
        if own is not None:
            service.spawn(Eraser(part, own, MEMORIES, "memories").run())
    search = settings.search
    return MemoryIndex(
        dense,
        lexical,
        models,
        models,
        embed_timeout_s=search.embed_timeout_s,
        engine_timeout_s=search.engine_timeout_s,
    )


async def _open_lexical(settings: RetrieverSettings, stack: AsyncExitStack) -> tuple[LexicalIndex, OwnIndex | None]:
    """Elasticsearch where the settings name it, else tantivy, whose files are ours to look after."""
    if settings.elasticsearch is None:
        path = settings.index_dir / "lexical"
        embedded = await TantivyIndex.open(path, writer_heap_bytes=settings.retriever_lexical_heap_bytes)
        stack.push_async_callback(embedded.close)
        return ObservedLexical(embedded, Engine("tantivy")), embedded
    with _installed_as("elasticsearch"):
        from services.retriever.adapters.elasticsearch.index import ElasticsearchIndex  # noqa: PLC0415 - an extra
    server = await ElasticsearchIndex.open(settings.elasticsearch)
    stack.push_async_callback(server.close)
    return ObservedLexical(server, Engine("elasticsearch", settings.elasticsearch.index)), None


async def _open_dense(settings: RetrieverSettings, stack: AsyncExitStack) -> tuple[DenseSpaces, OwnIndex | None]:
    """A Qdrant server where the settings name it, else the Qdrant engine in this process, whose files are ours to look after."""
    if settings.qdrant is None:
        engine = Engine("qdrant-edge")
        embedded = await EdgeSpaces.open(settings.index_dir / "dense", lambda index: ObservedDense(index, engine))
        stack.push_async_callback(embedded.close)
        return DenseSpaces(embedded), embedded
    with _installed_as("qdrant"):
        from services.retriever.adapters.qdrant.spaces import QdrantSpaces  # noqa: PLC0415 - an extra
    server_engine = Engine("qdrant", settings.qdrant.collection)
    server = await QdrantSpaces.open(settings.qdrant, lambda index: ObservedDense(index, server_engine))
    stack.push_async_callback(server.close)
    return DenseSpaces(server), None


@contextmanager
def _installed_as(extra: str) -> Iterator[None]:
    """A laptop need not carry the clients of servers it does not use."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise EngineUnsupported(
            f"GROUNDWORK_{extra.upper()}_URL is set and its client is not installed: pip install 'groundwork[{extra}]'"
        ) from error
