"""What came of a run as a chat completion, whole and in chunks.

Text that was sent cannot be taken back there. Where the checked answer is another than what was streamed, because a claim lost its
mark, the last piece says so in `groundwork.text`; its annotations are those of the text that was sent.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

from kit.vocabulary.run_fold import WAITING, RunFold
from services.gateway.models import Json, RunEvent
from services.gateway.openai.annotations import url_citations
from services.gateway.openai.content import AnswerContent, Piece, Streamed, content_of, known
from services.gateway.openai.errors import error_body
from services.gateway.streams.answers import answered

_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class End:
    """What ends a stream of chat completions."""

    def encoded(self) -> bytes:
        """The event on the wire."""
        return _DONE


def chat_completion(run: RunFold, model: str, base_url: str, *, by_schema: bool) -> Json:
    """The answer of a run. Raises what it ended with instead of an answer."""
    if run.status != WAITING:
        answered(run)
    content = content_of(run, by_schema=by_schema)
    message: Json = {
        "role": "assistant",
        "content": content.text or (None if content.calls or content.refusal else ""),
        "refusal": content.refusal,
        "annotations": url_citations(content.marks, run, base_url),
    }
    if content.calls:
        message["tool_calls"] = _tool_calls(content)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": content.ending}
    return {
        **_completion(run.run_id, model, "chat.completion"),
        "choices": [choice],
        "usage": _usage(run),
        "groundwork": known(run, by_schema=by_schema),
    }


async def chat_chunks(
    first: RunEvent, events: AsyncIterator[RunEvent], model: str, base_url: str, *, include_usage: bool, by_schema: bool
) -> AsyncGenerator[Piece | End, None]:
    """The answer of a run as chunks of a chat completion. The last chunk with a choice has the annotations."""
    streamed = Streamed(by_schema)
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
    content = streamed.content
    if content.refusal is not None:
        yield chunk({"refusal": content.refusal})
    if content.calls:
        yield chunk({"tool_calls": [{"index": index, **call} for index, call in enumerate(_tool_calls(content))]})
    yield chunk(
        {"annotations": url_citations(content.marks, streamed.run, base_url)},
        content.ending,
        groundwork=known(streamed.run, streamed.sent, by_schema=by_schema),
    )
    if include_usage:
        yield Piece({**head, "choices": [], "usage": _usage(streamed.run)})
    yield End()


def _tool_calls(content: AnswerContent) -> list[Json]:
    return [
        {"id": call["call_id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in content.calls
    ]


def _completion(run_id: str, model: str, kind: str) -> Json:
    return {"id": f"chatcmpl-{run_id}", "object": kind, "created": int(time.time()), "model": model}


def _usage(run: RunFold) -> Json:
    read, written = run.usage.get("prompt_tokens", 0), run.usage.get("completion_tokens", 0)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
