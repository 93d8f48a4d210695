"""What kind of thing an id in a request is of, told by the name of its field; and what may be told of it to whom."""

import re
from dataclasses import dataclass
from typing import Any

from kit.access.principal import ADMIN, OPERATOR, Principal
from kit.testing.harness import USER_SCOPES

BY_NAME = {
    "collection_id": "collection",
    "collection_ids": "collection",
    "vector_store_ids": "collection",
    "vector_store_id": "collection",
    "file_id": "document",
    "file_ids": "document",
    "files": "document",
    "after": "document",
    "after_document_id": "document",
    "id": "collection",  # of a new one
    "document_id": "document",
    "document_ids": "document",
    "revision_id": "revision",
    "chunk_id": "chunk",
    "chunk_ids": "chunk",
    "dead_letter_id": "dead letter",
    "source_id": "source",
    "thread_id": "thread",
    "message_id": "message",
    "fact_id": "fact",
    "fact_ids": "fact",
    "item_id": "fact",
    "item_ids": "fact",
    "group": "thread",
    "groups": "thread",
    "run_id": "run",
    "quiz_id": "run",
    "caller": "run",
    "previous_run_id": "run",
    "response_id": "response",
    "previous_response_id": "response",
    "call_id": "call",
    "approval_id": "approval",
    "idempotency_key": "key",
    "idempotency-key": "key",
    "page_token": "page token",
    "subject": "subject",
    "tenant_id": "tenant",
    "key_id": "api key",
}
"""A field or parameter of one of these names holds an id of that kind."""

NO_IDS = frozenset(
    {
        *(
            "name",
            "title",
            "text",
            "question",
            "message",
            "query",
            "queries",
            "must",
            "must_phrases",
            "memory",
            "style",
            "mode",
            "encoding",
            "heading",
            "agent",
            "modalities",
            "challenge",
            "solution",
        ),
        *(
            "metadata",
            "key",
            "value",
            "values",
            "reason",
            "sha256",
            "replaces_sha256",
            "read_at",
            "context",
            "data",
            "arguments",
            "arguments_hash",
            "decision",
        ),
        *(
            "if-match",
            "if_match",
            "if-none-match",
            "last-event-id",
            "operation",
            "provider",
            "model",
            "base_url",
            "api_key",
            "preset",
            "names",
            "tools",
            "allowed_tools",
            "url",
            "server",
            "service",
            "shared",
            "secret",
            "account",
            "login",
            "tool",
            "digest",
        ),
        *(
            "redirect_uri",
            "client_id",
            "client_secret",
            "scope",
            "state",
            "code",
            "iss",
            "issuer",
        ),  # of a login elsewhere
        *(
            "since",
            "until",
            "expires_at",
            "group_by",
            "document_name",
            "heading_path",
            "support_status",
            "answer_status",
            "method",
            "language",
            "languages",
            "run_status",
            "date_from",
            "date_to",
            "effort",
            "answer",
            "format",
            "verify",
            "guard",
            "lane",
            "channel",
            "question_id",
            "artefact_id",
            "given",
            "graded_by",
            "author",
            "date",
        ),
        # Verdicts on an answer.
        *("sentence", "verdict"),
        # Of OpenAI's API.
        *(
            "role",
            "type",
            "content",
            "input",
            "reasoning_effort",
            "stop",
            "instructions",
            "function_choice",
            "tool_choice",
            "tool_call_id",
            "functions",
            "parameters",
            "answer_schema",
            "description",
            "output",
            "conversation",
            "schema",
            "purpose",
            "order",
            "filter",
            "filters",
            "batch_id",
            "batch",
        ),
        *("attributes", "encoding_format", "input_type"),
        # Of what a run has made: an artefact's id names it within its run.
        *("artefact_id", "kind", "path", "outline", "body"),
        *("embedding_model", "vectors", "embedded_text", "texts", "passages", "query_text"),
        *(
            "with_past",
            "kind",
            "valid_to",
            "paused",
            "everything",
            "forget",
            "source",
            "said",
            "change",
            "summary",
            "message_text",
        ),
        # Of a limit: whose it is names users of the caller's own tenant, whoever they are.
        *("whose", "what", "per"),
        # Of a document's access list, likewise.
        *("subjects",),
        # Of a source.
        *("settings", "secrets", "every_s", "accept_empty"),
        # Of texts, and only services name them: whose text it is cannot be told from them.
        *("content_hash", "content_hashes"),
    }
)
"""Fields and parameters that hold words, and ids of nothing that belongs to anybody."""

UNKNOWN = {
    "collection": "nobodys",
    "document": "0a" * 16,
    "revision": "1a" * 16,
    "chunk": "2a" * 16,
    "dead letter": "3a" * 16,
    "source": "9a" * 16,
    "thread": "0a0b0c0d0e0f",
    "message": f"{'4a' * 16}-question",
    "fact": "8a" * 16,
    "run": "5a" * 16,
    "response": f"resp_{'5a' * 16}",
    "call": f"{'5a' * 16}/step1/call1",
    "approval": f"{'5a' * 16}-0a0b0c0d0e0f",
    "key": "nobodys-key",
    "subject": "nobody",
    "tenant": "nobodys",
    "api key": "7a" * 12,
}
"""Of each kind an id that nothing has, of the shape that ids of the kind have."""

OPEN_TO_TENANT = frozenset({"ingest/CreateCollection:collection_id", "POST /v1/collections body:id"})
"""Places at which others of the tenant learn that an id is taken, and nothing else: ids of collections are names that all subjects
of a tenant share."""


@dataclass(frozen=True)
class Stranger:
    """Somebody who must not learn of Ann's things."""

    name: str
    principal: Principal

    def may_know(self, kind: str, place: str) -> bool:
        """Whether it is theirs to know. A subject's name is its own in every tenant, and operators know all tenants and
        their keys."""
        if kind == "subject":
            return self.principal.subject == "ann"
        if kind in ("tenant", "api key") and self.principal.may(OPERATOR):
            return True
        if kind == "tenant":
            return self.principal.tenant_id == "acme"
        return self.principal.tenant_id == "acme" and place in OPEN_TO_TENANT


STRANGERS = (
    Stranger("other_subject", Principal("acme", "bob", USER_SCOPES)),
    Stranger("other_tenant", Principal("umbrella", "ann", USER_SCOPES)),
    Stranger("admin_of_another_tenant", Principal("initech", "root", frozenset({ADMIN}))),
    Stranger("operator_of_another_tenant", Principal("globex", "olga", frozenset({OPERATOR}))),
)


def kind_of(name: str) -> str | None:
    """The kind of id that a field of this name holds; None when it holds none. Fails for a name that nobody has said it of."""
    assert name in BY_NAME or name in NO_IDS, f"is {name!r} an id, and of what? Add it to BY_NAME or to NO_IDS"
    return BY_NAME.get(name)


_MASKS = (
    (r"\bgw_\w+", "<key>"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?", "<time>"),
    (r"\b[0-9a-f]{12,}\b", "<hex>"),
    (r"\d+(?:\.\d+)?(?:e-?\d+)?", "<number>"),
)


_MADE_BY_READING = {"status", "stage", "progress", "error", "report", "revision_id"}
_MADE_BY_SYNCING = {"state", "error", "sync", "next_sync_at", "file_count", "pending_count", "failing_count", "failing"}


def without_progress(answer: Any) -> Any:
    """An answer about a document that was just uploaded, or a source that was just made, as far as it does not follow from how much
    of it has been read by now."""
    if not isinstance(answer, dict):
        return answer
    if "failing_count" in answer:
        return {name: value for name, value in answer.items() if name not in _MADE_BY_SYNCING}
    if not isinstance(document := answer.get("document"), dict):
        return answer
    kept = {name: value for name, value in document.items() if name not in _MADE_BY_READING}
    return {**answer, "document": kept}


def masked(text: str, id_: str) -> str:
    """Without the id that was asked for, and without what differs between any two answers: times, numbers, new ids."""
    text = text.replace(id_, "<id>") if id_ else text
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return text
