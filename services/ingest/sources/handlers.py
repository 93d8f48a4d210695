"""The contract's calls about sources, decoded, handed on and encoded."""

from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.ingest.v1 import ingest_pb2

from kit.access.principal import current_principal
from services.ingest.adapters.jetstream.encoding import document_message
from services.ingest.sources.desk import NewSource, SourceChange, SourceDesk
from services.ingest.sources.files import SourceFiles
from services.ingest.sources.models import AccessState, SourceReport, SourceState, SyncState, state_of

_STATE = {
    SourceState.WAITING: ingest_pb2.SOURCE_STATE_WAITING,
    SourceState.SYNCING: ingest_pb2.SOURCE_STATE_SYNCING,
    SourceState.PAUSED: ingest_pb2.SOURCE_STATE_PAUSED,
    SourceState.FAILED: ingest_pb2.SOURCE_STATE_FAILED,
    SourceState.REMOVING: ingest_pb2.SOURCE_STATE_REMOVING,
}
_ESTIMATED_FROM = 10
"""Files that have to be done before their pace says something."""


class SourceMethods:
    """Those of IngestService."""

    _sources: SourceDesk
    _source_files: SourceFiles

    async def CreateSource(
        self, request: ingest_pb2.CreateSourceRequest, context: Any
    ) -> ingest_pb2.CreateSourceResponse:
        new = NewSource(
            request.kind,
            request.collection_id,
            request.name,
            dict(request.settings),
            dict(request.secrets),
            request.every.seconds,
            request.idempotency_key,
        )
        made = await self._sources.create(current_principal(), new)
        return ingest_pb2.CreateSourceResponse(source=source_message(made))

    async def GetSource(self, request: ingest_pb2.GetSourceRequest, context: Any) -> ingest_pb2.GetSourceResponse:
        found = await self._sources.get(current_principal(), request.source_id)
        return ingest_pb2.GetSourceResponse(source=source_message(found))

    async def ListSources(self, request: ingest_pb2.ListSourcesRequest, context: Any) -> ingest_pb2.ListSourcesResponse:
        found = await self._sources.all_of(current_principal(), request.collection_id)
        return ingest_pb2.ListSourcesResponse(sources=[source_message(each, in_list=True) for each in found])

    async def UpdateSource(
        self, request: ingest_pb2.UpdateSourceRequest, context: Any
    ) -> ingest_pb2.UpdateSourceResponse:
        change = SourceChange(
            every_s=request.every.seconds if request.HasField("every") else None,
            paused=request.paused if request.HasField("paused") else None,
            secrets=dict(request.secrets.values) if request.HasField("secrets") else None,
        )
        changed = await self._sources.update(current_principal(), request.source_id, change)
        return ingest_pb2.UpdateSourceResponse(source=source_message(changed))

    async def RunSource(self, request: ingest_pb2.RunSourceRequest, context: Any) -> ingest_pb2.RunSourceResponse:
        asked = await self._sources.run(current_principal(), request.source_id, accept_empty=request.accept_empty)
        return ingest_pb2.RunSourceResponse(source=source_message(asked))

    async def IndexSourceFile(
        self, request: ingest_pb2.IndexSourceFileRequest, context: Any
    ) -> ingest_pb2.IndexSourceFileResponse:
        document = await self._source_files.index(current_principal(), request.path, request.collection_ids)
        return ingest_pb2.IndexSourceFileResponse(document=document_message(document))

    async def DeleteSource(
        self, request: ingest_pb2.DeleteSourceRequest, context: Any
    ) -> ingest_pb2.DeleteSourceResponse:
        await self._sources.delete(current_principal(), request.source_id)
        return ingest_pb2.DeleteSourceResponse()


def source_message(report: SourceReport, *, in_list: bool = False) -> ingest_pb2.Source:
    """A source as its tenant sees it."""
    record, sync = report.record, report.record.sync
    error = ingest_pb2.DocumentError(reason=sync.error.reason, message=sync.error.message) if sync.error else None
    is_waiting = sync.next_at is not None and not (sync.began_at or record.requested_at or record.paused)
    return ingest_pb2.Source(
        source_id=record.source_id,
        kind=record.kind,
        name=record.name,
        collection_id=record.collection_id,
        settings=record.settings,
        secret_names=record.secret_names,
        every=Duration(seconds=record.every_s),
        owner=record.owner,
        created_at=_timestamp(record.created_at),
        state=_STATE[state_of(record)],
        error=error,
        sync=_sync_message(sync) if sync.began_at or sync.ended_at else None,
        next_sync_at=_timestamp(sync.next_at) if is_waiting and sync.next_at else None,
        file_count=report.file_count,
        pending_count=report.pending_count,
        failing_count=sync.failing_count + report.rejected_count,
        failing=[] if in_list else _failing(report),
        access=_access_message(record.access, report.access_every_s) if report.access_every_s else None,
    )


def _access_message(access: AccessState, every_s: float) -> ingest_pb2.SourceAccess:
    every = Duration()
    every.FromTimedelta(timedelta(seconds=every_s))
    error = access.error
    return ingest_pb2.SourceAccess(
        every=every,
        refreshed_at=_timestamp(access.refreshed_at) if access.refreshed_at else None,
        error=ingest_pb2.DocumentError(reason=error.reason, message=error.message) if error else None,
        withheld=access.is_withheld,
    )


def _failing(report: SourceReport) -> list[ingest_pb2.FailingFile]:
    """Files that could not be taken, and those whose documents could not be read."""
    found = [
        ingest_pb2.FailingFile(path=file.key, reason=file.reason, message=file.message)
        for file in report.record.sync.failing
    ]
    for document in report.rejected:
        assert document.origin is not None
        assert document.error is not None
        found.append(
            ingest_pb2.FailingFile(
                path=document.origin.key,
                reason=document.error.reason,
                message=document.error.message,
                document_id=document.document_id,
            )
        )
    return sorted(found, key=lambda file: file.path)


def _sync_message(sync: SyncState) -> ingest_pb2.SourceSync:
    counts = sync.counts
    return ingest_pb2.SourceSync(
        began_at=_timestamp(sync.began_at) if sync.began_at else None,
        ended_at=_timestamp(sync.ended_at) if sync.ended_at and not sync.began_at else None,
        total_count=counts.total,
        done_count=counts.done,
        added_count=counts.added,
        changed_count=counts.changed,
        moved_count=counts.moved,
        removed_count=counts.removed,
        failed_count=counts.failed,
        remaining=_remaining(sync),
    )


def _remaining(sync: SyncState) -> Duration | None:
    counts = sync.counts
    if sync.began_at is None or counts.done < _ESTIMATED_FROM or counts.done >= counts.total:
        return None
    spent = max(datetime.now(UTC) - sync.began_at, timedelta())
    remaining = Duration()
    remaining.FromTimedelta(spent * (counts.total - counts.done) / counts.done)
    return remaining


def _timestamp(moment: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(moment)
    return message
