"""The wrappers that every source of tools gets, in their order:

    allowed → scoped → approval → cached → breaker → turn → size of the output → failures explained → the sources

A source's own deadline is around that source: see `limits.Deadline`. Whether a call was made before is asked in front of all of
them, by `calling/execution.py`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from kit.breaker import CircuitBreaker
from services.tools.sources.failures import Explained, LeftAlone
from services.tools.sources.limits import Bounded, InTurn, Turns
from services.tools.sources.permissions import Allowed, ApprovalRequired, Scoped
from services.tools.sources.result_cache import Cached
from services.tools.sources.source import Combined, ToolSource


def guarded(
    sources: Sequence[ToolSource],
    turns: Turns,
    *,
    allowed: Mapping[str, Collection[str]] | None = None,
    need_approval: Collection[str] = (),
    breaker: Callable[[], CircuitBreaker] = CircuitBreaker,
) -> ToolSource:
    """All sources as one, with its wrappers. `allowed` names the tools of tenants that may not use all."""
    inside = InTurn(Bounded(Explained(Combined(sources))), turns)
    asked = ApprovalRequired(Cached(LeftAlone(inside, breaker)), need_approval)
    return Allowed(Scoped(asked), allowed or {})
