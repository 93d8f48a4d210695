"""What the toolbox needs from outside."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.tools.models import ToolOutcome


@dataclass(frozen=True)
class NotedCall:
    """A call that was begun, and what came of it, if that is known."""

    fingerprint: str
    """Digest of tool and arguments: a call id stands for one call. Empty when the note cannot be read."""
    begun_at: datetime
    outcome: ToolOutcome | None = None
    forgotten: bool = False
    """Whether its outcome was erased, with the run that it was a part of. Nothing is noted of it again."""


class CallStore(Protocol):
    """Calls by tenant and call id. Raises Unavailable."""

    async def begin(self, tenant_id: str, call_id: str, call: NotedCall) -> NotedCall | None:
        """Notes that a call is about to be made. None when it was noted; what is noted already when there is something, which is
        `forgotten` when its caller is."""
        ...

    async def get(self, tenant_id: str, call_id: str) -> NotedCall | None: ...

    async def end(self, tenant_id: str, call_id: str, call: NotedCall) -> None:
        """Notes what came of it, unless it is forgotten."""
        ...

    async def forget(self, tenant_id: str, caller: str) -> None:
        """Erases what came of the calls whose ids begin with `caller`, up to a slash, and refuses those that still arrive. Harmless
        when repeated."""
        ...


class Retriever(Protocol):
    """Passages of the tenant's documents."""


class ModelServer(Protocol):
    """Embeddings and rerank scores."""


class Documents(Protocol):
    """Documents and collections: the ingest service."""
