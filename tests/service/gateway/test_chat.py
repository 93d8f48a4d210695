"""The general chat: steps as events or as JSON, and runs that wait for a person."""

import asyncio

import httpx
import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb

from kit.errors import InvalidArgument
from tests.service.gateway.conftest import Live, World
from tests.service.gateway.fakes import RUN_ID, run_that_did_not_wait, run_with_tools
from tests.service.gateway.sse_reader import received

JSON = {"Accept": "application/json"}
MESSAGE = {"message": "Mail it"}
MAIL = {"to": "<b>ann@example.org", "retries": 2}
EXPIRES = "2025-06-15T15:06:40.000Z"


async def test_steps_are_streamed_in_their_public_shape(live: Live, world: World) -> None:
    world.orchestrator.log = run_with_tools()
    async with live() as client, client.stream("POST", "/v1/chat", json=MESSAGE) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [each async for each in received(response)]
    assert [each.id for each in events] == [str(seq) for seq in range(1, 12)]
    called, came, asked, parked, decided, _, failed = (each.data for each in events[1:8])
    assert (called["call_id"], called["name"], called["step"]) == (f"{RUN_ID}/search", "search", "round1/search")
    assert str(called["arguments"]) == "{'query': 'notice', 'top_k': 3}", "whole numbers stay whole"
    shown = {"ok": True, "summary": "2 passages of handbook.pdf", "duration_ms": 1500.0, "error": None}
    assert came.items() >= shown.items()
    refused = {"reason": "SMTP_REFUSED", "message": "the server takes no mail; ask its operator"}
    assert (failed["ok"], failed["error"], failed["duration_ms"]) == (False, refused, None)
    assert (asked["approval_id"], asked["run_id"], asked["tool"]) == ("ap1", RUN_ID, "send_email")
    assert (asked["arguments"], asked["arguments_hash"], asked["expires_at"]) == (MAIL, "ab" * 32, EXPIRES)
    assert (asked["decision"], decided["decision"]) == ("pending", "allowed")
    assert (parked["waits_for"], parked["approval_ids"], parked["until"]) == ("approval", ["ap1"], EXPIRES)


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream", "application/json, text/event-stream"])
async def test_answer_is_a_stream_unless_json_alone_is_asked_for(client: httpx.AsyncClient, accept: str) -> None:
    answer = await client.post("/v1/chat", json=MESSAGE, headers={"Accept": accept})
    assert answer.headers["content-type"].startswith("text/event-stream")


async def test_message_is_handed_on_with_tools_collections_and_limits(client: httpx.AsyncClient, world: World) -> None:
    budgets = {"steps": 2, "tool_calls": 5, "parallel_calls": 1, "tokens": 1000, "wall_clock_s": 1.5}
    body = {
        "message": "Hi",
        "thread_id": "0123456789ab",
        "tools": ["search"],
        "collection_ids": ["a", "b"],
        "budgets": budgets,
    }
    await client.post("/v1/chat", json=body)
    (request,) = world.orchestrator.requests
    assert (request.mode, request.question, request.thread_id) == (run_pb.RUN_MODE_CHAT, "Hi", "0123456789ab")
    assert (list(request.tools.names), list(request.collection_ids), request.memory) == (["search"], ["a", "b"], "")
    asked = request.budgets
    assert (asked.reasoning_steps, asked.tool_calls, asked.parallel_calls, asked.tokens) == (2, 5, 1, 1000)
    assert (asked.steps, asked.wall_clock.ToMilliseconds()) == (0, 1500)


@pytest.mark.parametrize(("tools", "named"), [({}, False), ({"tools": None}, False), ({"tools": []}, True)])
async def test_no_tools_named_means_all_and_an_empty_list_none(
    client: httpx.AsyncClient, world: World, tools: dict[str, object], named: bool
) -> None:
    await client.post("/v1/chat", json={"message": "Hi", **tools})
    (request,) = world.orchestrator.requests
    assert (request.HasField("tools"), list(request.tools.names), list(request.collection_ids)) == (named, [], [])


async def test_collection_or_thread_that_is_not_there_is_404_before_a_run_begins(
    client: httpx.AsyncClient, world: World
) -> None:
    for more in ({"collection_ids": ["nope"]}, {"thread_id": "ffffffffffff"}):
        assert (await client.post("/v1/chat", json={"message": "Hi", **more})).status_code == 404
    assert not world.orchestrator.requests


async def test_json_answer_has_what_the_tools_did(client: httpx.AsyncClient, world: World) -> None:
    world.orchestrator.log = run_that_did_not_wait()
    answer = await client.post("/v1/chat", json=MESSAGE, headers=JSON)
    body = answer.json()
    assert (answer.status_code, answer.headers["x-run-id"], body["run_id"]) == (200, RUN_ID, RUN_ID)
    assert (body["status"], body["answer"], body["thread_id"]) == ("completed", "It was not sent.", "0123456789ab")
    search, mail = body["tool_calls"]
    assert (search["name"], search["ok"], search["duration_ms"]) == ("search", True, 1500.0)
    assert (mail["arguments"], mail["ok"], mail["error"]["reason"]) == (MAIL, False, "SMTP_REFUSED")
    assert body["usage"]["tool_calls"] == 2


async def test_json_of_a_run_that_waits_is_202_with_what_is_to_be_decided(
    client: httpx.AsyncClient, world: World
) -> None:
    world.orchestrator.log = run_with_tools()
    world.orchestrator.pause_after = 5
    answer = await client.post("/v1/chat", json=MESSAGE, headers=JSON)
    body = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/runs/{RUN_ID}")
    assert (body["run_id"], body["status"]) == (RUN_ID, "waiting")
    asked = {"id": "ap1", "run_id": RUN_ID, "tool": "send_email", "arguments": MAIL, "arguments_hash": "ab" * 32}
    assert (body["approvals"], body["until"]) == (
        [{**asked, "expires_at": EXPIRES, "is_tainted": False, "tainted_arguments": []}],
        EXPIRES,
    )
    assert [each["name"] for each in body["tool_calls"]] == ["search"]
    assert "POST /v1/approvals/{id}" in body["next"]
    assert f"GET /v1/runs/{RUN_ID}" in body["next"]
    await asyncio.wait_for(world.orchestrator.hung_up.wait(), 30)
    assert not world.orchestrator.cancelled, "nobody stops the run"


async def test_refusal_of_the_orchestrator_is_a_problem_in_both_forms(client: httpx.AsyncClient, world: World) -> None:
    world.orchestrator.start_failure = InvalidArgument("there is no tool teleport", reason="UNKNOWN_TOOL")
    for headers in ({}, JSON):
        answer = await client.post("/v1/chat", json={"message": "Hi", "tools": ["teleport"]}, headers=headers)
        assert (answer.status_code, answer.json()["reason"]) == (400, "UNKNOWN_TOOL")


async def test_run_that_ends_without_an_answer_is_a_problem(client: httpx.AsyncClient, world: World) -> None:
    world.orchestrator.log = [*run_with_tools()[:3], run_with_tools()[-1]]
    world.orchestrator.log[-1].seq = 4
    world.orchestrator.log[-1].done.status = run_pb.RUN_STATUS_TIMEOUT
    answer = await client.post("/v1/chat", json=MESSAGE, headers=JSON)
    assert (answer.status_code, answer.json()["reason"], answer.json()["run_id"]) == (504, "RUN_TIMEOUT", RUN_ID)


async def test_what_was_found_until_the_time_was_over_is_an_answer(client: httpx.AsyncClient, world: World) -> None:
    world.orchestrator.log = run_that_did_not_wait()
    world.orchestrator.log[-1].done.status = run_pb.RUN_STATUS_TIMEOUT
    answer = await client.post("/v1/chat", json=MESSAGE, headers=JSON)
    assert (answer.status_code, answer.json()["status"]) == (200, "timeout")
    assert answer.json()["answer"] == "It was not sent."


async def test_tools_are_listed_with_what_a_call_does(client: httpx.AsyncClient) -> None:
    (mail,) = (await client.get("/v1/tools")).json()["tools"]
    parameters = {"type": "object", "properties": {"to": {"type": "string", "maxLength": 200}}}
    assert mail == {
        "name": "send_email",
        "description": "Sends a mail.",
        "parameters": parameters,
        "effect": "once",
        "needs_approval": True,
        "timeout_s": 5.0,
        "parallel_safe": False,
        "cacheable": False,
    }


async def test_agents_and_modes_are_listed(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/v1/agents")).json()
    assert [(each["name"], each["modes"], each["makes_block"]) for each in listed["agents"]] == [
        ("legal", ["grounded"], True)
    ]
    assert [(each["name"], each["takes_agents"]) for each in listed["modes"]] == [("grounded", True)]


async def test_mode_that_the_contract_does_not_have_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/collections/default/chat", json={"message": "Hello?", "mode": "telepathy"})
    assert (answer.status_code, answer.json()["reason"]) == (400, "MODE_UNKNOWN")
    assert "GET /v1/agents" in answer.json()["detail"]


async def test_json_holds_no_place_of_an_event_stream(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 4
    async with live(max_event_streams=1) as client, client.stream("POST", "/v1/chat", json=MESSAGE):
        refused = await client.post("/v1/chat", json=MESSAGE)
        assert (refused.status_code, refused.json()["reason"]) == (429, "TOO_MANY_EVENT_STREAMS")
        asked = asyncio.create_task(client.post("/v1/chat", json=MESSAGE, headers=JSON))
        world.orchestrator.resume.set()
        assert (await asked).status_code == 200
