"""Who is told of what the guard sees while the code in hand is at work: the run that it works on."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from services.orchestrator.log.events import Safety
from services.orchestrator.metrics import SAFETY

Tell = Callable[[Safety], Awaitable[None]]
_tell: ContextVar[Tell | None] = ContextVar("tell_of_safety", default=None)


@contextmanager
def told_to(tell: Tell) -> Iterator[None]:
    """Within the block what is seen is told to `tell`."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


async def say(seen: Safety) -> None:
    """Counts what was seen, and tells the run of it where there is one."""
    SAFETY.labels(seen.place, seen.kind, seen.action).inc()
    if (tell := _tell.get()) is not None:
        await tell(seen)
