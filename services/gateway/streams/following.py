"""Following a run as if its stream never broke. The orchestrator's log is the truth: when the stream behind a client breaks,
the gateway attaches again after the last event that it has passed on, so the client sees every event once, in order."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass

import structlog

from kit.errors import Code, GroundworkError
from services.gateway.errors import StreamInterrupted
from services.gateway.metrics import REATTACHED
from services.gateway.models import RunEvent
from services.gateway.problems import detail

_log = structlog.get_logger()
_WORTH_ANOTHER_TRY = {Code.UNAVAILABLE, Code.CANCELLED, Code.ABORTED, Code.DEADLINE_EXCEEDED}
"""CANCELLED is what a server that is being stopped says; our own cancellation never arrives as a GroundworkError."""

Stream = AsyncIterator[RunEvent]


@dataclass(frozen=True)
class ReattachPolicy:
    """When to try again and when to give up."""

    give_up_after_s: float = 30.0
    """Seconds without a new event, counted from the break."""
    first_backoff_s: float = 0.1
    max_backoff_s: float = 2.0
    clock: Callable[[], float] = time.monotonic


async def follow(
    stream: Stream, attach: Callable[[str, int], Stream], *, run_id: str, after_seq: int, policy: ReattachPolicy
) -> AsyncIterator[RunEvent]:
    """Events after `after_seq` to the last one, each once. `stream` is read first, then as many attachments as it takes.

    `run_id` may be empty while no event has come: then nothing can be attached to, and the first error is the caller's.
    Raises StreamInterrupted when the stream could not be taken up again, any other GroundworkError as it comes.
    """
    broken_at: float | None = None
    attempt = 0
    _note_run(run_id)
    while True:
        progressed = False
        opened_at = policy.clock()
        try:
            async with aclosing(stream) as events:  # type: ignore[type-var] # streams are async generators
                async for event in events:
                    if event.seq <= after_seq:
                        continue
                    _note_run(event.run_id)
                    run_id, after_seq = event.run_id, event.seq
                    broken_at, attempt, progressed = None, 0, True
                    yield event
                    if event.is_last:
                        return
            if not progressed:
                return  # the log holds nothing more: the client had already seen the last event
            cause = reported = "the stream ended before the run did"
        except GroundworkError as error:
            if not run_id or error.code not in _WORTH_ANOTHER_TRY:
                raise
            cause, reported = error.message, detail(error)
            if error.code is Code.DEADLINE_EXCEEDED and policy.clock() - opened_at >= policy.give_up_after_s:
                # It lived for as long as a stream may; a run that waits for a person says nothing for hours.
                broken_at, attempt = None, 0
        broken_at = policy.clock() if broken_at is None else broken_at
        if policy.clock() - broken_at >= policy.give_up_after_s:
            raise StreamInterrupted(
                f"the stream of run {run_id} broke and could not be taken up again ({reported}); the run may still be going "
                f"on: read on with GET /v1/runs/{run_id}/events?after={after_seq}",
                run_id=run_id,
                after_seq=str(after_seq),
            )
        _log.warning("run_stream_reattaching", after_seq=after_seq, attempt=attempt, cause=cause)
        REATTACHED.inc()
        await asyncio.sleep(_backoff_s(attempt, policy))
        attempt += 1
        stream = attach(run_id, after_seq)


def _note_run(run_id: str) -> None:
    """Has further lines of the request name the run."""
    if run_id:
        structlog.contextvars.bind_contextvars(run_id=run_id)


def _backoff_s(attempt: int, policy: ReattachPolicy) -> float:
    """Doubling with full jitter above half, so that a restarted orchestrator is not asked by everybody at once."""
    ceiling: float = min(policy.max_backoff_s, policy.first_backoff_s * 2.0**attempt)
    return ceiling * random.uniform(0.5, 1.0)  # noqa: S311 - spreading load, no secret
