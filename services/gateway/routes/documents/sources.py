"""Sources: places from which collections are filled, and with which they stay in step."""

from fastapi import APIRouter, Response
from google.protobuf.duration_pb2 import Duration
from groundwork.ingest.v1 import ingest_pb2 as pb

from services.gateway.access.own_default import resolve_collection_id
from services.gateway.access.scopes import NEEDS_INGEST
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.documents.sources import ChangedSource, NewSource, Source, SourceList, SourceRun
from services.gateway.schemas.fields import IdempotencyKey, OnlyCollection, SourcePath
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/sources", tags=["sources"], dependencies=[NEEDS_INGEST])


@router.get("", responses=problems(404))
async def list_sources(services: Services, collection_id: OnlyCollection = "") -> SourceList:
    """The sources of the collections that you may read, or of one."""
    only = resolve_collection_id(services, collection_id) if collection_id else ""
    answer = await services.ingest.ListSources(
        pb.ListSourcesRequest(collection_id=only), timeout=services.settings.rpc_timeout_s
    )
    return SourceList(sources=[_source(each) for each in answer.sources])


@router.post("", status_code=201, responses=problems(404, 409, 412, 413, 415))
async def create_source(
    new: NewSource, services: Services, response: Response, idempotency_key: IdempotencyKey = None
) -> Source:
    """Makes a source for a collection that you may change. Its first sync begins at once, and others follow by its schedule: new
    and changed files become documents, renamed ones keep theirs, and documents of files that are gone are removed. A folder of the
    server needs the scope `admin`."""
    request = pb.CreateSourceRequest(
        kind=new.kind,
        collection_id=resolve_collection_id(services, new.collection_id),
        name=new.name,
        settings=new.settings,
        secrets=new.secret_values(),
        every=Duration(seconds=new.every_s),
        idempotency_key=idempotency_key or "",
    )
    answer = await services.ingest.CreateSource(request, timeout=services.settings.rpc_timeout_s)
    source = _source(answer.source)
    response.headers["Location"] = f"/v1/sources/{source.id}"
    return source


@router.get("/{source_id}", responses=problems(404))
async def get_source(source_id: SourcePath, services: Services) -> Source:
    """One source: what it is doing, how far it is, and which files could not be taken or read, with the reason and what to do."""
    answer = await services.ingest.GetSource(
        pb.GetSourceRequest(source_id=source_id), timeout=services.settings.rpc_timeout_s
    )
    return _source(answer.source)


@router.patch("/{source_id}", responses=problems(404, 413, 415))
async def update_source(source_id: SourcePath, changed: ChangedSource, services: Services) -> Source:
    """Changes how often a source is synced, pauses it or lets it go on, or gives it other secrets, for which you
    need the role `owner` on its collection."""
    request = pb.UpdateSourceRequest(
        source_id=source_id,
        every=None if changed.every_s is None else Duration(seconds=changed.every_s),
        paused=changed.paused,
        secrets=changed.secret_values(),
    )
    answer = await services.ingest.UpdateSource(request, timeout=services.settings.rpc_timeout_s)
    return _source(answer.source)


@router.post("/{source_id}/run", status_code=202, responses=problems(404, 413, 415))
async def run_source(source_id: SourcePath, run: SourceRun, services: Services) -> Source:
    """Starts a sync now. Files that could not be read are tried again. When a source has lost all its files, its documents stay
    until this says `accept_empty`, which takes the role `owner` on its collection."""
    request = pb.RunSourceRequest(source_id=source_id, accept_empty=run.accept_empty)
    answer = await services.ingest.RunSource(request, timeout=services.settings.rpc_timeout_s)
    return _source(answer.source)


@router.delete("/{source_id}", status_code=202, responses=problems(404))
async def delete_source(source_id: SourcePath, services: Services) -> Response:
    """Removes a source, for which you need the role `owner` on its collection. Its documents go behind the answer."""
    await services.ingest.DeleteSource(
        pb.DeleteSourceRequest(source_id=source_id), timeout=services.settings.rpc_timeout_s
    )
    return Response(status_code=202)


def _source(message: pb.Source) -> Source:
    return Source.model_validate(encode(message))
