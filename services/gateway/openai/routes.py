"""The routes in the shape of OpenAI's API: any client that takes a `base_url` gets answers with citations."""

from collections.abc import AsyncIterator
from functools import partial

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from services.gateway.access.existence import require_existing
from services.gateway.access.own_default import resolve_collection_ids
from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Backends, Services
from services.gateway.models import RunEvent
from services.gateway.openai.annotations import cited_documents
from services.gateway.openai.answers import chat_chunks, chat_completion, response, response_events
from services.gateway.openai.asking import asked_collections, run_request
from services.gateway.openai.errors import OpenAiRoute
from services.gateway.openai.replies import ignored_header
from services.gateway.openai.requests import ChatCompletionRequest, OpenAiBody, ResponsesRequest
from services.gateway.openai.store_calls import file_ids
from services.gateway.schemas.fields import IdempotencyKey
from services.gateway.schemas.problem import problems
from services.gateway.streams.answers import fold_events
from services.gateway.streams.shares import STREAM_PLACE_IF_ASKED
from services.gateway.streams.sse import Encoded, EventStream
from services.gateway.streams.streaming import first_event, started

router = APIRouter(prefix="/v1", tags=["openai"], route_class=OpenAiRoute, dependencies=[NEEDS_QUERY])
_PROBLEMS = problems(404, 409, 413, 415, 429, 504)


@router.post(
    "/chat/completions",
    dependencies=[STREAM_PLACE_IF_ASKED],
    responses={200: {"description": "A chat completion, or its chunks as events with `stream`."}, **_PROBLEMS},
)
async def create_chat_completion(
    request: ChatCompletionRequest, services: Services, idempotency_key: IdempotencyKey = None
) -> Response:
    """OpenAI's chat completions over the caller's documents. Citations are `annotations` of the message; in a stream, of the chunk
    with the `finish_reason`. Errors have OpenAI's shape. Members that change nothing are named in X-Groundwork-Ignored."""
    events = await _events(request, services, idempotency_key or "")
    if not request.stream:
        run = await fold_events(events)
        return JSONResponse(chat_completion(run, request.model), headers=_headers(run.run_id, request))
    first = await first_event(events)
    usage = request.stream_options is not None and request.stream_options.include_usage
    chunks = chat_chunks(first, events, request.model, include_usage=usage)
    return _stream(chunks, first.run_id, request, services)


@router.post(
    "/responses",
    dependencies=[STREAM_PLACE_IF_ASKED],
    responses={200: {"description": "A response, or its events with `stream`."}, **_PROBLEMS},
)
async def create_response(
    request: ResponsesRequest, services: Services, idempotency_key: IdempotencyKey = None
) -> Response:
    """OpenAI's responses over the caller's documents: `vector_store_ids` of the tool `file_search` are ids of collections. The
    citations are `file_citation` annotations. Errors have OpenAI's shape. Members that change nothing are named in
    X-Groundwork-Ignored."""
    events = await _events(request.as_chat(), services, idempotency_key or "")
    if not request.stream:
        run = await fold_events(events)
        known_as = await file_ids(services, cited_documents(run))
        return JSONResponse(response(run, request.model, known_as), headers=_headers(run.run_id, request))
    first = await first_event(events)
    pieces = response_events(first, events, request.model, partial(file_ids, services))
    return _stream(pieces, first.run_id, request, services)


async def _events(request: ChatCompletionRequest, services: Backends, idempotency_key: str) -> AsyncIterator[RunEvent]:
    collection_ids = resolve_collection_ids(services, asked_collections(request))
    run = run_request(request, collection_ids, idempotency_key)
    await require_existing(services, collection_ids, request.thread_id or "")
    return started(services, run)


def _stream(pieces: AsyncIterator[Encoded], run_id: str, request: OpenAiBody, services: Backends) -> EventStream:
    return EventStream(
        pieces,
        ping_interval_s=services.settings.ping_interval_s,
        closing=services.closing,
        headers=_headers(run_id, request),
        is_resumable=False,
    )


def _headers(run_id: str, request: OpenAiBody) -> dict[str, str]:
    """Which run it is, and the members of the request that change nothing."""
    return {"X-Run-Id": run_id, **ignored_header(request.ignored())}
