"""How the tests of the model port ask."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from kit.llm import (
    ChatMessage,
    Delta,
    Finish,
    LanguageModel,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
)
from kit.llm.endpoint.endpoint import Endpoint, EndpointConfig, open_endpoint
from kit.testing.openai import Reply, ScriptedModel, scripted_model

QUESTION = Request([ChatMessage("user", "hello")], max_tokens=16)
SEARCH = ToolSpec(
    "search",
    "Searches the documents.",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
TOOL_QUESTION = replace(QUESTION, tools=(SEARCH,))


@asynccontextmanager
async def asked(*replies: Reply, **config: Any) -> AsyncIterator[tuple[ScriptedModel, Endpoint]]:
    """A scripted server and an endpoint to it."""
    async with scripted_model(*replies) as script:
        settings = EndpointConfig(**{"base_url": script.base_url, "model": "m", "api_key": "secret-key", **config})
        async with open_endpoint(settings) as endpoint:
            yield script, endpoint


async def answer(endpoint: LanguageModel, request: Request = QUESTION) -> list[Delta]:
    return [delta async for delta in endpoint.complete(request)]


async def answer_to(*replies: Reply, request: Request = QUESTION, **config: Any) -> list[Delta]:
    """The deltas of the first completion."""
    async with asked(*replies, **config) as (_, endpoint):
        return await answer(endpoint, request)


def text_of(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def thought_of(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))


def finish_of(deltas: Sequence[Delta]) -> Finish:
    *others, finish = deltas
    assert isinstance(finish, Finish)
    assert not [delta for delta in others if isinstance(delta, Finish)]
    return finish


def calls_of(deltas: Sequence[Delta]) -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call, put together as the port's contract says."""
    calls: dict[int, tuple[str, str, str]] = {}
    for delta in deltas:
        if isinstance(delta, ToolCallDelta):
            call_id, name, arguments = calls.get(delta.index, (delta.call_id, delta.name, ""))
            calls[delta.index] = (call_id, name, arguments + delta.arguments)
    return list(calls.values())
