"""What came of a run as a response, whole and in events. A response is a run: its id is the run's."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kit.vocabulary.run_fold import RUNNING, WAITING, RunFold
from services.gateway.models import Json, RunEvent
from services.gateway.openai.annotations import Places, cited_documents, file_citations
from services.gateway.openai.content import AnswerContent, Piece, Streamed, content_of, known
from services.gateway.openai.errors import error_body

_NOWHERE = Places()
_STATES = {RUNNING: "in_progress", "cancelled": "cancelled", "failed": "failed"}
_PREFIX = "resp_"

FindPlaces = Callable[[Iterable[str]], Awaitable[Places]]
"""Where a client finds these documents."""


def response_id(run_id: str) -> str:
    """The id of the response that a run is."""
    return _PREFIX + run_id


def run_id_of(response_id: str) -> str:
    """The run that a response is."""
    return response_id.removeprefix(_PREFIX)


@dataclass(frozen=True)
class AskedResponse:
    """What of a request its response tells."""

    model: str
    previous_response_id: str | None = None
    by_schema: bool = False
    is_stored: bool = True
    in_background: bool = False
    created_at_s: int = 0
    """0: now."""


def response(run: RunFold, asked: AskedResponse, places: Places = _NOWHERE) -> Json:
    """A run as it is now as a response."""
    status = _STATES.get(run.status, "completed")
    if status == "completed" and run.answer is None and run.status != WAITING:
        status = "failed"
    content = content_of(run, by_schema=asked.by_schema) if status == "completed" else AnswerContent()
    return _response(run, asked, content, status, places)


async def response_events(
    first: RunEvent, events: AsyncIterator[RunEvent], asked: AskedResponse, find_places: FindPlaces
) -> AsyncGenerator[Piece, None]:
    """The answer of a run as the events of a response."""
    streamed = Streamed(asked.by_schema)
    numbers = iter(range(1_000_000))

    def event(kind: str, **data: Any) -> Piece:
        return Piece({"type": kind, "sequence_number": next(numbers), **data}, kind)

    begun = RunFold(run_id=first.run_id, status=RUNNING)
    empty = response(begun, asked)
    yield event("response.created", response=empty)
    yield event("response.in_progress", response=empty)
    place = {"item_id": f"msg_{first.run_id}", "output_index": 0, "content_index": 0}
    has_begun = False
    async for added in streamed.additions(first, events):
        if not has_begun:
            has_begun = True
            for piece in _begun(event, begun, place):
                yield piece
        yield event("response.output_text.delta", **place, delta=added, logprobs=[])
    run = streamed.run
    if streamed.failure is not None:
        error = error_body(streamed.failure)["error"]
        failed = {**empty, "status": "failed", "error": {"code": "server_error", "message": error["message"]}}
        yield event("response.failed", response=failed)
        return
    content = streamed.content
    places = await find_places(cited_documents(run))
    if not has_begun and not content.calls:
        for piece in _begun(event, begun, place, content):
            yield piece
    whole = _response(run, asked, content, "completed", places, streamed.sent)
    for index, item in enumerate(whole["output"]):
        for piece in _finished(event, place, index, item):
            yield piece
    kind = "incomplete" if whole["status"] == "incomplete" else "completed"
    yield event(f"response.{kind}", response=whole)


_Event = Callable[..., Piece]


def _begun(event: _Event, run: RunFold, place: Json, content: AnswerContent = AnswerContent()) -> list[Piece]:  # noqa: B008 - frozen
    empty = {**_message(run, AnswerContent(), "in_progress", _NOWHERE), "content": []}
    part = {"type": "refusal", "refusal": ""} if content.refusal is not None else _part(run, AnswerContent(), _NOWHERE)
    return [
        event("response.output_item.added", output_index=0, item=empty),
        event("response.content_part.added", **place, part=part),
    ]


def _finished(event: _Event, place: Json, index: int, item: Json) -> list[Piece]:
    """The events that end an item; of a call, all of them."""
    done = event("response.output_item.done", output_index=index, item=item)
    if item["type"] == "function_call":
        at = {"item_id": item["id"], "output_index": index}
        begun = {**item, "arguments": "", "status": "in_progress"}
        return [
            event("response.output_item.added", output_index=index, item=begun),
            event("response.function_call_arguments.delta", **at, delta=item["arguments"]),
            event("response.function_call_arguments.done", **at, name=item["name"], arguments=item["arguments"]),
            done,
        ]
    (part,) = item["content"]
    if part["type"] == "refusal":
        said = [
            event("response.refusal.delta", **place, delta=part["refusal"]),
            event("response.refusal.done", **place, refusal=part["refusal"]),
        ]
    else:
        said = [
            event("response.output_text.annotation.added", **place, annotation_index=number, annotation=annotation)
            for number, annotation in enumerate(part["annotations"])
        ]
        said.append(event("response.output_text.done", **place, text=part["text"], logprobs=[]))
    return [*said, event("response.content_part.done", **place, part=part), done]


def _response(
    run: RunFold,
    asked: AskedResponse,
    content: AnswerContent,
    status: str,
    places: Places,
    sent: str | None = None,
) -> Json:
    cut = content.ending if status == "completed" and content.ending in ("length", "content_filter") else ""
    message = run.error["message"] if run.error else "the run ended without an answer"
    return {
        "id": response_id(run.run_id),
        "object": "response",
        "created_at": asked.created_at_s or int(time.time()),
        "status": "incomplete" if cut else status,
        "background": asked.in_background,
        "error": {"code": "server_error", "message": message} if status == "failed" else None,
        "incomplete_details": {"reason": "max_output_tokens" if cut == "length" else cut} if cut else None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "output": _output(run, content, places) if status == "completed" else [],
        "parallel_tool_calls": True,
        "previous_response_id": asked.previous_response_id,
        "store": asked.is_stored,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(run) if status == "completed" else None,
        "groundwork": known(run, sent, by_schema=asked.by_schema),
    }


def _output(run: RunFold, content: AnswerContent, places: Places) -> list[Json]:
    """The items: what is said, unless only functions are called, and the calls."""
    said = [] if content.calls and not content.text else [_message(run, content, "completed", places)]
    return said + [
        {
            "id": f"fc_{run.run_id}_{index}",
            "type": "function_call",
            "call_id": call["call_id"],
            "name": call["name"],
            "arguments": call["arguments"],
            "status": "completed",
        }
        for index, call in enumerate(content.calls)
    ]


def _message(run: RunFold, content: AnswerContent, status: str, places: Places) -> Json:
    return {
        "id": f"msg_{run.run_id}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [_part(run, content, places)],
    }


def _part(run: RunFold, content: AnswerContent, places: Places) -> Json:
    if content.refusal is not None:
        return {"type": "refusal", "refusal": content.refusal}
    annotations = file_citations(content.marks, run, places)
    return {"type": "output_text", "text": content.text, "annotations": annotations, "logprobs": []}


def _usage(run: RunFold) -> Json:
    read, written = run.usage.get("prompt_tokens", 0), run.usage.get("completion_tokens", 0)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
