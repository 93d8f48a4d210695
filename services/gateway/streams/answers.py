"""A run as one answer, for clients that ask for JSON instead of a stream."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from kit.errors import Cancelled, DeadlineExceeded, GroundworkError, Internal
from kit.vocabulary.run_fold import WAITING, RunFold
from services.gateway.models import Json, RunEvent
from services.gateway.problems import error_of


async def fold_events(events: AsyncIterator[RunEvent], fold: RunFold | None = None) -> RunFold:
    """The run at its end, or as soon as it waits. `fold` holds it meanwhile. Raises what the stream raises."""
    fold = fold or RunFold()
    async with aclosing(events):  # type: ignore[type-var] # `follow` is an async generator
        async for event in events:
            fold.add(event.kind, event.data)
            if fold.status == WAITING:
                break
    return fold


def answered(fold: RunFold) -> Json:
    """What came of the run. Raises what it ended with instead of an answer."""
    error: GroundworkError
    where = f"see GET /v1/runs/{fold.run_id}/events"
    match fold.status:
        case "completed" | "refused":
            return fold.result()
        case "timeout" if fold.answer and fold.answer["text"]:  # with what was found by then
            return fold.result()
        case "cancelled":
            error = Cancelled(
                f"run {fold.run_id} was cancelled before it had answered; {where}", reason="RUN_CANCELLED"
            )
        case "timeout":
            error = DeadlineExceeded(f"run {fold.run_id} ran out of time; {where}, or ask again", reason="RUN_TIMEOUT")
        case _ if fold.error:
            error = error_of(fold.error["code"], fold.error["message"], fold.error["reason"])
        case _:
            error = Internal(f"run {fold.run_id} ended without an answer; {where}", reason="RUN_FAILED")
    error.metadata["run_id"] = fold.run_id
    raise error
