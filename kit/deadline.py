"""How long the request in hand may still take. The server interceptor sets it from the caller's deadline; outgoing calls and
everything else that waits take the smaller of their own limit and what is left."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)

MARGIN_S = 0.02
"""Kept back from the time remaining, so that the caller still gets our answer about a callee that ran out of time."""


def set_remaining(seconds: float | None) -> None:
    """Sets the deadline of the current task, in seconds from now. None means no limit."""
    _deadline.set(None if seconds is None else time.monotonic() + seconds)


@contextmanager
def limited_to(seconds: float) -> Iterator[None]:
    """Within the block the deadline is so many seconds from now, whatever it is outside."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def remaining_s() -> float | None:
    """Seconds left, never negative; None when nothing limits this task."""
    deadline = _deadline.get()
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def bounded_timeout_s(own_limit_s: float | None) -> float | None:
    """The smaller of `own_limit_s` and what the request in hand has left minus a margin."""
    left = remaining_s()
    if left is None:
        return own_limit_s
    left = max(0.0, left - MARGIN_S)
    return left if own_limit_s is None else min(own_limit_s, left)


def is_spent() -> bool:
    """Whether the request in hand has no time left to call anybody: a call that just ran out of time took it all."""
    left = remaining_s()
    return left is not None and left <= 2 * MARGIN_S
