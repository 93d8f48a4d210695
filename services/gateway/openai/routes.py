"""The routes of chat completions and Responses in the shape of OpenAI's API: any client that takes a `base_url` gets answers with
citations."""

from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.vocabulary.run_fold import RUNNING, RunFold
from services.gateway.access.existence import require_existing
from services.gateway.access.memory_modes import memory_mode
from services.gateway.access.own_default import resolve_collection_ids
from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Backends, Services
from services.gateway.encoding import encode
from services.gateway.errors import InputItemNotFound, StreamInterrupted, UnsupportedParameter
from services.gateway.models import Json, RunEvent
from services.gateway.openai.annotations import Places, cited_documents
from services.gateway.openai.answers import chat_chunks, chat_completion
from services.gateway.openai.asking import MODEL, asked_collections, model_names, model_not_offered, run_request
from services.gateway.openai.content import Piece
from services.gateway.openai.embeddings import EMBEDDING
from services.gateway.openai.errors import OpenAiRoute, error_body
from services.gateway.openai.input_items import input_items
from services.gateway.openai.messages import OpenAiBody
from services.gateway.openai.replies import ignored_header, reply
from services.gateway.openai.requests import ChatCompletionRequest
from services.gateway.openai.response_answers import (
    AskedResponse,
    response,
    response_events,
    response_id,
    run_id_of,
)
from services.gateway.openai.response_requests import AfterItem, ResponseId, ResponsesRequest
from services.gateway.openai.stores.calls import file_ids
from services.gateway.openai.stores.requests import Limit, Order
from services.gateway.openai.stores.shapes import deleted, page_of
from services.gateway.openai.unstored import Following, delete_run, unstored
from services.gateway.schemas.administration.models import OfferedModel
from services.gateway.schemas.fields import IdempotencyKey
from services.gateway.schemas.problem import problems
from services.gateway.serving.requests import base_url
from services.gateway.streams.abandoned import HungUp, cancel_abandoned, fold_unless_gone
from services.gateway.streams.answers import answered
from services.gateway.streams.shares import STREAM_PLACE_IF_ASKED
from services.gateway.streams.sse import Encoded, EventStream, Unresumable
from services.gateway.streams.streaming import first_event, started

router = APIRouter(prefix="/v1", tags=["openai"], route_class=OpenAiRoute, dependencies=[NEEDS_QUERY])
_LAST_WORDS_S = 2.0
"""Of the grace of a gateway that closes: time for the event that says so."""
_PROBLEMS = problems(404, 409, 413, 415, 429, 504)
ResponsePath = Annotated[ResponseId, Path(description="The response: `resp_` and the id of its run.")]


@router.get("/models/{family}/{agent}", include_in_schema=False)  # OpenAPI has no parameters with a slash
async def get_model_of_agent(family: str, agent: str, services: Services) -> OfferedModel:
    """A model whose name has a slash."""
    return await get_model(f"{family}/{agent}", services)


@router.get("/models/{model}", include_in_schema=False)
async def get_model(model: str, services: Services) -> OfferedModel:
    """A model that a request may name, also with `@` and a collection behind it."""
    if not model.startswith(MODEL):
        raise model_not_offered(model)
    timeout_s = services.settings.rpc_timeout_s
    agents = await services.orchestrator.ListAgents(pb.ListAgentsRequest(), timeout=timeout_s)
    if model.partition("@")[0] not in (*model_names([each.name for each in agents.agents]), EMBEDDING):
        raise model_not_offered(model)
    return OfferedModel(id=model)


@router.post(
    "/chat/completions",
    dependencies=[STREAM_PLACE_IF_ASKED],
    responses={200: {"description": "A chat completion, or its chunks as events with `stream`."}, **_PROBLEMS},
)
async def create_chat_completion(
    request: ChatCompletionRequest, services: Services, http: Request, idempotency_key: IdempotencyKey = None
) -> Response:
    """OpenAI's chat completions over the caller's documents. Citations are `annotations` of the message; in a stream, of the chunk
    with the `finish_reason`. Errors have OpenAI's shape. Members that change nothing are named in X-Groundwork-Ignored."""
    events = await _events(request, services, idempotency_key or "")
    by_schema, address = bool(request.answer_schema), _base_url(http, services)
    hung_up = partial(_hung_up, services, idempotency_key)
    if not request.stream:
        run = await fold_unless_gone(events, http.receive, hung_up)
        body = chat_completion(run, request.model, address, by_schema=by_schema)
        return JSONResponse(body, headers=_headers(run.run_id, request))
    first = await first_event(events)
    usage = request.stream_options is not None and request.stream_options.include_usage
    chunks = chat_chunks(first, events, request.model, address, include_usage=usage, by_schema=by_schema)
    return _stream(chunks, first.run_id, request, services, hung_up)


@router.post(
    "/responses",
    dependencies=[STREAM_PLACE_IF_ASKED],
    responses={200: {"description": "A response, or its events with `stream`."}, **_PROBLEMS},
)
async def create_response(
    request: ResponsesRequest, services: Services, http: Request, idempotency_key: IdempotencyKey = None
) -> Response:
    """OpenAI's responses over the caller's documents: `vector_store_ids` of the tool `file_search` are ids of collections. The
    citations are `file_citation` annotations. Errors have OpenAI's shape. Members that change nothing are named in
    X-Groundwork-Ignored."""
    previous = run_id_of(request.previous_response_id or "")
    events = await _events(request.as_chat(), services, idempotency_key or "", previous)
    asked = AskedResponse(
        request.model,
        request.previous_response_id,
        by_schema=bool(request.answer_schema),
        is_stored=request.store is not False,
        in_background=bool(request.background),
    )
    if request.background:
        run_id = (await first_event(events)).run_id
        return JSONResponse(response(RunFold(run_id, status=RUNNING), asked), headers=_headers(run_id, request))
    passing = None if asked.is_stored else unstored(events, services)
    events = passing or events
    hung_up = partial(_hung_up, services, idempotency_key) if asked.is_stored else _leave
    if not request.stream:
        run = await fold_unless_gone(events, http.receive, hung_up)
        if run.status != "waiting":
            answered(run)
        body = response(run, asked, await _places(http, services, cited_documents(run)))
        return JSONResponse(body, headers=_headers(run.run_id, request))
    first = await first_event(events)
    pieces = response_events(first, events, asked, partial(_places, http, services))
    return _stream(Following(pieces, passing) if passing else pieces, first.run_id, request, services, hung_up)


@router.get(
    "/responses/{response_id}",
    responses={200: {"description": "The response as it is now."}, **problems(404)},
)
async def get_response(response_id: ResponsePath, services: Services, http: Request) -> JSONResponse:
    """A response of the caller's: every run is one, as long as it is kept."""
    if http.query_params.get("stream") == "true":
        raise UnsupportedParameter(
            f"a stored response is not streamed; leave `stream` out, or read GET /v1/runs/{run_id_of(response_id)}/events",
            field="stream",
        )
    request = pb.GetRunRequest(run_id=run_id_of(response_id))
    answer = await services.orchestrator.GetRun(request, timeout=services.settings.rpc_timeout_s)
    return reply(await _stored_response(http, services, answer.run))


@router.post(
    "/responses/{response_id}/cancel",
    responses={200: {"description": "The response as it was."}, **problems(404)},
)
async def cancel_response(response_id: ResponsePath, services: Services, http: Request) -> JSONResponse:
    """Asks a response that is being made to stop. It then ends as `cancelled`, unless it had already ended."""
    request = pb.CancelRunRequest(run_id=run_id_of(response_id))
    answer = await services.orchestrator.CancelRun(request, timeout=services.settings.rpc_timeout_s)
    return reply(await _stored_response(http, services, answer.run))


@router.get(
    "/responses/{response_id}/input_items",
    responses={200: {"description": "A page of items."}, **problems(404)},
)
async def list_input_items(
    response_id: ResponsePath, services: Services, limit: Limit = 20, after: AfterItem = None, order: Order = "desc"
) -> JSONResponse:
    """What a response of the caller's was asked: messages, calls of functions and what they returned. Of what was said before a
    `previous_response_id` the items stand with that response."""
    request = pb.GetRunRequest(run_id=run_id_of(response_id))
    answer = await services.orchestrator.GetRun(request, timeout=services.settings.rpc_timeout_s)
    items = input_items(answer.run)[:: 1 if order == "asc" else -1]
    ids = [item["id"] for item in items]
    if after and after not in ids:
        raise InputItemNotFound(
            f"{response_id} has no input item {after}; take the `last_id` of a page of the same order"
        )
    begin = ids.index(after) + 1 if after else 0
    return reply(page_of(items[begin : begin + limit], has_more=len(items) > begin + limit))


@router.delete("/responses/{response_id}", responses={200: {"description": "It is gone."}, **problems()})
async def delete_response(response_id: ResponsePath, services: Services) -> JSONResponse:
    """Removes a response with its run. One that is being made is cancelled first. Harmless when repeated."""
    await delete_run(services, run_id_of(response_id))
    return reply(deleted(response_id, "response"))


async def _stored_response(http: Request, services: Backends, run: pb.Run) -> Json:
    """A run that is kept as a response."""
    known = encode(run)
    fold = RunFold(
        run_id=run.run_id,
        thread_id=known["thread_id"],
        status=known["status"] or "",
        text=run.answer.text,
        answer=known["answer"],
        verification=known["answer"] and known["answer"]["verification"],
        usage=known["usage"] or {},
        error=known["error"],
    )
    model = "groundwork/research" if run.mode == pb.RUN_MODE_AGENT else "groundwork"
    asked = AskedResponse(model, by_schema=run.follows_schema, created_at_s=run.created_at.seconds)
    return response(fold, asked, await _places(http, services, cited_documents(fold)))


def _base_url(http: Request, services: Backends) -> str:
    return base_url(http.scope, services.settings.public_url)


async def _places(http: Request, services: Backends, document_ids: Iterable[str]) -> Places:
    """Where the caller finds these documents."""
    return Places(_base_url(http, services), await file_ids(services, document_ids))


async def _events(
    request: ChatCompletionRequest, services: Backends, idempotency_key: str, previous_run_id: str = ""
) -> AsyncIterator[RunEvent]:
    collection_ids = resolve_collection_ids(services, asked_collections(request))
    run = run_request(request, collection_ids, idempotency_key, previous_run_id)
    run.memory = memory_mode("", await require_existing(services, collection_ids, request.thread_id or ""))
    return started(services, run)


async def _hung_up(services: Backends, idempotency_key: str | None, run_id: str) -> None:
    """Cancels the run of a client that has gone. With an idempotency key the client may come back, and others may follow the
    run."""
    if not idempotency_key:
        await cancel_abandoned(services, run_id)


async def _leave(run_id: str) -> None:
    """For a run that is deleted behind its events."""


def _stream(
    pieces: AsyncIterator[Encoded], run_id: str, request: OpenAiBody, services: Backends, hung_up: HungUp
) -> EventStream:
    return EventStream(
        pieces,
        ping_interval_s=services.settings.ping_interval_s,
        closing=services.closing,
        headers=_headers(run_id, request),
        unresumable=Unresumable(
            tell=lambda error: Piece(error_body(error)),
            restarts=StreamInterrupted(
                f"the gateway restarts, and run {run_id} goes on: see GET /v1/responses/{response_id(run_id)}, or ask again"
            ),
            hung_up=partial(hung_up, run_id),
            closes_after_s=max(0.0, services.settings.drain_grace_s - _LAST_WORDS_S),
        ),
    )


def _headers(run_id: str, request: OpenAiBody) -> dict[str, str]:
    """Which run it is, and the members of the request that change nothing."""
    return {"X-Run-Id": run_id, **ignored_header(request.ignored())}
