"""Reports what the guard finds to the run that the present code works on."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from services.orchestrator.log.events import Safety
from services.orchestrator.metrics import SAFETY

Tell = Callable[[Safety], Awaitable[None]]
_tell: ContextVar[Tell | None] = ContextVar("tell_of_safety", default=None)


@contextmanager
def report_safety_to(tell: Tell) -> Iterator[None]:
    """Within the block, findings go to `tell`, each once: several steps may read the same passage."""
    said: set[Safety] = set()

    async def tell_once(seen: Safety) -> None:
        if seen not in said:
            said.add(seen)
            await tell(seen)

    token = _tell.set(tell_once)
    try:
        yield
    finally:
        _tell.reset(token)


async def report_safety(seen: Safety) -> None:
    """Counts a finding and reports it to the run, if there is one."""
    SAFETY.labels(seen.place, seen.kind, seen.action).inc()
    if (tell := _tell.get()) is not None:
        await tell(seen)
