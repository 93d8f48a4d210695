"""Questions to documents: answered at once as JSON, or followed as an event stream."""

from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import Response
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.access.existence import require_existing
from services.gateway.access.memory_modes import memory_mode
from services.gateway.access.own_default import resolve_collection_id, resolve_collection_ids
from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.routes.conversations.chat import as_json, respond, responses
from services.gateway.schemas.conversations.runs import (
    ChatRequest,
    ExtractRequest,
    QaRequest,
    QaResponse,
    ResearchRequest,
)
from services.gateway.schemas.fields import CollectionPath, IdempotencyKey
from services.gateway.schemas.problem import problems
from services.gateway.schemas.streams import run_stream_response
from services.gateway.streams.answers import fold_events
from services.gateway.streams.events import run_mode
from services.gateway.streams.shares import STREAM_PLACE_IF_STREAMED, STREAM_PLACE_UNLESS_JSON
from services.gateway.streams.sse import EVENT_STREAM, EventStream
from services.gateway.streams.streaming import run_stream, started

router = APIRouter(prefix="/v1", tags=["questions"], dependencies=[NEEDS_QUERY])

_PROBLEMS = problems(404, 409, 413, 415, 429, 504)
_EXTRACTION = "extraction"
"""The agent that reads fields."""
_QA_RESPONSES = {**run_stream_response("The answer; as events with `Accept: text/event-stream`."), **_PROBLEMS}


@router.post("/qa", response_model=QaResponse, responses=_QA_RESPONSES, dependencies=[STREAM_PLACE_IF_STREAMED])
async def ask(
    request: QaRequest,
    services: Services,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """One question, one search, one answer with citations. With `Accept: text/event-stream` the same as events."""
    collection_ids = resolve_collection_ids(services, request.collection_ids)
    await require_existing(services, collection_ids)
    events = started(
        services,
        pb.StartRunRequest(
            mode=pb.RUN_MODE_QA,
            question=request.question,
            collection_ids=collection_ids,
            document_ids=request.document_ids,
            top_k=request.top_k,
            idempotency_key=idempotency_key or "",
            budgets=request.budgets.asked(),
            model_credentials=request.model.brought() if request.model else None,
            verify=request.verify or "",
            guard=request.guard or "",
        ),
    )
    if EVENT_STREAM in accept.lower():
        return await run_stream(events, services)
    return as_json(await fold_events(events), QaResponse)


@router.post(
    "/agent",
    status_code=200,
    response_class=EventStream,
    dependencies=[STREAM_PLACE_UNLESS_JSON],
    responses=responses(QaResponse),
)
async def research(
    request: ResearchRequest, http: Request, services: Services, idempotency_key: IdempotencyKey = None
) -> Response:
    """A question that may take several searches: an agent plans, searches in rounds, measures what it has found, and says what is
    missing. A stream of events, or with `Accept: application/json` the answer as JSON. When the connection drops, read on with
    GET /v1/runs/{X-Run-Id}/events and the Last-Event-ID header."""
    collection_ids = resolve_collection_ids(services, request.collection_ids)
    await require_existing(services, collection_ids, request.thread_id or "")
    events = started(
        services,
        pb.StartRunRequest(
            mode=pb.RUN_MODE_AGENT,
            question=request.question,
            collection_ids=collection_ids,
            document_ids=request.document_ids,
            thread_id=request.thread_id or "",
            top_k=request.top_k,
            idempotency_key=idempotency_key or "",
            budgets=request.budgets.asked(),
            verify=request.verify or "",
            guard=request.guard or "",
            model_credentials=request.model.brought() if request.model else None,
            research=request.options(),
            tools=pb.ToolSelection(names=request.tools) if request.tools else None,
        ),
    )
    return await respond(events, http, services, QaResponse)


@router.post(
    "/collections/{collection_id}/chat",
    status_code=200,
    response_class=EventStream,
    dependencies=[STREAM_PLACE_UNLESS_JSON],
    responses=responses(QaResponse),
)
async def chat(
    collection_id: CollectionPath,
    request: ChatRequest,
    http: Request,
    services: Services,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The next message of a conversation over a collection, answered by an agent as a stream of events, or with
    `Accept: application/json` as JSON. When the connection drops, read on with GET /v1/runs/{X-Run-Id}/events and the
    Last-Event-ID header."""
    collection_id = resolve_collection_id(services, collection_id)
    found = await require_existing(services, [collection_id], request.thread_id or "")
    events = started(
        services,
        pb.StartRunRequest(
            mode=run_mode(request.mode),
            question=request.message,
            collection_ids=[collection_id],
            thread_id=request.thread_id or "",
            agent=request.agent or "",
            memory=memory_mode(request.memory or "", found),
            document_ids=request.document_ids,
            top_k=request.top_k,
            idempotency_key=idempotency_key or "",
            budgets=request.budgets.asked(),
            model_credentials=request.model.brought() if request.model else None,
            verify=request.verify or "",
            guard=request.guard or "",
        ),
    )
    return await respond(events, http, services, QaResponse)


@router.post(
    "/collections/{collection_id}/extract",
    status_code=200,
    response_class=EventStream,
    dependencies=[STREAM_PLACE_UNLESS_JSON],
    responses=responses(QaResponse),
)
async def extract(
    collection_id: CollectionPath,
    request: ExtractRequest,
    http: Request,
    services: Services,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Reads the fields of a JSON Schema out of the documents of a collection, or out of those that are named. Answers with
    artefacts of kind `table`: a row for each document, or for each row of a table in it; a citation for each value; null where it
    is missing. A stream of events, or with `Accept: application/json` the answer as JSON. When the connection drops, read on
    with GET /v1/runs/{X-Run-Id}/events and the Last-Event-ID header."""
    collection_id = resolve_collection_id(services, collection_id)
    await require_existing(services, [collection_id])
    events = started(
        services,
        pb.StartRunRequest(
            mode=pb.RUN_MODE_GROUNDED,
            question=request.message(),
            collection_ids=[collection_id],
            agent=_EXTRACTION,
            document_ids=request.document_ids,
            idempotency_key=idempotency_key or "",
            budgets=request.budgets.asked(),
            model_credentials=request.model.brought() if request.model else None,
        ),
    )
    return await respond(events, http, services, QaResponse)
