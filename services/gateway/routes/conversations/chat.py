"""The general chat: a message, the tools that are used for it, and the answer."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from pydantic import BaseModel

from kit.vocabulary.run_fold import WAITING, RunFold
from services.gateway.access.existence import require_existing
from services.gateway.access.memory_modes import memory_mode
from services.gateway.access.own_default import resolve_collection_ids
from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.models import Json, RunEvent
from services.gateway.schemas.conversations.chat import ToolChatRequest, ToolChatResponse, WaitingRun
from services.gateway.schemas.fields import IdempotencyKey
from services.gateway.schemas.problem import problems
from services.gateway.schemas.streams import run_stream_response
from services.gateway.streams.answers import answered, fold_events
from services.gateway.streams.shares import STREAM_PLACE_UNLESS_JSON, wants_json
from services.gateway.streams.sse import EventStream
from services.gateway.streams.streaming import run_stream, started

router = APIRouter(prefix="/v1", tags=["chat"], dependencies=[NEEDS_QUERY])


def responses(shape: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """A stream by default, and JSON: an answer of this shape, or what the run waits for."""
    streamed = run_stream_response("The steps and the answer as they come; as JSON with `Accept: application/json`.")
    answered = {"schema": {"$ref": f"#/components/schemas/{shape.__name__}"}}
    streamed[200]["content"]["application/json"] = answered
    waiting = {"description": "With `Accept: application/json`: the run waits for a person.", "model": WaitingRun}
    return {**streamed, 202: waiting, **problems(404, 409, 413, 415, 429, 504)}


@router.post(
    "/chat",
    status_code=200,
    response_class=EventStream,
    dependencies=[STREAM_PLACE_UNLESS_JSON],
    responses=responses(ToolChatResponse),
)
async def chat(
    message: ToolChatRequest, request: Request, services: Services, idempotency_key: IdempotencyKey = None
) -> Response:
    """The next message of a conversation in which the model may use tools, answered as a stream of events, or with
    `Accept: application/json` as JSON. When a call needs a person's approval the stream says so and stays open; JSON answers 202
    with what is to be decided. When the connection drops, read on with GET /v1/runs/{X-Run-Id}/events and the Last-Event-ID
    header."""
    collection_ids = resolve_collection_ids(services, message.collection_ids or [])
    found = await require_existing(services, collection_ids, message.thread_id or "")
    run = run_request(message, collection_ids, idempotency_key or "")
    run.memory = memory_mode(run.memory, found)
    return await respond(started(services, run), request, services, ToolChatResponse)


async def respond(
    events: AsyncIterator[RunEvent], request: Request, services: Services, shape: type[BaseModel]
) -> Response:
    """The events of a run as a stream, or its answer in this shape where the client wants JSON alone."""
    if wants_json(request.headers):
        return as_json(await fold_events(events), shape)
    return await run_stream(events, services)


def as_json(run: RunFold, shape: type[BaseModel]) -> JSONResponse:
    """The answer of a run in this shape, or 202 with what it waits for. Raises what it ended with instead of an answer."""
    headers = {"X-Run-Id": run.run_id}
    if run.status == WAITING:
        headers["Location"] = f"/v1/runs/{run.run_id}"
        return JSONResponse(_waiting(run), status_code=202, headers=headers)
    return JSONResponse(shape.model_validate(answered(run)).model_dump(mode="json"), headers=headers)


def run_request(
    message: ToolChatRequest, collection_ids: Sequence[str], idempotency_key: str, style: str = ""
) -> pb.StartRunRequest:
    """The run that answers the message."""
    return pb.StartRunRequest(
        mode=pb.RUN_MODE_CHAT,
        question=message.message,
        collection_ids=collection_ids,
        thread_id=message.thread_id or "",
        idempotency_key=idempotency_key,
        budgets=message.budgets.asked(),
        model_credentials=message.model.brought() if message.model else None,
        tools=None if message.tools is None else pb.ToolSelection(names=message.tools),
        memory=message.memory or "",
        verify=message.verify or "",
        guard=message.guard or "",
        style=style,
    )


def _waiting(run: RunFold) -> Json:
    path = f"/v1/runs/{run.run_id}"
    decide = (
        "Read the arguments, then allow or deny each call with POST /v1/approvals/{id} and "
        '{"decision": "allow" | "deny", "arguments_hash": …}. '
    )
    how = f'Answer the question with POST {path}/input and {{"text": …}}. ' if run.input else decide
    then = f"The run goes on by itself: follow it at GET {path}/events, or fetch its answer from GET {path}."
    until = run.waits["until"] if run.waits else None
    return WaitingRun.model_validate({**run.result(), "until": until, "next": how + then}).model_dump(mode="json")
