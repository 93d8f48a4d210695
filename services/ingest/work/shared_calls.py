"""Texts of several small documents in one call of the model server. A call costs half a millisecond of CPU besides its texts, and
texts that come together are computed together."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import structlog

from kit.errors import Cancelled, DeadlineExceeded, ResourceExhausted, Unavailable
from kit.observability.telemetry import continued_span, current_traceparent
from services.ingest.documents.models import Lane
from services.ingest.errors import BadVectors
from services.ingest.ports import Embedder, Vectors

_SHARED_TOKENS = 512
"""Of one call, at most: what the model server computes as one batch on a CPU, and therefore ahead of a large document's texts."""
_CALLS_AT_ONCE = 4
"""Of one tenant and lane. The model server computes two batches at a time and has the next ones at hand; further texts gather
meanwhile."""

_PASSING = (Unavailable, ResourceExhausted, Cancelled, DeadlineExceeded)
"""Errors that say nothing about the texts."""

_Key = tuple[str, Lane, bool]
"""Tenant, lane, and whether local models alone may be asked."""

Embedded = tuple[Vectors, str]
"""Vectors in the order of the texts, and the model that made them."""


@dataclass(eq=False)
class _Part:
    """What one document adds to a call."""

    texts: Sequence[str]
    token_count: int
    answer: "asyncio.Future[Embedded]"
    context: contextvars.Context
    """Tenant, trace and document of each caller that waits for it."""
    traceparent: str


@dataclass(eq=False)
class _Group:
    """The parts of one tenant and lane that wait, and calls under way."""

    waiting: deque[_Part] = field(default_factory=deque)
    calls: "dict[asyncio.Task[None], list[_Part]]" = field(default_factory=dict)

    def take(self, max_tokens: int, max_texts: int) -> list[_Part]:
        """The next call's parts, in the order of their arrival; at least one."""
        parts = [self.waiting.popleft()]
        tokens, texts = parts[0].token_count, len(parts[0].texts)
        while self.waiting:
            tokens += self.waiting[0].token_count
            texts += len(self.waiting[0].texts)
            if tokens > max_tokens or texts > max_texts:
                break
            parts.append(self.waiting.popleft())
        return parts


class SharedCalls:
    """Embeds. Nobody waits for a call to fill: while some calls are under way, what arrives gathers for the next. Calls are one
    tenant's, in whose name they are made, and one lane's."""

    def __init__(self, embedder: Embedder, *, batch_tokens: int, batch_texts: int) -> None:
        self.max_tokens = min(_SHARED_TOKENS, batch_tokens)
        self._max_texts = batch_texts
        self._embedder = embedder
        self._groups: dict[_Key, _Group] = {}

    async def embed(self, key: _Key, texts: Sequence[str], token_count: int) -> Embedded:
        """Raises what the embedder raises for these texts. Other documents' texts and cancellations do no harm."""
        group = self._groups.setdefault(key, _Group())
        answer = asyncio.get_running_loop().create_future()
        part = _Part(texts, token_count, answer, contextvars.copy_context(), current_traceparent())
        group.waiting.append(part)
        self._start(key, group)
        try:
            return await part.answer
        finally:
            self._leave(group, part)

    def _start(self, key: _Key, group: _Group) -> None:
        while group.waiting and len(group.calls) < _CALLS_AT_ONCE:
            parts = group.take(self.max_tokens, self._max_texts)
            task = asyncio.create_task(self._traced(parts), context=parts[0].context)
            group.calls[task] = parts
            task.add_done_callback(lambda ended: self._ended(key, group, ended))
        if not group.calls:
            self._groups.pop(key, None)

    def _ended(self, key: _Key, group: _Group, task: "asyncio.Task[None]") -> None:
        for part in group.calls.pop(task):
            part.answer.cancel()  # where the call was cancelled
        self._start(key, group)

    def _leave(self, group: _Group, part: _Part) -> None:
        """Ends a call that nobody waits for any more."""
        if part in group.waiting:
            group.waiting.remove(part)
        for task, parts in group.calls.items():
            if part in parts and all(each.answer.done() for each in parts):
                task.cancel()

    async def _traced(self, parts: Sequence[_Part]) -> None:
        """The call as a part of the first document's trace, with links to those of the others."""
        if len(parts) > 1:
            structlog.contextvars.unbind_contextvars("document_id")
        links = [part.traceparent for part in parts[1:] if part.traceparent]
        attributes = {
            "groundwork.embed.documents": len(parts),
            "groundwork.embed.texts": sum(len(p.texts) for p in parts),
        }
        with continued_span("embed batch", parts[0].traceparent, attributes, links=links):
            await self._call(parts)

    async def _call(self, parts: Sequence[_Part]) -> None:
        try:
            vectors, model = await self._embedder.embed([text for part in parts for text in part.texts])
            _hand_out(parts, vectors, model)
        except Exception as error:
            if len(parts) > 1 and not isinstance(error, _PASSING):
                for part in parts:  # whose fault it is shows when each is on its own
                    await self._call([part])
                return
            for part in parts:
                if not part.answer.done():
                    part.answer.set_exception(error)


def _hand_out(parts: Sequence[_Part], vectors: Vectors, model: str) -> None:
    ends = np.cumsum([len(part.texts) for part in parts])
    if len(vectors) != ends[-1]:
        raise BadVectors(f"the model server returned {len(vectors)} vectors for {ends[-1]} texts")
    for part, rows in zip(parts, np.split(vectors, ends[:-1]), strict=True):
        if not part.answer.done():
            part.answer.set_result((rows, model))
