"""Composition root of the retriever: the one place that names its adapters and owns their lives."""

from groundwork.retriever.v1 import retriever_pb2
from groundwork.retriever.v1.retriever_pb2_grpc import add_RetrieverServiceServicer_to_server

from kit.channel import open_channel
from kit.jetstream import connect
from kit.service import Service
from services.retriever.activation import RevisionSwitch
from services.retriever.adapters.edge import EdgeIndex
from services.retriever.adapters.model_server import ModelServer
from services.retriever.adapters.revisions import NatsRevisions
from services.retriever.adapters.tantivy import TantivyIndex
from services.retriever.chunk_reader import ChunkReader
from services.retriever.handlers import RetrieverServicer
from services.retriever.indexing import RevisionWriter
from services.retriever.removal import Reconciler, Remover
from services.retriever.revision_map import RevisionMap
from services.retriever.search import Searcher
from services.retriever.settings import RetrieverSettings

_WATCH_RETRY_S = 0.5


async def run(settings: RetrieverSettings) -> None:
    """Serves until told to stop."""
    async with Service("retriever", settings) as service:
        stack = service.stack
        # tantivy first: its writer lock keeps a second process out of both indexes.
        lexical = await TantivyIndex.open(
            settings.index_dir / "lexical", writer_heap_bytes=settings.retriever_lexical_heap_bytes
        )
        stack.push_async_callback(lexical.close)
        dense = await EdgeIndex.open(settings.index_dir / "dense")
        stack.push_async_callback(dense.close)
        nats = await stack.enter_async_context(connect(settings.nats_url, name="retriever"))
        store = await NatsRevisions.open(nats)
        # Without retries: a search that waits for them is worse than one that says what it went without.
        channel = await stack.enter_async_context(open_channel(settings.reranker_address, service.signer))
        models = ModelServer(channel)

        revisions = RevisionMap()
        remover = Remover(dense, lexical)
        servicer = RetrieverServicer(
            Searcher(dense, lexical, embedder=models, reranker=models, revisions=revisions, options=settings.search),
            ChunkReader((lexical, dense), revisions),
            RevisionWriter(dense, lexical, revisions, settings.indexing),
            RevisionSwitch(dense, lexical, store, revisions, remover),
            revisions,
        )
        service.spawn(revisions.follow(store, retry_s=_WATCH_RETRY_S, resync_s=settings.retriever_resync_s))
        service.spawn(remover.run())
        service.spawn(Reconciler(dense, lexical, revisions, remover, settings.reconcile).run())
        service.require("revisions", revisions.wait_loaded)
        service.add_servicer(
            add_RetrieverServiceServicer_to_server,
            servicer,
            retriever_pb2.DESCRIPTOR.services_by_name["RetrieverService"],
        )
        await service.serve()
