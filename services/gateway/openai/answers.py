"""What came of a run in the shapes of OpenAI's API: a chat completion, a response, and both in pieces.

Text that was sent cannot be taken back there. Where the checked answer is another than what was streamed, because a claim lost its
mark, the last piece says so in `groundwork.text`; its annotations are those of the text that was sent.
"""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kit.errors import GroundworkError
from kit.vocabulary.run_fold import WAITING, RunFold
from services.gateway.models import Json, RunEvent
from services.gateway.openai.annotations import cited_documents, file_citations, url_citations
from services.gateway.openai.errors import error_body
from services.gateway.streams.answers import answered

_DONE = b"data: [DONE]\n\n"
_NONE: Mapping[str, str] = MappingProxyType({})
_WAITS = "This needs a decision before it goes on: see GET /v1/runs/{run_id}."


NameFiles = Callable[[Iterable[str]], Awaitable[Mapping[str, str]]]
"""By what ids clients know the files of documents."""


@dataclass(frozen=True)
class Piece:
    """One server-sent event, without an id: these streams cannot be resumed."""

    data: Json
    event: str = ""

    def encoded(self) -> bytes:
        """The event on the wire."""
        head = f"event: {self.event}\n" if self.event else ""
        return f"{head}data: {json.dumps(self.data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode(
            "utf-8", "replace"
        )


@dataclass(frozen=True)
class End:
    """What ends a stream of chat completions."""

    def encoded(self) -> bytes:
        """The event on the wire."""
        return _DONE


@dataclass
class _Streamed:
    """The text that a client has, while the run goes on."""

    run: RunFold = field(default_factory=RunFold)
    sent: str = ""
    failure: GroundworkError | None = None

    def take(self, event: RunEvent) -> str:
        """What the event adds to the text that was sent."""
        self.run.add(event.kind, event.data)
        if not self.run.text.startswith(self.sent):
            return ""
        added = self.run.text[len(self.sent) :]
        self.sent += added
        return added

    def finish(self) -> str:
        """What is still to be said at the end. Notes why the run has no answer."""
        if self.run.status == WAITING:
            return _WAITS.format(run_id=self.run.run_id)
        try:
            answered(self.run)
        except GroundworkError as error:
            self.failure = error
        return ""

    async def additions(self, first: RunEvent, events: AsyncIterator[RunEvent]) -> AsyncGenerator[str, None]:
        """Pieces of text as they come, until the run ends or waits."""
        if added := self.take(first):
            yield added
        try:
            async for event in events:
                if added := self.take(event):
                    yield added
                if self.run.status == WAITING:
                    break
        except GroundworkError as error:
            self.failure = error
            return
        if last := self.finish():
            self.sent += last
            yield last


def chat_completion(run: RunFold, model: str) -> Json:
    """The answer of a run. Raises what it ended with instead of an answer."""
    text = _WAITS.format(run_id=run.run_id) if run.status == WAITING else answered(run)["answer"]
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": url_citations(text, run)}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        **_completion(run.run_id, model, "chat.completion"),
        "choices": [choice],
        "usage": _chat_usage(run),
        "groundwork": _known(run),
    }


async def chat_chunks(
    first: RunEvent, events: AsyncIterator[RunEvent], model: str, *, include_usage: bool
) -> AsyncGenerator[Piece | End, None]:
    """The answer of a run as chunks of a chat completion. The last chunk with a choice has the annotations."""
    streamed = _Streamed()
    head = _completion(first.run_id, model, "chat.completion.chunk")
    head |= {"usage": None} if include_usage else {}

    def chunk(delta: Json, reason: str | None = None, **extra: Any) -> Piece:
        return Piece(
            {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}], **extra}
        )

    yield chunk({"role": "assistant", "content": ""})
    async for added in streamed.additions(first, events):
        yield chunk({"content": added})
    if streamed.failure is not None:
        yield Piece(error_body(streamed.failure))
        return
    yield chunk(
        {"annotations": url_citations(streamed.sent, streamed.run)},
        "stop",
        groundwork=_known(streamed.run, streamed.sent),
    )
    if include_usage:
        yield Piece({**head, "choices": [], "usage": _chat_usage(streamed.run)})
    yield End()


def response(run: RunFold, model: str, file_ids: Mapping[str, str]) -> Json:
    """The answer of a run as a response. Raises what it ended with instead of an answer."""
    text = _WAITS.format(run_id=run.run_id) if run.status == WAITING else answered(run)["answer"]
    return _response(run, model, text, "completed", file_ids)


async def response_events(
    first: RunEvent, events: AsyncIterator[RunEvent], model: str, name_files: NameFiles
) -> AsyncGenerator[Piece, None]:
    """The answer of a run as the events of a response."""
    streamed = _Streamed()
    numbers = iter(range(1_000_000))

    def event(kind: str, **data: Any) -> Piece:
        return Piece({"type": kind, "sequence_number": next(numbers), **data}, kind)

    begun = RunFold(run_id=first.run_id)
    item = f"msg_{first.run_id}"
    place = {"item_id": item, "output_index": 0, "content_index": 0}
    empty = {**_response(begun, model, "", "in_progress"), "output": []}
    yield event("response.created", response=empty)
    yield event("response.in_progress", response=empty)
    yield event(
        "response.output_item.added", output_index=0, item={**_message(begun, "", "in_progress"), "content": []}
    )
    yield event("response.content_part.added", **place, part=_part(begun, ""))
    async for added in streamed.additions(first, events):
        yield event("response.output_text.delta", **place, delta=added, logprobs=[])
    if streamed.failure is not None:
        error = error_body(streamed.failure)["error"]
        failed = {**empty, "status": "failed", "error": {"code": "server_error", "message": error["message"]}}
        yield event("response.failed", response=failed)
        return
    text, run = streamed.sent, streamed.run
    file_ids = await name_files(cited_documents(run))
    for number, annotation in enumerate(file_citations(text, run, file_ids)):
        yield event("response.output_text.annotation.added", **place, annotation_index=number, annotation=annotation)
    yield event("response.output_text.done", **place, text=text, logprobs=[])
    yield event("response.content_part.done", **place, part=_part(run, text, file_ids))
    yield event("response.output_item.done", output_index=0, item=_message(run, text, "completed", file_ids))
    yield event("response.completed", response=_response(run, model, text, "completed", file_ids))


def _completion(run_id: str, model: str, kind: str) -> Json:
    return {"id": f"chatcmpl-{run_id}", "object": kind, "created": int(time.time()), "model": model}


def _response(run: RunFold, model: str, text: str, status: str, file_ids: Mapping[str, str] = _NONE) -> Json:
    return {
        "id": f"resp_{run.run_id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [_message(run, text, status, file_ids)],
        "parallel_tool_calls": False,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": [],
        "usage": _response_usage(run) if status == "completed" else None,
        "groundwork": _known(run, text),
    }


def _message(run: RunFold, text: str, status: str, file_ids: Mapping[str, str] = _NONE) -> Json:
    return {
        "id": f"msg_{run.run_id}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [_part(run, text, file_ids)],
    }


def _part(run: RunFold, text: str, file_ids: Mapping[str, str] = _NONE) -> Json:
    return {"type": "output_text", "text": text, "annotations": file_citations(text, run, file_ids), "logprobs": []}


def _known(run: RunFold, sent: str | None = None) -> Json:
    """What OpenAI's shapes have no members for. `text`: the checked answer, where it is another than what was sent."""
    answer = run.answer or {}
    return {
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "status": run.status,
        "support_status": answer.get("support_status"),
        "text": run.text if sent is not None and run.text != sent else None,
        "degraded": run.degraded,
    }


def _chat_usage(run: RunFold) -> Json:
    read, written = run.usage.get("prompt_tokens", 0), run.usage.get("completion_tokens", 0)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _response_usage(run: RunFold) -> Json:
    read, written = run.usage.get("prompt_tokens", 0), run.usage.get("completion_tokens", 0)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
