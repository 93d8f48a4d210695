"""Composition root of ingestion: two processes of one package. The only file that names concrete adapters."""

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc, reading_pb2, reading_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc
from groundwork.store.v1 import store_pb2, store_pb2_grpc

from kit.access.sealing import Sealer
from kit.errors import GroundworkError
from kit.jetstream import Nats
from kit.jetstream.condition import StoreCondition
from kit.jetstream.leases import NatsLeases
from kit.limits.store import JetStreamCounters, LimitRules
from kit.network.egress import EgressGuard, parse_networks
from kit.process.service import Service
from kit.stores.idempotency import IdempotencyKeys
from kit.stores.message_store import lasting, open_message_store
from services.ingest import state
from services.ingest.adapters.clamd import ClamdScanner
from services.ingest.adapters.jetstream.dead_letters import NatsDeadLetterStore
from services.ingest.adapters.jetstream.document_access import NatsAccessLists
from services.ingest.adapters.jetstream.files import NatsFileStore
from services.ingest.adapters.jetstream.queues import NatsForgetting, NatsJobQueue
from services.ingest.adapters.jetstream.sources import NatsSourceStore, source_kinds
from services.ingest.adapters.jetstream.store_condition import ConditionReport, StoreServicer
from services.ingest.adapters.jetstream.stores import NatsCollectionStore, NatsDocumentStore
from services.ingest.adapters.reranker import RerankerEmbedder
from services.ingest.adapters.retriever import RetrieverIndex
from services.ingest.adapters.sources.folder import watched_folders
from services.ingest.collections.document_access import AccessDesk
from services.ingest.documents.access import Access
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.listing import Listing
from services.ingest.documents.revising import Reviser
from services.ingest.documents.uploads.copying import Copying
from services.ingest.documents.uploads.document_limits import DocumentLimits
from services.ingest.documents.uploads.lanes import LaneChoice
from services.ingest.documents.uploads.storage_limits import StorageLimits, default_limits
from services.ingest.documents.uploads.upload import Limits, Uploads
from services.ingest.fairness import FairShares
from services.ingest.handlers import IngestServicer, JobHandler
from services.ingest.metrics import Metrics
from services.ingest.ports import HeldLease, Leases
from services.ingest.reading.pool.children import ParserPool
from services.ingest.reading.recognition import OcrLimits
from services.ingest.reading.unkept.files import UnkeptFiles
from services.ingest.reading.unkept.handlers import ReadingServicer
from services.ingest.scanning import Gatekeeper
from services.ingest.settings import IngestSettings
from services.ingest.sources.access_refresh import AccessRefresh, AccessTimes
from services.ingest.sources.desk import SourceDesk
from services.ingest.sources.files import SourceFiles
from services.ingest.sources.known import KnownFiles
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import Surroundings
from services.ingest.sources.schedule import SourceSchedule
from services.ingest.sources.source_access import SourceAccess
from services.ingest.sources.syncing import SourceSyncs
from services.ingest.sources.taking import FileTaking
from services.ingest.spool import Spool
from services.ingest.upkeep.agreement import Agreement
from services.ingest.upkeep.backlog import Backlog
from services.ingest.upkeep.clearing import Clearing
from services.ingest.upkeep.collecting import Collector
from services.ingest.upkeep.reconciling import Reconciler
from services.ingest.upkeep.scrub import Scrub
from services.ingest.upkeep.sweeping import Sweeper
from services.ingest.work.attempts import Attempts
from services.ingest.work.dead_letters import DeadLetters
from services.ingest.work.embedding import BatchEmbedder
from services.ingest.work.ledger import Ledger
from services.ingest.work.patience import Patience
from services.ingest.work.pipeline import Pipeline
from services.ingest.work.reuse import ChangeEmbedder

_log = structlog.get_logger()
_DUTIES_LEASE = "duties.worker"
_SOURCES_LEASE = "duties.sources"
_LEASE_CHECK_INTERVAL_S = 1.0
_LEAD_RETRY_AFTER_S = 2.0

Duty = Callable[[], Coroutine[Any, Any, None]]
"""Runs until cancelled."""


@dataclass(frozen=True)
class _Shared:
    """What both processes are built on."""

    nats: Nats
    documents: NatsDocumentStore
    collections: NatsCollectionStore
    dead_letters: NatsDeadLetterStore
    files: NatsFileStore
    jobs: NatsJobQueue
    leases: NatsLeases
    condition: StoreCondition
    index: RetrieverIndex
    deletion: Deletion
    catalog: Catalog
    lists: NatsAccessLists
    access: Access
    clearing: Clearing
    reviser: Reviser
    letters: DeadLetters


async def run_api(settings: IngestSettings) -> None:
    """Serves the contract until a signal stops it."""
    async with Service("ingest", settings) as service:
        metrics = Metrics()
        shared = await _shared(service, settings, metrics)
        spool = service.stack.enter_context(Spool.own(settings.data_dir / "ingest"))
        keys = await IdempotencyKeys.open(shared.nats, state.KEYS)
        defaults = default_limits(settings.storage_quota_bytes, settings.storage_quotas)
        rules, counters = await LimitRules.open(shared.nats, defaults), await JetStreamCounters.open(shared.nats)
        storage = StorageLimits(shared.documents, rules.rules, _now)
        service.spawn(lasting("limits", rules.settings.follow))
        service.spawn(lasting("what is stored", storage.keep_up))
        uploads = Uploads(
            documents=shared.documents,
            keys=keys,
            files=shared.files,
            leases=shared.leases,
            catalog=shared.catalog,
            deletion=shared.deletion,
            access=shared.access,
            lists=shared.lists,
            reviser=shared.reviser,
            spool=spool,
            limits=Limits(settings.upload_limit_bytes, settings.upload_idle_timeout_s),
            now=_now,
            new_id=_new_id,
            lanes=LaneChoice(settings.ingest_bulk_after, time.monotonic),
            storage=storage,
            document_limits=DocumentLimits(rules.rules, counters, _now),
            gatekeeper=Gatekeeper(
                ClamdScanner(settings.scanner, settings.scanner_timeout_s) if settings.scanner else None,
                metrics,
                takes_unscanned=settings.scanner_away == "flag",
            ),
        )
        listing = Listing(shared.documents, shared.collections, shared.files, shared.catalog, shared.access, spool)
        sources = await NatsSourceStore.open(shared.nats, metrics)
        folders = watched_folders(settings.watched_folders, settings.data_dir / "watched-folders.json")
        guard = EgressGuard(parse_networks(settings.egress_allowed_networks))
        surroundings = Surroundings(folders, settings.source_max_files, guard)
        opener = SourceOpener(source_kinds(), Sealer(settings.signing_key()), surroundings, sources)
        known = KnownFiles(shared.documents, _now)
        source_access = SourceAccess(shared.documents, shared.lists, _now)
        taking = FileTaking(uploads, source_access, _now)
        syncs = SourceSyncs(
            sources=sources,
            opener=opener,
            known=known,
            documents=shared.documents,
            taking=taking,
            deletion=shared.deletion,
            access=source_access,
            now=_now,
        )
        refresh = AccessRefresh(
            sources=sources,
            opener=opener,
            known=known,
            syncs=syncs,
            access=source_access,
            times=AccessTimes(settings.source_access_every_s, settings.source_access_withhold_after_s),
            now=_now,
        )
        schedule = SourceSchedule(sources, shared.collections, syncs, opener, refresh, _now)
        service.spawn(lasting("sources", lambda: lead(shared.leases, schedule.run, lease=_SOURCES_LEASE)))
        service.spawn(lasting("clearing", shared.clearing.run))
        service.spawn(lasting("collections", shared.collections.follow))
        service.require("collections", shared.collections.wait_known, holds_port=True)
        service.spawn(lasting("access lists", shared.lists.follow))
        service.require("access lists", shared.lists.wait_known, holds_port=True)
        service.add_servicer(
            ingest_pb2_grpc.add_IngestServiceServicer_to_server,
            IngestServicer(
                uploads=uploads,
                copying=Copying(shared.documents, shared.access, shared.lists, listing, shared.catalog, uploads),
                listing=listing,
                deletion=shared.deletion,
                reviser=shared.reviser,
                storage=storage,
                catalog=shared.catalog,
                dead_letters=shared.letters,
                access=shared.access,
                keys=keys,
                sources=SourceDesk(
                    sources,
                    shared.documents,
                    known,
                    shared.catalog,
                    shared.access,
                    opener,
                    keys,
                    _now,
                    _new_id,
                    settings.source_access_every_s,
                ),
                source_files=SourceFiles(
                    sources=sources,
                    opener=opener,
                    known=known,
                    documents=shared.documents,
                    catalog=shared.catalog,
                    access=shared.access,
                    source_access=source_access,
                    taking=taking,
                    deletion=shared.deletion,
                ),
                access_desk=AccessDesk(shared.documents, shared.access, shared.catalog, shared.lists, _now),
            ),
            ingest_pb2.DESCRIPTOR.services_by_name["IngestService"],
        )
        service.add_servicer(
            store_pb2_grpc.add_StoreServiceServicer_to_server,
            StoreServicer(shared.condition),
            store_pb2.DESCRIPTOR.services_by_name["StoreService"],
        )
        await service.serve()


async def run_worker(settings: IngestSettings) -> None:
    """Consumes jobs until a signal stops it."""
    async with Service("ingest-worker", settings) as service:
        metrics = Metrics()
        shared = await _shared(service, settings, metrics)
        folder = settings.data_dir / "ingest"
        spool = service.stack.enter_context(Spool.own(folder))
        memory = FairShares(settings.ingest_memory_bytes, settings.ingest_memory_bytes // 2)
        preparer = ParserPool(
            memory=memory,
            size=settings.parser_processes,
            time_limit_s=settings.parse_time_limit_s,
            memory_limit_bytes=settings.parse_memory_limit_bytes,
            max_chunks=settings.ingest_max_chunks,
            usual_encoding=settings.text_encoding,
            ocr=OcrLimits(
                max_pages=settings.ocr_max_pages,
                time_limit_s=settings.ocr_time_limit_s,
                threads=settings.ocr_threads or max(1, (os.cpu_count() or 2) // 2),
            ),
        )
        service.stack.push_async_callback(preparer.close)
        service.spawn(preparer.start())
        service.add_servicer(
            reading_pb2_grpc.add_ReadingServiceServicer_to_server,
            ReadingServicer(UnkeptFiles(preparer, spool)),
            reading_pb2.DESCRIPTOR.services_by_name["ReadingService"],
        )
        reranker = reranker_pb2.DESCRIPTOR.services_by_name["RerankerService"]
        channel = await service.channel(settings.reranker_address, [reranker])
        embedder = RerankerEmbedder(reranker_pb2_grpc.RerankerServiceStub(channel), folder)
        patience = Patience()
        batches = BatchEmbedder(
            embedder,
            patience,
            batch_tokens=settings.embed_batch_tokens,
            batch_texts=settings.embed_batch_texts,
            in_flight=settings.embed_in_flight,
        )
        pipeline = Pipeline(
            documents=shared.documents,
            collections=shared.collections,
            files=shared.files,
            leases=shared.leases,
            preparer=preparer,
            embedder=embedder,
            change_embedder=ChangeEmbedder(batches, shared.index, patience, spool, memory),
            index=shared.index,
            deletion=shared.deletion,
            reviser=shared.reviser,
            spool=spool,
            memory=memory,
            patience=patience,
            metrics=metrics,
            ledger=Ledger(shared.documents, _now, worker_id=_new_id()),
            now=_now,
        )
        handler = JobHandler(Attempts(pipeline, shared.documents, shared.dead_letters, _now), metrics)
        sweeper = Sweeper(
            documents=shared.documents,
            collections=shared.collections,
            jobs=shared.jobs,
            deletion=shared.deletion,
            clearing=shared.clearing,
            metrics=metrics,
            now=_now,
        )
        service.spawn(
            lasting("jobs", lambda: shared.jobs.queue.consume(handler.handle, concurrency=settings.ingest_concurrency))
        )
        agreement = Agreement(shared.condition, metrics, _now)
        reconciler = Reconciler(
            shared.documents,
            shared.index,
            shared.reviser,
            shared.deletion,
            _now,
            Collector(shared.documents, shared.files, shared.index, shared.deletion, agreement, _now),
            agreement,
            interval_s=settings.ingest_reconcile_interval_s,
        )
        scrub = Scrub(
            shared.documents,
            shared.files,
            shared.leases,
            spool,
            shared.condition,
            _now,
            interval_s=settings.ingest_scrub_interval_s,
            bytes_a_round=settings.ingest_scrub_bytes,
        )
        backlog = Backlog(shared.jobs, shared.letters, metrics)
        duties = (
            lambda: sweeper.run(settings.ingest_sweep_interval_s),
            reconciler.run,
            backlog.run,
            scrub.run,
        )
        service.spawn(lasting("duties", lambda: lead(shared.leases, *duties)))
        await service.serve()


async def lead(leases: Leases, *duties: Duty, lease: str = _DUTIES_LEASE) -> None:
    """Does what one process does for all whenever the lease is ours, until cancelled. The others wait for it to fall free; every
    duty is harmless when two do it for a moment."""
    while True:
        try:
            async with leases.hold(lease) as held:
                await _do_while_leading(held, duties)
        except* GroundworkError as errors:
            _log.warning("duties_interrupted", errors=[str(error) for error in errors.exceptions])
        await asyncio.sleep(_LEAD_RETRY_AFTER_S)


async def _do_while_leading(lease: HeldLease, duties: tuple[Duty, ...]) -> None:
    async with asyncio.TaskGroup() as group:
        for duty in duties:
            group.create_task(duty())
        while True:
            lease.check()
            await asyncio.sleep(_LEASE_CHECK_INTERVAL_S)


async def _shared(service: Service, settings: IngestSettings, metrics: Metrics) -> _Shared:
    nats = await open_message_store(service, settings)
    retriever = retriever_pb2.DESCRIPTOR.services_by_name["RetrieverService"]
    channel = await service.channel(settings.retriever_address, [retriever])
    condition = await StoreCondition.open(nats)
    report = ConditionReport(condition)
    service.report(report.troubles)
    service.spawn(lasting("condition of the store", report.run))
    documents = await NatsDocumentStore.open(nats, metrics)
    collections = await NatsCollectionStore.open(nats, metrics)
    files = await NatsFileStore.open(nats)
    leases = await NatsLeases.open(nats, state.LEASES.name, ttl_s=settings.ingest_lease_ttl_s)
    index = RetrieverIndex(retriever_pb2_grpc.RetrieverServiceStub(channel))
    forgetting = await NatsForgetting.open(nats, service.signer, service.verifier, _now)
    lists = await NatsAccessLists.open(nats)
    deletion = Deletion(documents, files, leases, index, forgetting, lists, _now)
    clearing = Clearing(collections, documents, deletion, leases)
    jobs = await NatsJobQueue.open(nats, service.signer, service.verifier)
    dead_letters = await NatsDeadLetterStore.open(nats, metrics)
    reviser = Reviser(documents, jobs, _now, _new_id)
    access = Access(collections, lists)
    return _Shared(
        nats=nats,
        documents=documents,
        collections=collections,
        dead_letters=dead_letters,
        files=files,
        jobs=jobs,
        leases=leases,
        condition=condition,
        index=index,
        deletion=deletion,
        catalog=Catalog(collections, clearing, _now, settings.local_principal()),
        lists=lists,
        access=access,
        clearing=clearing,
        reviser=reviser,
        letters=DeadLetters(dead_letters, documents, reviser, access, _now),
    )


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return uuid.uuid4().hex
