"""The MCP tools that answer: ask, research and extract with their progress, and a run's result later."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ProgressNotification, ProgressNotificationParams, ToolAnnotations
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field
from starlette.requests import Request

from kit.vocabulary.run_fold import RUNNING, WAITING, RunFold
from services.gateway.mcp.caller import CallersApi, part, request_of
from services.gateway.mcp.document_tools import READS, Collections
from services.gateway.mcp.own_api import ApiRequest, Refused, RunUpdate
from services.gateway.mcp.results import AnswerSource, AnswerTable, TableCell, ToolAnswer
from services.gateway.models import Json

_log = structlog.get_logger()
_STARTS_RUN = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
"""An answer changes nothing of the user's but the list of runs."""
_STOPS_RUN = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_FOLLOWED_MAX = 4096
_SESSION_HEADER = "mcp-session-id"
RUN_ID_META = "groundwork/run_id"
"""Name of the run's id in the metadata of a progress notification."""

Question = Annotated[str, Field(min_length=1, max_length=8000, description="The question, in plain words.")]
Documents = Annotated[list[str] | None, Field(description="Only these documents, by id; all when left out.")]
Guarding = Annotated[
    Literal["flag", "block"] | None,
    Field(
        description="What becomes of a question that is not safe: the run says so, or it is refused. As set when left out."
    ),
]
Background = Annotated[bool, Field(description="Whether to return at once with the `run_id`, for `research_result`.")]


class RunTools:
    """The tools over the API, and the runs that calls at hand wait for."""

    def __init__(self, api: CallersApi, closing: asyncio.Event) -> None:
        """While `closing` is set an ended call stops no run: the client goes on with another gateway."""
        self._api = api
        self._closing = closing
        self._followed: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._cancelling: set[asyncio.Task[None]] = set()

    def register(self, server: MCPServer[Any]) -> None:
        """Adds the tools to the server."""
        server.add_tool(self.ask, annotations=_STARTS_RUN)
        server.add_tool(self.research, annotations=_STARTS_RUN)
        server.add_tool(self.extract, annotations=_STARTS_RUN)
        server.add_tool(self.research_result, annotations=READS)
        server.add_tool(self.cancel_research, annotations=_STOPS_RUN)

    async def ask(
        self,
        question: Question,
        context: Context[Any, Any],
        collection_ids: Collections = None,
        document_ids: Documents = None,
        agent: Annotated[
            str | None, Field(description="An agent of the prompts; it answers from one collection.")
        ] = None,
        guard: Guarding = None,
    ) -> ToolAnswer:
        """Answers a question from the user's documents. A mark [n] names the source of the statement before it; `support_status`
        says how well the sources carry them. Keep the marks, and name the sources."""
        client = request_of(context)
        body: Json = {"document_ids": document_ids or [], "guard": guard}
        if agent:
            where = (collection_ids or ["default"])[0]
            path, body = f"/v1/collections/{part(where)}/chat", {**body, "message": question, "agent": agent}
        else:
            where_to_look = await self._api.readable(client, collection_ids)
            path, body = "/v1/qa", {**body, "question": question, "collection_ids": where_to_look}
        return await self._follow(context, path, body)

    async def research(
        self,
        question: Question,
        context: Context[Any, Any],
        collection_ids: Collections = None,
        document_ids: Documents = None,
        effort: Annotated[
            Literal["auto", "low", "medium", "high"],
            Field(description="Rounds of searches: one, up to two, up to four."),
        ] = "auto",
        report: Annotated[bool, Field(description="Whether to write a report with sections.")] = False,
        guard: Guarding = None,
        background: Background = False,
    ) -> ToolAnswer:
        """Researches a question that may take several searches: plans, searches in rounds, measures what is covered, and says what
        is missing. Takes up to some minutes and tells its progress."""
        client = request_of(context)
        body = {
            "question": question,
            "collection_ids": await self._api.readable(client, collection_ids),
            "document_ids": document_ids or [],
            "effort": effort,
            "answer": "report" if report else "short",
            "guard": guard,
        }
        return await self._follow(context, "/v1/agent", body, background=background)

    async def extract(
        self,
        schema: Annotated[
            dict[str, Any],
            Field(
                description="JSON Schema of an object: its simple properties are the fields, at most 40, as "
                '{"type": "object", "properties": {"total": {"type": "number", "description": "Sum to be paid"}}}.'
            ),
        ],
        context: Context[Any, Any],
        collection_id: Annotated[str, Field(description="The collection; `default` is the user's own.")] = "default",
        document_ids: Documents = None,
        background: Background = False,
    ) -> ToolAnswer:
        """Reads fields out of documents into `tables`: a row for each document, or for each row of a table in it, with a citation
        for each value. A value that is missing is null. Takes up to some minutes and tells its progress."""
        body = {"schema": schema, "document_ids": document_ids or []}
        return await self._follow(
            context, f"/v1/collections/{part(collection_id)}/extract", body, background=background
        )

    async def research_result(
        self,
        run_id: Annotated[str, Field(description="The `run_id` of an earlier answer.")],
        context: Context[Any, Any],
    ) -> ToolAnswer:
        """Returns what came of a run of `research`, `extract` or `ask`, or that it goes on."""
        try:
            return await self.result_of(request_of(context), part(run_id))
        except Refused as refused:
            raise ToolError(str(refused)) from refused

    async def result_of(self, client: Request, run_id: str) -> ToolAnswer:
        """What came of a run so far. Raises Refused."""
        run = await self._api.own.json(client, "GET", f"/v1/runs/{run_id}")
        answer = run["answer"] or {}
        return self._answer(client, {**answer, "run_id": run_id, "status": run["status"], "error": run["error"]})

    async def cancel_research(
        self,
        run_id: Annotated[str, Field(description="The `run_id` of an earlier answer.")],
        context: Context[Any, Any],
    ) -> ToolAnswer:
        """Stops a run that goes on."""
        client = request_of(context)
        run = await self._api.json(client, "POST", f"/v1/runs/{part(run_id)}/cancel")
        return self._answer(client, {"run_id": run_id, "status": run["status"]})

    async def cancelled(self, context: ServerRequestContext[Any, Any]) -> None:
        """Stops the run of a call that the client has cancelled."""
        if isinstance(context.request, Request) and context.params:
            key = (context.request.headers.get(_SESSION_HEADER, ""), str(context.params.get("requestId")))
            if run_id := self._followed.pop(key, None):
                self._cancel_soon(context.request, run_id)

    async def close(self) -> None:
        """Waits for runs that are being stopped."""
        await asyncio.gather(*self._cancelling, return_exceptions=True)

    async def _follow(
        self, context: Context[Any, Any], path: str, body: Json, *, background: bool = False
    ) -> ToolAnswer:
        """The answer of a new run, whose steps and words are reported as progress."""
        client = request_of(context)
        key = (client.headers.get(_SESSION_HEADER, ""), str(context.request_id))
        fold = RunFold()
        asked = ApiRequest("POST", path, body=json.dumps(body).encode())
        try:
            async with self._api.own.events(client, asked) as events:
                async for event in events:
                    if "seq" not in event.data:  # the gateway's own: the stream was lost
                        break
                    fold.add(event.kind, event.data)
                    self._remember(key, fold.run_id)
                    if background or fold.status == WAITING:
                        break
                    await _tell(context, fold.run_id, event)
        except Refused as refused:
            raise ToolError(str(refused)) from refused
        except asyncio.CancelledError:
            if context.protocol_version in MODERN_PROTOCOL_VERSIONS and fold.run_id and not self._closing.is_set():
                self._cancel_soon(client, fold.run_id)
            raise
        self._followed.pop(key, None)
        return self._answer(client, fold.result())

    def _remember(self, key: tuple[str, str], run_id: str) -> None:
        """Notes which run a call waits for; kept when the call is cut off, for the client's word that it is cancelled."""
        self._followed[key] = run_id
        if len(self._followed) > _FOLLOWED_MAX:
            self._followed.popitem(last=False)

    def _cancel_soon(self, client: Request, run_id: str) -> None:
        task = asyncio.create_task(self._cancel(client, run_id))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def _cancel(self, client: Request, run_id: str) -> None:
        try:
            await self._api.own.json(client, "POST", f"/v1/runs/{run_id}/cancel")
        except Refused as refused:
            _log.warning("mcp_run_not_cancelled", run_id=run_id, error=str(refused))

    def _answer(self, client: Request, result: Mapping[str, Any]) -> ToolAnswer:
        error = result.get("error")
        return ToolAnswer(
            run_id=result["run_id"],
            status=result.get("status") or RUNNING,
            answer=result.get("answer") or result.get("text") or "",
            sources=[self._source(client, each) for each in result.get("citations") or ()],
            support_status=result.get("support_status"),
            ending=result.get("ending") or "",
            conflicts=result.get("conflicts") or [],
            coverage=result.get("coverage"),
            tables=[self._table(client, each) for each in result.get("artefacts") or () if each["kind"] == "table"],
            error=error["message"] if error else None,
        )

    def _table(self, client: Request, artefact: Json) -> AnswerTable:
        return AnswerTable(
            title=artefact["title"],
            columns=artefact["body"]["columns"],
            rows=artefact["body"]["rows"],
            cells=[TableCell(path=each["path"], sources=each["citations"]) for each in artefact["items"]],
            sources=[self._source(client, each) for each in artefact["citations"]],
        )

    def _source(self, client: Request, citation: Json) -> AnswerSource:
        quote = citation["text"][citation["quote_start"] : citation["quote_end"]] or citation["text"]
        return AnswerSource(
            number=citation["number"],
            document_id=citation["document_id"],
            document_name=citation["document_name"],
            page=citation["page"],
            quote=quote,
            id=citation["chunk_id"],
            url=self._api.passage_url(client, citation["chunk_id"]),
        )


async def _tell(context: Context[Any, Any], run_id: str, event: RunUpdate) -> None:
    """Tells the client of a step, if it has asked for progress."""
    request = context.request_context
    token = (request.meta or {}).get("progress_token")
    if token is None or not (message := progress_message(event)):
        return
    notification = progress_notification(run_id, event.data["seq"], token, message)
    await request.session.send_notification(notification, related_request_id=context.request_id)


def progress_notification(run_id: str, seq: int, progress_token: str | int, message: str) -> ProgressNotification:
    """The progress of a call as a notification that can be resumed from."""
    params = ProgressNotificationParams(progress_token=progress_token, progress=seq, message=message)
    return ProgressNotification(params=params.model_copy(update={"meta": {RUN_ID_META: run_id}}))


def progress_message(event: RunUpdate) -> str:
    """An event in words for a person: a step in a sentence, or words of the answer. Empty for other events."""
    data = event.data
    match event.kind:
        case "token" | "thinking":
            return str(data["text"])
        case "plan" if data["queries"]:
            return "Searching: " + "; ".join(data["queries"][:6])
        case "retrieval":
            return f"{len(data['evidence'])} passages found"
        case "coverage" if data["share"] is not None:
            return f"Covered: {data['share']:.0%}"
        case "tool":
            return f"Calling {data['name']}"
        case _:
            return ""
