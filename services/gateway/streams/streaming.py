"""A run's events on their way to a client: started, followed across broken streams, sent to the last.
Hanging up stops no run: a reload goes on with it."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from groundwork.orchestrator.v1.orchestrator_pb2 import StartRunRequest

from kit.access.api_keys import stricter_guard
from kit.access.principal import current_principal, is_guest
from kit.errors import GroundworkError, Internal
from services.gateway.access.guests.rights import NotForGuests
from services.gateway.access.memory_modes import memory_mode
from services.gateway.backends import Backends
from services.gateway.errors import StreamInterrupted
from services.gateway.models import RunEvent
from services.gateway.problems import problem
from services.gateway.streams.events import interrupted
from services.gateway.streams.following import ReattachPolicy, follow
from services.gateway.streams.sse import EventStream, ServerSentEvent, of_run


def started(services: Backends, request: StartRunRequest) -> AsyncIterator[RunEvent]:
    """A new run's events to the last one, across broken streams. What the caller's API key says of guard and memory holds on every
    route. Raises NotForGuests for a guest who brings a model: anybody could have this installation call any address."""
    if request.HasField("model_credentials") and is_guest(current_principal().subject):
        raise NotForGuests("guests are answered by the installation's model; leave `model` out, or sign in")
    request.guard = stricter_guard(request.guard, current_principal().guard)
    request.memory = memory_mode(request.memory)
    log = services.run_log
    return follow(log.start(request), log.attach, run_id="", after_seq=0, policy=policy(services))


def policy(services: Backends) -> ReattachPolicy:
    """How long a broken stream is taken up again."""
    return ReattachPolicy(give_up_after_s=services.settings.reattach_for_s)


async def run_stream(events: AsyncIterator[RunEvent], services: Backends) -> EventStream:
    """The answer to a question as events. Waits for the first, so that a run that cannot start is an HTTP error."""
    first = await first_event(events)
    return EventStream(
        sse_events(first, events),
        ping_interval_s=services.settings.ping_interval_s,
        closing=services.closing,
        headers={"X-Run-Id": first.run_id},
    )


async def first_event(events: AsyncIterator[RunEvent]) -> RunEvent:
    """The first event of a run. Raises why the run cannot start."""
    first = await anext(events, None)
    if first is None:
        raise Internal("the orchestrator ended the run's stream before its first event; ask again")
    return first


async def sse_events(first: RunEvent, events: AsyncIterator[RunEvent]) -> AsyncIterator[ServerSentEvent]:
    """Encodes `first` and the events after it. A stream that was lost ends in an `error` event that says how to resume."""
    async with aclosing(events):  # type: ignore[type-var] # `follow` is an async generator
        yield of_run(first)
        async for each in sse_events_after(events, first.run_id, first.seq):
            yield each


async def sse_events_after(events: AsyncIterator[RunEvent], run_id: str, seq: int) -> AsyncIterator[ServerSentEvent]:
    """Encodes the events after `seq`, the last event that the client has."""
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
