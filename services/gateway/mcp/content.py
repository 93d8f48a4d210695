"""Resources and prompts: documents and runs to read, and the agents to ask."""

import json
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, Resource, TextContent
from starlette.requests import Request

from services.gateway.mcp.caller import CallersApi, part, request_of
from services.gateway.mcp.own_api import ApiRequest, Refused
from services.gateway.models import Json

_DOCUMENTS = "groundwork://documents/"
_RUNS = "groundwork://runs/"
_LISTED_DOCUMENTS, _LISTED_RUNS = 100, 20
_FILE_BYTES_MAX = 1_000_000
_QUESTION = [PromptArgument(name="question", description="The question.", required=True)]
_RESEARCH = "research"
T = TypeVar("T")


class Content:
    """What can be read, over the API."""

    def __init__(self, api: CallersApi) -> None:
        self._api = api

    def register(self, server: MCPServer[Any]) -> None:
        """Adds the templates of resources to the server."""
        server.resource(
            _DOCUMENTS + "{document_id}",
            name="document",
            description="A document as it was uploaded, up to 1 MB; else what is known of it.",
        )(self.document)
        server.resource(
            _RUNS + "{run_id}",
            name="run",
            description="A question, its answer, and what speaks for it.",
            mime_type="application/json",
        )(self.run)

    async def resources(self, client: Request) -> Sequence[Resource]:
        """The newest documents of the client's own collection, and the newest runs."""
        query = {"page_size": _LISTED_DOCUMENTS}
        documents = await self._api.json(client, "GET", "/v1/collections/default/documents", query=query)
        runs = await self._api.json(client, "GET", "/v1/runs", query={"page_size": _LISTED_RUNS})
        return [
            *(
                Resource(uri=_DOCUMENTS + each["id"], name=each["name"], size=each["size_bytes"])
                for each in documents["documents"]
            ),
            *(
                Resource(uri=_RUNS + each["id"], name=each["question"][:80], mime_type="application/json")
                for each in runs["runs"]
            ),
        ]

    async def document(self, document_id: str, context: Context[Any, Any]) -> str | bytes:
        """The text of a text file, the bytes of another, or what is known of one that is too large."""
        client = request_of(context)
        path = f"/v1/documents/{part(document_id)}"
        known = await _read(self._api.own.json(client, "GET", path))
        if known["size_bytes"] > _FILE_BYTES_MAX:
            return json.dumps(known)
        content, _ = await _read(self._api.own.content(client, ApiRequest("GET", f"{path}/content")))
        try:
            return content.decode() if known["media_type"].startswith("text/") else content
        except UnicodeDecodeError:
            return content

    async def run(self, run_id: str, context: Context[Any, Any]) -> str:
        """The run as the API tells it."""
        return json.dumps(await _read(self._api.own.json(request_of(context), "GET", f"/v1/runs/{part(run_id)}")))

    async def prompts(self, client: Request) -> Sequence[Prompt]:
        """One for each agent, and one for research."""
        agents = await self._agents(client)
        about_research = "Research a question in several rounds of searches."
        return [
            *(
                Prompt(name=each["name"], description=each["description"], arguments=_QUESTION)
                for each in agents
                if each["name"] != _RESEARCH
            ),
            Prompt(name=_RESEARCH, description=about_research, arguments=_QUESTION),
        ]

    async def prompt(self, client: Request, name: str, question: str) -> GetPromptResult:
        """What to tell the assistant's model. Raises ValueError for an unknown name."""
        if not question.strip():
            raise ValueError("the prompt needs a `question`")
        if name == _RESEARCH:
            call = "Call the tool `research` with this question"
        elif any(name == each["name"] for each in await self._agents(client)):
            call = f"Call the tool `ask` with this question and the agent `{name}`"
        else:
            raise ValueError(f"there is no prompt {name!r:.80}; list the prompts again")
        text = f"{call}. Answer with what it says, keep its citation marks, and list the sources below.\n\n{question}"
        return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))])

    async def _agents(self, client: Request) -> list[Json]:
        listed = await self._api.json(client, "GET", "/v1/agents")
        agents: list[Json] = listed["agents"]
        return agents


async def _read(answer: Awaitable[T]) -> T:
    """What the API answers. Raises ResourceError."""
    try:
        return await answer
    except Refused as refused:
        kind = ResourceNotFoundError if refused.status == 404 else ResourceError
        raise kind(str(refused)) from refused
    except ToolError as error:
        raise ResourceError(str(error)) from error
