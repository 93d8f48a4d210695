"""MCP over HTTP, with the official client: the tools and what they answer, who may call them, and streams that go on elsewhere."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from services.gateway.mcp.resuming import Place
from tests.service.gateway.conftest import Live, Settings, World, over_http
from tests.service.gateway.fakes import RUN_ID, document, event

READING = {"search", "fetch", "ask", "research", "extract", "research_result", "list_collections", "list_documents"}
WRITING = {"upload_document", "cancel_research"}


@pytest.fixture
def live(settings: Settings) -> Live:
    return lambda **changes: over_http(settings(**changes), mcp=True)


@asynccontextmanager
async def connected(http: httpx.AsyncClient) -> AsyncIterator[Client]:
    async with Client(f"{http.base_url}/mcp", raise_exceptions=True) as client:
        yield client


@asynccontextmanager
async def in_a_session(http: httpx.AsyncClient) -> AsyncIterator[ClientSession]:
    """As clients of the protocol's handshake versions do."""
    async with (
        streamable_http_client(f"{http.base_url}/mcp") as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


def said(result: Any) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_tools_say_what_they_change(live: Live) -> None:
    async with live() as http, connected(http) as client:
        tools = (await client.list_tools()).tools
        reading = {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint}
        assert (reading, {tool.name for tool in tools} - reading) == (READING, WRITING)
        assert all(tool.description and "ctx" not in tool.input_schema["properties"] for tool in tools)


async def test_search_and_fetch_answer_as_connectors_expect(live: Live) -> None:
    async with live() as http, connected(http) as client:
        found = await client.call_tool("search", {"query": "notice period"})
        assert found.structured_content == json.loads(said(found))
        (first, *_) = found.structured_content["results"]
        assert set(first) == {"id", "title", "url"}
        fetched = await client.call_tool("fetch", {"id": first["id"]})
        assert fetched.structured_content == json.loads(said(fetched))
        assert set(fetched.structured_content) == {"id", "title", "text", "url", "metadata"}
        assert first["url"] == f"{http.base_url}/passages/{first['id']}"


async def test_ask_tells_its_words_and_then_the_answer_with_its_sources(live: Live) -> None:
    told: list[str] = []

    async def tell(_progress: float, _total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with live() as http, connected(http) as client:
        result = await client.call_tool("ask", {"question": "How long?"}, progress_callback=tell)
    answer = result.structured_content
    assert answer is not None
    assert answer["run_id"] == RUN_ID
    assert answer["status"] == "completed"
    assert answer["sources"][0]["number"] == 1
    assert any("passages found" in each for each in told)
    assert "".join(told).find(answer["answer"][:5]) >= 0


async def test_refusal_of_the_api_is_an_error_for_the_model(live: Live) -> None:
    async with live() as http, connected(http) as client:
        for id_ in ("nothing", "../runs", "a/b"):
            assert (await client.call_tool("fetch", {"id": id_})).is_error
        assert (await client.call_tool("upload_document", {"name": "a.md"})).is_error


async def test_uploaded_text_is_stored_under_its_name(live: Live, world: World) -> None:
    async with live() as http, connected(http) as client:
        arguments = {"name": 'a "b".md', "text": "# Käse", "collection_id": "contracts"}
        result = await client.call_tool("upload_document", arguments)
    assert not result.is_error, said(result)
    assert world.ingest.headers[0].name == 'a "b".md'


async def test_resources_and_prompts_are_those_of_the_caller(live: Live, world: World) -> None:
    async with live() as http, connected(http) as client:
        world.ingest.documents["d0000001"] = document()
        listed = (await client.list_resources()).resources
        assert {str(each.uri).partition("//")[2].partition("/")[0] for each in listed} == {"documents", "runs"}
        run = await client.read_resource(f"groundwork://runs/{RUN_ID}")
        assert json.loads(getattr(run.contents[0], "text"))["id"] == RUN_ID  # noqa: B009 - of one of two kinds
        with pytest.raises(MCPError):
            await client.read_resource("groundwork://runs/" + "0" * 32)
        prompts = (await client.list_prompts()).prompts
        assert "research" in {each.name for each in prompts}
        prompt = await client.get_prompt(prompts[0].name, {"question": "How long?"})
        assert "How long?" in str(prompt.messages[0].content)


async def test_client_that_cancels_stops_the_run(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 2
    followed = asyncio.Event()

    async def follow(_progress: float, _total: float | None, _message: str | None) -> None:
        followed.set()

    async with live() as http, in_a_session(http) as session:
        call = asyncio.create_task(session.call_tool("research", {"question": "How long?"}, progress_callback=follow))
        await followed.wait()
        call.cancel()
        await world.orchestrator.was_cancelled.wait()
        assert world.orchestrator.cancelled == [RUN_ID]


async def test_research_in_the_background_answers_with_the_run(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 2
    async with live() as http, connected(http) as client:
        begun = await client.call_tool("research", {"question": "How long?", "background": True})
        assert begun.structured_content == {**begun.structured_content, "run_id": RUN_ID, "status": "running"}
        later = await client.call_tool("research_result", {"run_id": RUN_ID})
        assert later.structured_content is not None
        assert later.structured_content["run_id"] == RUN_ID
        assert not world.orchestrator.cancelled
        stopped = await client.call_tool("cancel_research", {"run_id": RUN_ID})
        assert not stopped.is_error
        assert world.orchestrator.cancelled == [RUN_ID]


async def test_extract_answers_with_a_table_and_where_each_value_stands(live: Live, world: World) -> None:
    body = {"columns": ["document", "total"], "rows": [["a.pdf", 90.5]]}
    table = run_pb.Artefact(artefact_id="rows", kind="table", title="Extracted fields")
    table.body.update(body)
    table.items.add(path="/rows/0/1", citations=[1])
    table.citations.add(number=1, document_id="d0000001", document_name="a.pdf", chunk_id="c1", text="Total 90.50")
    world.orchestrator.log[-1:-1] = [event(8, artefact=table)]
    world.orchestrator.log[-1].seq = 9
    schema = {"type": "object", "properties": {"total": {"type": "number"}}}
    async with live() as http, connected(http) as client:
        result = await client.call_tool("extract", {"schema": schema, "collection_id": "contracts"})
        assert (await client.call_tool("extract", {"schema": {"type": "object"}})).is_error
    assert result.structured_content is not None
    (read,) = result.structured_content["tables"]
    assert {name: read[name] for name in body} == body
    assert read["cells"] == [{"path": "/rows/0/1", "sources": [1]}]
    assert read["sources"][0]["id"] == "c1"
    (asked,) = world.orchestrator.requests
    assert (asked.agent, list(asked.collection_ids), json.loads(asked.question)) == (
        "extraction",
        ["contracts"],
        schema,
    )


async def test_command_serves_the_same_over_standard_input(live: Live) -> None:
    async with live() as http:
        environment = {"GROUNDWORK_URL": str(http.base_url), "PYTHONPATH": os.pathsep.join(sys.path)}
        program = "import sys; from cli.main import app; app(args=sys.argv[1:])"
        command = StdioServerParameters(command=sys.executable, args=["-c", program, "mcp"], env=environment)
        async with Client(command) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == READING | WRITING
            answer = await client.call_tool("ask", {"question": "How long?"})
            assert answer.structured_content is not None
            assert answer.structured_content["run_id"] == RUN_ID


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
ASK = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {"name": "ask", "arguments": {"question": "How long?"}, "_meta": {"progressToken": "p"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25"}


async def begin(http: httpx.AsyncClient) -> dict[str, str]:
    """The headers of a new session."""
    response = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
    return {**ACCEPT, "Mcp-Session-Id": response.headers["mcp-session-id"]}


def events_of(text: str) -> list[tuple[str, Any]]:
    """Ids and messages of a stream."""
    found = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if fields.get("data"):
            found.append((fields.get("id", ""), json.loads(fields["data"])))
    return found


async def test_broken_stream_goes_on_at_another_gateway(live: Live) -> None:
    async with live() as first, live() as second:
        headers = await begin(first)
        told = events_of((await first.post("/mcp", json=ASK, headers=headers)).text)
        middle = next(number for number, (id_, _) in enumerate(told) if Place.read(id_))
        rest = await second.get("/mcp", headers={**headers, "Last-Event-ID": told[middle][0]})
        again = events_of(rest.text)
        assert [message for _, message in again[:-1]] == [message for _, message in told[middle + 1 : -1]]
        (result, before) = (again[-1][1], told[-1][1])
        assert (result["id"], result["result"]["structuredContent"]["run_id"]) == (7, RUN_ID)
        assert before["result"]["structuredContent"]["run_id"] == RUN_ID


async def test_session_of_another_gateway_is_served_and_ended_one_is_not(live: Live) -> None:
    async with live() as first, live() as second:
        headers = await begin(first)
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await second.post("/mcp", json=listing, headers=headers)).status_code == 200
        assert (await second.delete("/mcp", headers=headers)).status_code == 405
        assert (await first.delete("/mcp", headers=headers)).status_code == 200
        assert (await first.post("/mcp", json=listing, headers=headers)).status_code == 404


async def test_page_of_another_site_opens_no_stream(live: Live) -> None:
    async with live() as http:
        headers = {**ACCEPT, "Origin": "https://evil.example"}
        assert (await http.get("/mcp", headers=headers)).status_code == 403
        assert (await http.post("/mcp", json=INITIALIZE, headers=headers)).status_code == 403


async def test_sessions_have_a_bound(live: Live) -> None:
    async with live(mcp_sessions_max=2) as http:
        for _ in range(2):
            await begin(http)
        assert (await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)).status_code == 503


async def test_gateway_without_clients_of_mcp_does_not_load_the_package() -> None:
    program = "import sys, services.gateway.app; sys.exit('mcp' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, env=environment)
    assert await process.wait() == 0


async def test_metadata_names_the_resource(live: Live) -> None:
    issuer = "https://login.example.com"
    async with live(public_url="https://docs.example.com", mcp_authorization_servers=(issuer,)) as http:
        told = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert told["resource"] == "https://docs.example.com/mcp"
        assert told["authorization_servers"] == [issuer]
