"""Questions: answered at once as JSON, or followed as an event stream. Hanging up stops no run."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import JSONResponse, Response

from kit.errors import Cancelled, DeadlineExceeded, GroundworkError, Internal
from services.gateway.backends import Backends, Services
from services.gateway.errors import StreamInterrupted
from services.gateway.events import interrupted
from services.gateway.existence import require_existing
from services.gateway.models import BroughtModel, Json, RunEvent, RunRequest
from services.gateway.problems import error_of, problem
from services.gateway.runs import ReattachPolicy, follow
from services.gateway.schemas import models as schemas
from services.gateway.schemas.events import run_stream_response
from services.gateway.schemas.fields import CollectionPath, IdempotencyKey
from services.gateway.schemas.problem import problems
from services.gateway.schemas.runs import ChatRequest, QaRequest, QaResponse
from services.gateway.shares import STREAM_PLACE, STREAM_PLACE_IF_STREAMED
from services.gateway.sse import EVENT_STREAM, EventStream, ServerSentEvent, of_run

router = APIRouter(prefix="/v1", tags=["questions"])

_PROBLEMS = problems(404, 409, 413, 415, 429, 504)
_QA_RESPONSES = {**run_stream_response("The answer; as events with `Accept: text/event-stream`."), **_PROBLEMS}


@router.post("/qa", response_model=QaResponse, responses=_QA_RESPONSES, dependencies=[STREAM_PLACE_IF_STREAMED])
async def ask(
    request: QaRequest,
    services: Services,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """One question, one search, one answer with citations. With `Accept: text/event-stream` the same as events."""
    await require_existing(services, request.collection_ids)
    events = started(
        services,
        RunRequest(
            mode="qa",
            question=request.question,
            collection_ids=tuple(request.collection_ids),
            document_ids=tuple(request.document_ids),
            top_k=request.top_k,
            idempotency_key=idempotency_key or "",
            budgets=request.budgets.asked(),
            brought_model=_brought(request.model),
        ),
    )
    if EVENT_STREAM in accept.lower():
        return await run_stream(events, services)
    async with aclosing(events):  # type: ignore[type-var] # `follow` is an async generator
        answer = await _collected(events)
    return JSONResponse(answer.model_dump(mode="json"), headers={"X-Run-Id": answer.run_id})


@router.post(
    "/collections/{collection_id}/chat",
    status_code=200,
    response_class=EventStream,
    dependencies=[STREAM_PLACE],
    responses={**run_stream_response("The answer as it comes."), **_PROBLEMS},
)
async def chat(
    collection_id: CollectionPath, request: ChatRequest, services: Services, idempotency_key: IdempotencyKey = None
) -> EventStream:
    """The next message of a conversation over a collection, answered as a stream of events. When the connection drops,
    read on with GET /v1/runs/{X-Run-Id}/events and the Last-Event-ID header."""
    await require_existing(services, [collection_id], request.thread_id or "")
    events = started(
        services,
        RunRequest(
            mode=request.mode,
            question=request.message,
            collection_ids=(collection_id,),
            thread_id=request.thread_id or "",
            agent=request.agent or "",
            document_ids=tuple(request.document_ids),
            top_k=request.top_k,
            idempotency_key=idempotency_key or "",
            budgets=request.budgets.asked(),
            brought_model=_brought(request.model),
        ),
    )
    return await run_stream(events, services)


def _brought(given: schemas.BroughtModel | None) -> BroughtModel | None:
    return BroughtModel(given.base_url, given.api_key, given.model, given.preset or "") if given else None


def started(services: Backends, request: RunRequest) -> AsyncIterator[RunEvent]:
    """A new run's events to the last one, across broken streams."""
    log = services.run_log
    return follow(log.start(request), log.attach, run_id="", after_seq=0, policy=policy(services))


def policy(services: Backends) -> ReattachPolicy:
    """How long a broken stream is taken up again."""
    return ReattachPolicy(give_up_after_s=services.settings.reattach_for_s)


async def run_stream(events: AsyncIterator[RunEvent], services: Backends) -> EventStream:
    """The answer to a question as events. Waits for the first, so that a run that cannot start is an HTTP error."""
    first = await anext(events, None)
    if first is None:
        raise Internal("the orchestrator ended the run's stream before its first event; ask again")
    return EventStream(
        told(first, events),
        ping_interval_s=services.settings.ping_interval_s,
        closing=services.closing,
        headers={"X-Run-Id": first.run_id},
    )


async def told(first: RunEvent, events: AsyncIterator[RunEvent]) -> AsyncIterator[ServerSentEvent]:
    """`first` and the rest, to be sent. A stream that was lost for good ends in an `error` event that says how to resume."""
    async with aclosing(events):  # type: ignore[type-var] # `follow` is an async generator
        yield of_run(first)
        async for each in tell(events, first.run_id, first.seq):
            yield each


async def tell(events: AsyncIterator[RunEvent], run_id: str, seq: int) -> AsyncIterator[ServerSentEvent]:
    """Events to be sent; `seq` is the last one the client has."""
    try:
        async for event in events:
            seq = event.seq
            yield of_run(event)
    except StreamInterrupted as error:
        yield ServerSentEvent("error", interrupted(run_id, seq, error.message))
    except GroundworkError as error:
        # The headers are out: only an event can tell.
        body = problem(error)
        yield ServerSentEvent("error", {**body, "run_id": run_id, "message": body["detail"]})


async def _collected(events: AsyncIterator[RunEvent]) -> QaResponse:
    answer: Json = {"answer": "", "citations": [], "support_status": None, "usage": {}, "method": "", "degraded": []}
    failure: Json | None = None
    status, run_id = "", ""
    async for event in events:
        run_id = event.run_id
        match event.kind:
            case "answer":
                answer["answer"] = event.data["text"]
                answer.update({name: event.data[name] for name in ("citations", "support_status", "method")})
            case "thinking" if event.data["degraded"]:
                _note(answer["degraded"], event.data["degraded"])
            case "retrieval":
                for degradation in event.data["degraded"]:
                    _note(answer["degraded"], degradation)
            case "usage":
                answer["usage"] = event.data
            case "error":
                failure = event.data
            case "done":
                status = event.data["status"]
    _raise_unless_answered(run_id, status, failure)
    return QaResponse.model_validate({"run_id": run_id, "status": status, **answer})


def _note(degraded: list[Json], degradation: Json) -> None:
    if degradation not in degraded:
        degraded.append(degradation)


def _raise_unless_answered(run_id: str, status: str, failure: Json | None) -> None:
    error: GroundworkError
    where = f"see GET /v1/runs/{run_id}/events"
    match status:
        case "completed" | "refused":
            return
        case "cancelled":
            error = Cancelled(f"run {run_id} was cancelled before it had answered; {where}", reason="RUN_CANCELLED")
        case "timeout":
            error = DeadlineExceeded(f"run {run_id} ran out of time; {where}, or ask again", reason="RUN_TIMEOUT")
        case _ if failure:
            error = error_of(failure["code"], failure["message"], failure["reason"])
        case _:
            error = Internal(f"run {run_id} ended without an answer; {where}", reason="RUN_FAILED")
    error.metadata["run_id"] = run_id
    raise error
