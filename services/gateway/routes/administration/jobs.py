"""Jobs: how much work waits, and what was given up."""

from typing import Annotated

from fastapi import APIRouter, Query
from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2 as pb

from services.gateway.access.own_default import resolve_collection_id
from services.gateway.access.scopes import NEEDS_INGEST, NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.administration.jobs import (
    DeadLetter,
    DeadLetterList,
    JobCounts,
    Requeued,
    RequeuedMany,
    RequeueMany,
)
from services.gateway.schemas.fields import DeadLetterPath, OnlyCollection, PageSize, PageToken
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("", dependencies=[NEEDS_QUERY], responses=problems())
async def get_job_counts(services: Services, collection_id: OnlyCollection = "") -> JobCounts:
    """How much work waits, is in hand, and was given up."""
    request = pb.GetJobCountsRequest(collection_id=resolve_collection_id(services, collection_id))
    answer = await services.ingest.GetJobCounts(request, timeout=services.settings.rpc_timeout_s)
    return JobCounts.model_validate(encode(answer))


@router.get("/dead", dependencies=[NEEDS_INGEST], responses=problems())
async def list_dead_letters(
    services: Services,
    collection_id: OnlyCollection = "",
    reason: Annotated[str, Query(max_length=64, description="Only this reason; empty means all.")] = "",
    page_size: PageSize = 100,
    page_token: PageToken = "",
) -> DeadLetterList:
    """Jobs that were given up, newest first."""
    request = pb.ListDeadLettersRequest(
        collection_id=resolve_collection_id(services, collection_id),
        reason=reason,
        page=common_pb2.PageRequest(page_size=page_size, page_token=page_token),
    )
    answer = await services.ingest.ListDeadLetters(request, timeout=services.settings.rpc_timeout_s)
    return DeadLetterList(
        dead_letters=[DeadLetter.model_validate(encode(each)) for each in answer.dead_letters],
        next_page_token=answer.next_page_token or None,
    )


@router.post("/dead/requeue", status_code=202, dependencies=[NEEDS_INGEST], responses=problems(413, 415))
async def requeue_dead_letters(which: RequeueMany, services: Services) -> RequeuedMany:
    """Queues many given-up documents again, a few hundred a call. Harmless when repeated."""
    collection_id = resolve_collection_id(services, which.collection_id)
    request = pb.RequeueDeadLettersRequest(collection_id=collection_id, reason=which.reason)
    answer = await services.ingest.RequeueDeadLetters(request, timeout=services.settings.rpc_timeout_s)
    return RequeuedMany.model_validate(encode(answer))


@router.post("/dead/{dead_letter_id}/requeue", status_code=202, dependencies=[NEEDS_INGEST], responses=problems(404))
async def requeue_dead_letter(dead_letter_id: DeadLetterPath, services: Services) -> Requeued:
    """Queues one given-up document again. Harmless when repeated."""
    request = pb.RequeueDeadLetterRequest(dead_letter_id=dead_letter_id)
    answer = await services.ingest.RequeueDeadLetter(request, timeout=services.settings.rpc_timeout_s)
    return Requeued.model_validate(encode(answer))
