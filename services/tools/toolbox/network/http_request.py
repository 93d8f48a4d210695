"""Writes to an HTTP server that the operator has listed, once and with a person's approval. The request carries an Idempotency-Key
(draft-ietf-httpapi-idempotency-key-header), so that a server that knows them can tell a second one."""

import json as json_format
from typing import Any

from services.tools.adapters.http.http_servers import TIMEOUT_S, URL_CHARACTERS_MAX, Request, ask, is_set_up
from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Effect, Policy, ToolOutput
from services.tools.settings import ToolsSettings

BODY_CHARACTERS_MAX = 100_000
SCHEMA = {
    "type": "function",
    "function": {
        "name": "http_request",
        "description": (
            "Sends data to a web address of a host that this installation allows, or deletes there. A person is asked before each "
            "one. To read, use http_get."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "method": {"type": "string", "enum": ["POST", "PUT", "PATCH", "DELETE"]},
                "url": {"type": "string", "minLength": 8, "maxLength": URL_CHARACTERS_MAX},
                "json": {"type": ["object", "array"], "description": "The body, as JSON; or else text."},
                "text": {"type": "string", "maxLength": BODY_CHARACTERS_MAX, "description": "The body, as plain text."},
            },
            "required": ["method", "url"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=TIMEOUT_S,
    parallel_safe=False,
    needs_approval=True,
    effect=Effect.ONCE,
    called_for_by=(
        r"\b(?:post|put|patch)\b[\s\S]{0,200}https?://|https?://[\s\S]{0,200}\b(?:post|put|patch)\b",
        r"\bwebhook|\bhttp (?:post|put|patch|delete)\b|\bsubmit\b[\s\S]{0,60}\b(?:api|form|url)\b",
    ),
)
NEEDS = "set GROUNDWORK_TOOLS_HTTP_HOSTS to the hosts that may be asked"


def is_available(settings: ToolsSettings) -> bool:
    """Whether there is a host to ask."""
    return is_set_up(settings)


async def http_request(
    method: str, url: str, json: Any = None, text: str | None = None, *, context: ToolContext
) -> ToolOutput:
    """Status and text of the answer; a redirect is reported, not followed. Raises HttpFailed and CallInDoubt."""
    headers = {"Idempotency-Key": context.outward_id()}
    body = b""
    if text is not None and json is not None:
        raise ToolError("the body is either json or text, not both", reason="INVALID_ARGUMENTS")
    if text is not None:
        headers["Content-Type"], body = "text/plain; charset=utf-8", text.encode()
    elif json is not None:
        headers["Content-Type"], body = "application/json", _encoded(json)
    answer = await ask(Request(method, url, body, headers), context.settings, follow=False, repeatable=False)
    return ToolOutput(answer.content(), answer.summary())


def _encoded(value: Any) -> bytes:
    body = json_format.dumps(value, ensure_ascii=False)
    if len(body) > BODY_CHARACTERS_MAX:
        raise ToolError(f"the body has {len(body)} characters; at most {BODY_CHARACTERS_MAX}", reason="BODY_TOO_LARGE")
    return body.encode()
