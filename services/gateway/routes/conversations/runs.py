"""Runs: list, look at, follow from anywhere, stop, delete."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from groundwork.common.v1 import common_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Backends, Services
from services.gateway.encoding import encode
from services.gateway.errors import RunUnanswered
from services.gateway.reports.runs import ENDINGS, MEDIA_TYPES, render
from services.gateway.schemas.conversations.runs import AnsweredInput, Run, RunInput, RunList, RunWithAnswer
from services.gateway.schemas.fields import DIGITS, PageSize, PageToken, Pattern, RunPath
from services.gateway.schemas.problem import problems
from services.gateway.schemas.streams import run_stream_response
from services.gateway.streams.following import follow
from services.gateway.streams.shares import STREAM_PLACE
from services.gateway.streams.sse import EventStream, ServerSentEvent
from services.gateway.streams.streaming import policy, sse_events, sse_events_after

_LAST_SEQ = 10**18 - 1
_EVENT_ID = Pattern("^[0-9]{1,18}$", "is no id of an event of this run; it is a whole number")

router = APIRouter(prefix="/v1/runs", tags=["runs"], dependencies=[NEEDS_QUERY])


@router.get("", responses=problems())
async def list_runs(services: Services, page_size: PageSize = 100, page_token: PageToken = "") -> RunList:
    """Runs, newest first."""
    request = pb.ListRunsRequest(page=common_pb2.PageRequest(page_size=page_size, page_token=page_token))
    answer = await services.orchestrator.ListRuns(request, timeout=services.settings.rpc_timeout_s)
    return RunList(runs=[_run(each) for each in answer.runs], next_page_token=answer.next_page_token or None)


@router.get("/{run_id}", responses=problems(404))
async def get_run(run_id: RunPath, services: Services) -> RunWithAnswer:
    """One run: its state and, once there are, its answer with citations and what it cost."""
    return RunWithAnswer.model_validate(encode(await _fetched(run_id, services)))


@router.get(
    "/{run_id}/report",
    response_class=Response,
    responses={
        200: {"description": "The document.", "content": {media_type: {} for media_type in MEDIA_TYPES.values()}},
        **problems(404, 412),
    },
)
async def get_report(
    run_id: RunPath,
    services: Services,
    form: Annotated[
        Literal["markdown", "html", "docx"], Query(alias="format", description="`markdown`, `html` or `docx`.")
    ] = "markdown",
) -> Response:
    """The answer of a run as a document to keep, with what it covers and a table of its sources. Of a run without an answer: 412
    with reason `RUN_UNANSWERED`."""
    run = RunWithAnswer.model_validate(encode(await _fetched(run_id, services))).model_dump(mode="json")
    if run["answer"] is None:
        raise RunUnanswered(f"run {run_id} has no answer, or none any more; follow it at /v1/runs/{run_id}/events")
    headers = {"Content-Disposition": f'attachment; filename="report-{run_id}.{ENDINGS[form]}"'}
    document = await asyncio.to_thread(render, run, form)
    return Response(document, media_type=MEDIA_TYPES[form], headers=headers)


@router.post("/{run_id}/cancel", status_code=202, responses=problems(404))
async def cancel_run(run_id: RunPath, services: Services) -> Run:
    """Asks a run to stop; it ends with `done` `cancelled` unless it had already ended. Answers with the run as it was."""
    request = pb.CancelRunRequest(run_id=run_id)
    answer = await services.orchestrator.CancelRun(request, timeout=services.settings.rpc_timeout_s)
    return _run(answer.run)


@router.post("/{run_id}/input", responses=problems(404, 412, 413, 415))
async def answer_input(run_id: RunPath, answer: RunInput, services: Services) -> AnsweredInput:
    """Answers what a run asks its user (event `input`), and lets it go on; follow it at `/v1/runs/{run_id}/events`. Harmless when
    repeated with the same text. 412 with reason `INPUT_CLOSED` when the run asks nothing, has another answer already, has gone on
    without one, or has ended; 403 with `NOT_YOURS_TO_DECIDE` when the run is somebody else's."""
    request = pb.AnswerInputRequest(run_id=run_id, text=answer.text)
    answered = await services.orchestrator.AnswerInput(request, timeout=services.settings.rpc_timeout_s)
    return AnsweredInput.model_validate({**encode(answered.input), "run_id": run_id})


@router.delete("/{run_id}", status_code=204, responses=problems())
async def delete_run(run_id: RunPath, services: Services) -> None:
    """Removes a run and its events. One that is going on is cancelled first, and gone within a minute. What it put into a thread
    stays there. Harmless when repeated."""
    request = pb.DeleteRunRequest(run_id=run_id)
    await services.orchestrator.DeleteRun(request, timeout=services.settings.rpc_timeout_s)


@router.get(
    "/{run_id}/events",
    status_code=200,
    response_class=EventStream,
    dependencies=[STREAM_PLACE],
    responses={
        **run_stream_response("The run's events after the given one, to the last."),
        204: {"description": "The run has ended and you have seen its last event: nothing is left to follow."},
        **problems(404, 429),
    },
)
async def follow_run(
    run_id: RunPath,
    services: Services,
    after: Annotated[
        int, Query(ge=0, le=_LAST_SEQ, description="`seq` of the last event already seen; 0 for all."), DIGITS
    ] = 0,
    last_event_id: Annotated[
        Annotated[str, _EVENT_ID] | None,
        Header(description="As `after`; wins over it. The id of an event of this run."),
    ] = None,
) -> Response:
    """Follows a run from any point, running or finished: every event after `after` exactly once, in order. Of a run
    whose events were erased, because a document that they quote was deleted: 404 with reason `RUN_FORGOTTEN`."""
    after_seq = after if last_event_id is None else int(last_event_id)
    run = await _fetched(run_id, services)
    events = follow(
        services.run_log.attach(run_id, after_seq),
        services.run_log.attach,
        run_id=run_id,
        after_seq=after_seq,
        policy=policy(services),
    )
    if run.status in (pb.RUN_STATUS_RUNNING, pb.RUN_STATUS_WAITING):
        # The next event may be long in coming; the headers should not be.
        return _stream(sse_events_after(events, run_id, after_seq), run_id, services)
    first = await anext(events, None)
    if first is None:
        return Response(status_code=204, headers={"X-Run-Id": run_id})
    return _stream(sse_events(first, events), run_id, services)


async def _fetched(run_id: str, services: Backends) -> pb.Run:
    answer = await services.orchestrator.GetRun(
        pb.GetRunRequest(run_id=run_id), timeout=services.settings.rpc_timeout_s
    )
    run: pb.Run = answer.run
    return run


def _stream(events: AsyncIterator[ServerSentEvent], run_id: str, services: Backends) -> EventStream:
    return EventStream(
        events,
        ping_interval_s=services.settings.ping_interval_s,
        closing=services.closing,
        headers={"X-Run-Id": run_id},
    )


def _run(message: pb.Run) -> Run:
    return Run.model_validate(encode(message))
