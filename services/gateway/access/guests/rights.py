"""What guests may ask for: a list, so that a new route is closed to them until somebody puts it here."""

import re

from starlette.types import Scope

from kit.errors import PermissionDenied
from services.gateway.serving.requests import method_of

GUEST_ROUTES = (
    ("GET", "/v1/me"),
    ("GET", "/v1/limits"),
    ("GET", "/v1/usage"),
    ("GET", "/v1/tools"),
    ("GET", "/v1/agents"),
    ("GET", "/v1/approvals"),
    ("POST", "/v1/search"),
    ("GET", "/v1/chunks/{chunk_id}"),
    ("POST", "/v1/qa"),
    ("POST", "/v1/agent"),
    ("POST", "/v1/chat"),
    ("POST", "/v1/collections/{collection_id}/chat"),
    ("POST", "/v1/collections/{collection_id}/extract"),
    ("GET", "/v1/runs"),
    ("GET", "/v1/runs/{run_id}"),
    ("DELETE", "/v1/runs/{run_id}"),
    ("GET", "/v1/runs/{run_id}/report"),
    ("GET", "/v1/runs/{run_id}/events"),
    ("POST", "/v1/runs/{run_id}/cancel"),
    ("POST", "/v1/runs/{run_id}/input"),
    ("GET", "/v1/threads"),
    ("POST", "/v1/threads"),
    ("GET", "/v1/threads/{thread_id}"),
    ("PATCH", "/v1/threads/{thread_id}"),
    ("DELETE", "/v1/threads/{thread_id}"),
    ("GET", "/v1/threads/{thread_id}/export"),
    ("GET", "/v1/threads/{thread_id}/quizzes/{quiz_id}"),
    ("POST", "/v1/threads/{thread_id}/quizzes/{quiz_id}/answers"),
    ("GET", "/v1/memory/facts"),
    ("GET", "/v1/memory/facts/{fact_id}"),
    ("PATCH", "/v1/memory/facts/{fact_id}"),
    ("DELETE", "/v1/memory/facts/{fact_id}"),
    ("GET", "/v1/memory/summary"),
    ("POST", "/v1/memory/pause"),
    ("GET", "/v1/memory/export"),
    ("POST", "/v1/memory/search"),
    ("POST", "/v1/memory/forget"),
    ("GET", "/v1/events"),
    ("GET", "/v1/collections"),
    ("GET", "/v1/collections/{collection_id}"),
    ("GET", "/v1/collections/{collection_id}/documents"),
    ("POST", "/v1/collections/{collection_id}/documents"),
    ("GET", "/v1/documents/{document_id}"),
    ("DELETE", "/v1/documents/{document_id}"),
    ("GET", "/v1/documents/{document_id}/revisions"),
    ("GET", "/v1/documents/{document_id}/content"),
    ("GET", "/v1/documents/{document_id}/events"),
)
"""By method and path. Not here is what others would notice (sharing, approvals that send something), what lasts (collections,
sources, connections, keys), and what the console does not need (MCP, voice, OpenAI's API)."""
_ALLOWED = [(method, re.compile(re.sub(r"\{[a-z_]+\}", "[^/]+", path))) for method, path in GUEST_ROUTES]


class NotForGuests(PermissionDenied):
    """Guests may not do this."""

    reason = "NOT_FOR_GUESTS"


def require_for_guests(scope: Scope) -> None:
    """Raises NotForGuests."""
    method, path = method_of(scope), scope["path"]
    if method == "HEAD":
        method = "GET"
    if not any(method == allowed and pattern.fullmatch(path) for allowed, pattern in _ALLOWED):
        raise NotForGuests("guests may search, ask and upload; sign in for all else")
