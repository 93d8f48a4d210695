"""What an MCP server asks for in the middle of a call: words of a model (sampling), or of the user (elicitation). Nobody waits for
either within the call: it is broken off with the question, and made again with the answer. An answer is given to the very question
that a person has seen."""

import asyncio
import json
import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from mcp.client.session import ClientRequestContext
from mcp_types import (
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    TextContent,
)

from kit.json_schema import SchemaRefused, first_violation
from services.tools.calling.bounds import shortened
from services.tools.errors import InputNeeded
from services.tools.models import Need, ToolAnswer
from services.tools.sources.remote_tools import checked, digest_of

SAMPLING, ELICITATION = "sampling", "elicitation"
_CHARACTERS_MAX = 20_000
_MESSAGE_CHARACTERS_MAX = 1000
_FIELDS_MAX = 20
_SECRETS = re.compile(r"pass.?(word|phrase|wd|code)|secret|token|api.?key|credential|cvv|^pin$", re.IGNORECASE)
"""In the name of a field. The specification forbids servers to ask for such things."""
_NO = "-"
"""What the user answers to refuse; a run's input is never empty."""
_CHANGES = "only tools that change nothing may ask"
T = TypeVar("T")


class Asking:
    """The questions of one call."""

    def __init__(self, server: str, answers: Sequence[ToolAnswer] | None, *, sampling_tokens: int) -> None:
        """Without `answers` every question is refused."""
        self._server = server
        self._may_ask = answers is not None
        self._answers = {each.digest: each for each in answers or ()}
        self._sampling_tokens = sampling_tokens
        self._open: asyncio.Future[Need] = asyncio.get_running_loop().create_future()

    async def result_of(self, call: Awaitable[T]) -> T | None:
        """What the call returns; None as soon as the server asks what is not answered yet."""
        calling = asyncio.ensure_future(call)
        either: set[asyncio.Future[Any]] = {calling, self._open}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return None if self._open.done() else await calling
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)

    def require_answered(self) -> None:
        """Raises InputNeeded for a question without an answer."""
        if self._open.done():
            raise InputNeeded(self._open.result(), self._server)

    async def sample(
        self, _: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """The model's words. Text alone is passed on, and nothing of the run."""
        if not self._may_ask:
            return _refused(_CHANGES)
        messages = [
            {"role": each.role, "text": "\n".join(b.text for b in each.content_as_list if isinstance(b, TextContent))}
            for each in params.messages
        ]
        content = {
            "system": params.system_prompt or "",
            "messages": messages,
            "max_tokens": min(params.max_tokens, self._sampling_tokens),
        }
        if len(json.dumps(content)) > _CHARACTERS_MAX or not any(each["text"] for each in messages):
            return _refused("the request is too long, or has no text")
        answer = await self._answer(SAMPLING, content)
        said = TextContent(type="text", text=answer.text)
        return CreateMessageResult(role="assistant", content=said, model=answer.model, stop_reason="endTurn")

    async def elicit(self, _: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """The user's words, as the fields that the server wants."""
        if not self._may_ask:
            return _refused(_CHANGES)
        if not isinstance(params, ElicitRequestFormParams):
            return _refused("users are sent to no address")
        try:
            schema = checked(params.requested_schema)
        except ValueError as error:
            return _refused(str(error))
        fields = schema.get("properties") or {}
        if not 0 < len(fields) <= _FIELDS_MAX:
            return _refused(f"its schema has no fields, or more than {_FIELDS_MAX}")
        if any(_SECRETS.search(str(each)) for each in fields):
            return _refused("users are not asked for secrets")
        content = {"message": shortened(params.message, _MESSAGE_CHARACTERS_MAX), "fields": _described(schema)}
        answer = await self._answer(ELICITATION, content)
        given = _given(answer.text, schema)
        return ElicitResult(action="accept", content=given) if given else ElicitResult(action="decline")

    async def _answer(self, kind: str, content: Mapping[str, Any]) -> ToolAnswer:
        digest = digest_of({"kind": kind, **content})
        if digest not in self._answers:
            if not self._open.done():
                self._open.set_result(Need(kind, digest, content))
            await asyncio.get_running_loop().create_future()  # the call is broken off
        return self._answers[digest]


def _refused(why: str) -> ErrorData:
    return ErrorData(code=INVALID_REQUEST, message=f"refused: {why}")


def _described(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields for a person."""
    described = []
    for name, each in schema["properties"].items():
        about = each if isinstance(each, dict) else {}
        said = shortened(str(about.get("description") or about.get("title") or ""), _MESSAGE_CHARACTERS_MAX)
        described.append({"name": str(name)[:100], "type": str(about.get("type", "")), "about": said})
    return described


def _given(text: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The user's text as the fields: of one field its value, of several a JSON object. None where it does not fit."""
    properties = schema["properties"]
    if text.strip() in ("", _NO):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if not isinstance(value, dict) and len(properties) == 1:
        (name,) = properties
        value = {name: text if properties[name].get("type") == "string" else value}
    cleaned = {"type": "object", "properties": properties, "required": schema.get("required") or []}
    try:
        return value if isinstance(value, dict) and first_violation(cleaned, value) is None else None
    except SchemaRefused:
        return None
