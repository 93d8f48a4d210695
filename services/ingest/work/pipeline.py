"""The worker's use case: make one revision of one document searchable, exactly once.

The revision's id and number are fixed in the record when the job is queued. Every step rewrites the same revision, and the pointer
flip comes last, so that a worker may be killed anywhere: the next delivery does the steps again and arrives at the same state.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from kit.errors import DataLoss, FailedPrecondition, InvalidArgument
from kit.network.local_models import use_local_models
from kit.observability.telemetry import span
from services.ingest.documents import life
from services.ingest.documents.deletion import Deletion, document_lease, file_lease
from services.ingest.documents.file_users import files_of
from services.ingest.documents.models import Document, Failure, IngestJob, Report, Status, Tries
from services.ingest.documents.revising import Reviser
from services.ingest.errors import DocumentRejected, Superseded
from services.ingest.fairness import FairShares
from services.ingest.metrics import Metrics
from services.ingest.ports import (
    ChunkBatch,
    CollectionStore,
    DocumentStore,
    Embedder,
    FileStore,
    HeldLease,
    Leases,
    Preparer,
    Scratch,
    SearchIndex,
)
from services.ingest.reading.models import PreparedFile, PrepareRequest
from services.ingest.reading.parsers.registry import check_readable
from services.ingest.spool import Spool
from services.ingest.work.ledger import Ledger
from services.ingest.work.models import EmbeddingModel, RevisionState
from services.ingest.work.patience import Patience
from services.ingest.work.put_aside import VectorRows, memory_bytes, plan_windows
from services.ingest.work.reuse import ChangeEmbedder, EmbeddingReport
from services.ingest.work.tracking import Pace, Tracker

CHUNKS_SOON_MADE = 32
"""What a write of the record costs (2 ms of CPU, with all who watch) is better spent on making so few again after a crash. So few
are made visible by the call that writes them to the indexes."""

_BATCH_CHUNKS = 128
"""Chunks that are sent to the index together: 200 KB of vectors at 384 dimensions."""

_ANSWERED_OTHERWISE_LATER = frozenset({"REVISION_INCOMPLETE", "EMBEDDING_SPACE_MISMATCH"})
"""Refusals of the index that another try may not meet: chunks that got lost are made again; and while an upgrade is under way a
retriever of the release before, or one that has not noticed the new model yet, knows the vectors of one model only."""

_log = structlog.get_logger()

ResultT = TypeVar("ResultT")


class Pipeline:
    """Parse → clean → chunk → embed → index → activate → record."""

    def __init__(
        self,
        *,
        documents: DocumentStore,
        collections: CollectionStore,
        files: FileStore,
        leases: Leases,
        preparer: Preparer,
        embedder: Embedder,
        change_embedder: ChangeEmbedder,
        index: SearchIndex,
        deletion: Deletion,
        reviser: Reviser,
        spool: Spool,
        memory: FairShares,
        patience: Patience,
        metrics: Metrics,
        ledger: Ledger,
        now: Callable[[], datetime],
    ) -> None:
        self._ledger = ledger
        self._documents = documents
        self._collections = collections
        self._files = files
        self._leases = leases
        self._preparer = preparer
        self._embedder = embedder
        self._change_embedder = change_embedder
        self._index = index
        self._deletion = deletion
        self._reviser = reviser
        self._spool = spool
        self._memory = memory
        self._patience = patience
        self._metrics = metrics
        self._now = now
        self._pace = Pace()
        self._to_come = 0
        """Documents in hand that have not come to the index yet."""

    async def handle(self, job: IngestJob, delivery: int) -> None:
        """Does the job, or finds that it is done or need not be done any more. Raises FailedTry when another try may be needed, and
        GroundworkError for what keeps a try from beginning."""
        async with self._leases.hold(document_lease(job.tenant_id, job.document_id)) as lease:
            try:
                tracker = await Tracker.open(self._documents, job, self._now)
                async with self._ledger.one_try(tracker, job) as tries:
                    await self._ingest(tracker, lease, Report(attempts=delivery), tries)
            except Superseded:
                await self._clear_up(job)
            except DocumentRejected as error:
                await self.fail(job, Failure(error.reason, error.message))

    async def fail(self, job: IngestJob, failure: Failure) -> None:
        """Records why the revision could not be made. A document that has an active one stays READY on it."""
        try:
            tracker = await Tracker.open(self._documents, job, self._now)
            before = tracker.document
            after = await tracker.move(partial(life.fail, failure=failure))
        except Superseded:
            return
        self._metrics.documents.labels(outcome="failed", reason=failure.reason).inc()
        _log.info("document_failed", document_id=job.document_id, reason=failure.reason)
        await self._release(before, after)

    async def _ingest(self, tracker: Tracker, lease: HeldLease, report: Report, tries: Tries) -> None:
        if await self._was_nearly_done(tracker):
            return
        await tracker.move(partial(life.begin, report=report, tries=tries))
        started = time.perf_counter()
        async with tracker.reporting(lease, self._pace):
            await self._make_revision(tracker, lease, report)
        self._metrics.seconds.observe(time.perf_counter() - started)

    async def _make_revision(self, tracker: Tracker, lease: HeldLease, report: Report) -> None:
        with self._spool.scratch() as chunk_scratch, self._spool.scratch() as vector_scratch:
            made = _Making(VectorRows(vector_scratch))
            self._to_come += 1
            try:
                await self._read_and_embed(tracker, made, chunk_scratch)
            finally:
                self._to_come -= 1
            tracker.at("index")
            is_visible = await self._index_all(tracker, lease, made)

        report = made.report(report)
        tracker.at("activate")
        if is_visible:
            await self._record_done(tracker, report)
            return
        if report.chunk_count > CHUNKS_SOON_MADE:
            # From here on a redelivery only has to flip the pointer.
            await tracker.move(partial(life.advance, stage="activate", progress=0.98, report=report))
        lease.check()
        await self._finish(tracker, report)

    async def _read_and_embed(self, tracker: Tracker, made: "_Making", scratch: Scratch) -> None:
        """All that precedes the index."""
        check_readable(tracker.revision.content.media_type, tracker.document.name)
        model = await self._patience.call("model", self._embedder.model)
        made.model = model.name
        with span("read", {"groundwork.document.media_type": tracker.revision.content.media_type}) as traced:
            made.prepared = prepared = await self._prepare(tracker, model, scratch)
            traced.set_attribute("groundwork.document.chunks", len(prepared.chunks))
            for stage, stage_s in prepared.stage_seconds.items():
                traced.set_attribute(f"groundwork.stage.{stage}_s", stage_s)
        if not len(prepared.chunks):
            raise DocumentRejected("NO_TEXT", f"{tracker.document.name} holds no text; upload a version that does")
        made.stage_seconds.update(prepared.stage_seconds)
        tracker.at("embed")
        with made.timed("embed"), use_local_models(await self._is_bound(tracker.document)):
            made.embedding = await self._change_embedder.embed(
                tracker.document, prepared, model.name, made.vectors, lambda share: tracker.at("embed", share)
            )

    async def _is_bound(self, document: Document) -> bool:
        """Whether the document's text may be sent to local models only."""
        found = await self._collections.get(document.tenant_id, document.collection_id)
        return found is not None and found.local_models_only

    async def _prepare(self, tracker: Tracker, model: EmbeddingModel, scratch: Scratch) -> PreparedFile:
        content, name = tracker.revision.content, tracker.document.name
        tokenizer = await self._patience.call("tokenizer", self._embedder.tokenizer_path)
        async with self._spool.file(content.size_bytes) as path:
            with span("fetch file", {"groundwork.document.size_bytes": content.size_bytes}):
                await self._fetch(tracker.document.tenant_id, content.sha256, path, name)
            request = PrepareRequest(
                str(path), content.media_type, name, str(tokenizer) if tokenizer else "", model.window_tokens
            )
            return await self._preparer.prepare(tracker.document.tenant_id, request, tracker.at, scratch)

    async def _index_all(self, tracker: Tracker, lease: HeldLease, made: "_Making") -> bool:
        """Returns whether the revision is visible already."""
        with made.timed("index"):
            return await self._rejecting("index", tracker, lambda: self._send(tracker, lease, made))

    async def _send(self, tracker: Tracker, lease: HeldLease, made: "_Making") -> bool:
        """Sends the chunks to the index, once there is memory for the largest of their batches. That, and each wait for the index,
        may take longer than the lease lasts, and the call may make them visible."""
        document, revision, chunks = tracker.document, tracker.revision, made.prepared.chunks
        size = made.largest_batch_bytes
        async with self._memory.hold(document.tenant_id, document.document_id, size, document.lane):
            lease.check()
            return await self._index.index(
                document,
                revision,
                made.batches(),
                len(chunks),
                made.model,
                to_come=self._to_come,
                activate_with=made.prepared.languages if len(chunks) <= CHUNKS_SOON_MADE else None,
            )

    async def _fetch(self, tenant_id: str, sha256: str, path: Path, name: str) -> None:
        """Gets the stored file. One that is not what was uploaded is thrown away, so that the next upload stores it anew."""
        if await self._fetched_whole(tenant_id, sha256, path):
            return
        async with self._leases.hold(file_lease(tenant_id, sha256)) as lease:
            if await self._fetched_whole(tenant_id, sha256, path):  # it was uploaded again meanwhile
                return
            lease.check()
            await self._files.delete(tenant_id, sha256)
        raise DocumentRejected("FILE_LOST", f"the stored file of {name} is missing or damaged; upload it again")

    async def _fetched_whole(self, tenant_id: str, sha256: str, path: Path) -> bool:
        try:
            await self._files.get_to_file(tenant_id, sha256, path)
        except DataLoss:
            return False
        return True

    async def _was_nearly_done(self, tracker: Tracker) -> bool:
        """Finishes a revision whose worker died between indexing and recording. False when it has to be made again."""
        report = tracker.document.report
        if tracker.document.stage != "activate" or report is None or not report.chunk_count:
            return False
        try:
            await self._finish(tracker, report)
        except FailedPrecondition:
            return False
        return True

    async def _finish(self, tracker: Tracker, report: Report) -> None:
        document, revision = tracker.document, tracker.revision
        began = time.perf_counter()
        with span("activate"):
            await self._rejecting(
                "activate",
                tracker,
                lambda: self._index.activate(document, revision, report.chunk_count, report.languages),
            )
        report = replace(
            report, stage_seconds={**report.stage_seconds, "activate": round(time.perf_counter() - began, 4)}
        )
        await self._record_done(tracker, report)

    async def _record_done(self, tracker: Tracker, report: Report) -> None:
        """The revision is visible: its record says so."""
        document = tracker.document
        done = await tracker.move(partial(life.finish, report=report))
        self._metrics.documents.labels(outcome="ready", reason="").inc()
        self._metrics.chunks.inc(report.chunk_count)
        for stage, stage_s in report.stage_seconds.items():
            self._metrics.stage_seconds.labels(stage=stage).inc(stage_s)
        _log.info("document_ready", document_id=document.document_id, chunks=report.chunk_count)
        await self._release(document, done)

    async def _rejecting(self, what: str, tracker: Tracker, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """What the index answers, its backpressure waited out; says what its refusals mean for the document. Those that are not
        about the document are raised as they are, retryable where another try may get another answer."""
        try:
            return await self._patience.call(what, call)
        except FailedPrecondition as error:
            if error.reason == "REVISION_SUPERSEDED":
                raise Superseded from error
            error.retryable = error.retryable or error.reason in _ANSWERED_OTHERWISE_LATER
            raise
        except InvalidArgument as error:
            raise DocumentRejected(error.reason, f"{tracker.document.name} was not indexed: {error.message}") from error

    async def _clear_up(self, job: IngestJob) -> None:
        """Takes out of the index what was written for a document that was deleted meanwhile."""
        stored = await self._documents.get(job.tenant_id, job.document_id)
        if stored is None and await self._is_visible(job):
            # Its record was lost, and the index is all that is left of it.
            _log.error("job_without_a_record", document_id=job.document_id)
        elif stored is None or stored.document.status is Status.DELETED:
            await self._patience.call("delete", lambda: self._index.delete(job.document_id))
        elif life.is_current(stored, job):
            await self._catch_up(job)

    async def _is_visible(self, job: IngestJob) -> bool:
        (check,) = await self._index.check([(job.document_id, job.revision_id)])
        return bool(check.active_number)

    async def _catch_up(self, job: IngestJob) -> None:
        """Brings a record up to an index that is ahead of it: a power cut took back the record's last seconds."""
        (check,) = await self._patience.call("check", lambda: self._index.check([(job.document_id, job.revision_id)]))
        _log.warning("record_behind_index", document_id=job.document_id, state=check.state.value)
        if check.state is RevisionState.DELETED:
            await self._deletion.delete(job.tenant_id, job.document_id)
        else:
            await self._reviser.supersede(job, check.active_number)

    async def _release(self, before: Document, after: Document) -> None:
        for sha256 in files_of(before) - files_of(after):
            await self._deletion.release_file(before.tenant_id, sha256)


class _Making:
    """A revision as far as it has been made."""

    prepared: PreparedFile
    embedding: EmbeddingReport
    model: str

    def __init__(self, vectors: VectorRows) -> None:
        self.vectors = vectors
        self.stage_seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        with span(stage):
            yield
        self.stage_seconds[stage] = round(time.perf_counter() - began, 4)

    @property
    def largest_batch_bytes(self) -> int:
        """Of memory."""
        chunks = self.prepared.chunks
        return max(memory_bytes(chunks, *window) for window in plan_windows(chunks, _BATCH_CHUNKS))

    async def batches(self) -> AsyncIterator[ChunkBatch]:
        """What was put aside, in reading order, some at a time."""
        for start, stop in plan_windows(self.prepared.chunks, _BATCH_CHUNKS):
            yield await self.prepared.chunks.read(start, stop), await self.vectors.read(start, stop)

    def report(self, report: Report) -> Report:
        prepared, embedding = self.prepared, self.embedding
        return replace(
            report,
            page_count=len(prepared.page_statuses),
            chunk_count=len(prepared.chunks),
            token_count=prepared.token_count,
            embed_batch_count=embedding.batch_count,
            reused_chunk_count=embedding.reused_count,
            stage_seconds=self.stage_seconds,
            page_statuses=prepared.page_statuses,
            warnings=prepared.warnings,
            chunker=prepared.chunker,
            languages=prepared.languages,
        )
