"""Event streams: ids, resuming, and going on when what is behind them dies."""

import asyncio
from contextlib import AsyncExitStack

import httpx
import pytest
from groundwork.ingest.v1 import ingest_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb

from kit.errors import Internal, InvalidArgument
from tests.service.gateway.conftest import Live, World
from tests.service.gateway.fakes import NATS_DOWN, RUN_ID, document
from tests.service.gateway.sse_reader import ids, received

QUESTION = {"question": "How long?", "collection_ids": ["default"]}
SSE = {"Accept": "text/event-stream"}
ALL = [str(seq) for seq in range(1, 9)]


async def test_qa_streams_the_runs_events_with_their_seq_as_id(live: Live) -> None:
    async with live() as client, client.stream("POST", "/v1/qa", json=QUESTION, headers=SSE) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["x-run-id"] == RUN_ID
        events = [each async for each in received(response)]
    assert [each.id for each in events] == ALL
    kinds = ["run", "retrieval", "thinking", "token", "token", "answer", "usage", "done"]
    assert [each.event for each in events] == kinds
    assert events[0].data["mode"] == "qa"
    assert events[3].data["offset"] == 0
    at = "2025-06-15T15:06:40.000Z"
    assert events[-1].data == {"run_id": RUN_ID, "seq": 8, "at": at, "step": "", "status": "completed"}


async def test_chat_streams_with_thread_and_agent(live: Live, world: World) -> None:
    message = {"message": "And then?", "thread_id": "0123456789ab", "agent": "auto"}
    async with live() as client, client.stream("POST", "/v1/collections/contracts/chat", json=message) as response:
        assert await ids(response) == ALL
    request = world.orchestrator.requests[0]
    assert request.mode == run_pb.RUN_MODE_GROUNDED
    assert (request.question, request.thread_id, request.agent) == ("And then?", "0123456789ab", "auto")
    assert list(request.collection_ids) == ["contracts"]


async def test_events_arrive_while_the_run_goes_on(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 4
    async with live() as client, client.stream("POST", "/v1/qa", json=QUESTION, headers=SSE) as response:
        events = received(response)
        assert [(await anext(events)).id for _ in range(4)] == ALL[:4]
        world.orchestrator.resume.set()
        assert [each.id async for each in events] == ALL[4:]


async def test_stream_continues_exactly_once_when_the_orchestrator_is_killed(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 4
    async with live() as client, client.stream("POST", "/v1/qa", json=QUESTION, headers=SSE) as response:
        events = received(response)
        seen = [(await anext(events)).id for _ in range(4)]
        await world.kill()
        world.orchestrator.pause_after = None
        world.orchestrator.repeat_last = True  # even one that repeats itself
        await world.start()
        seen += [each.id async for each in events]
    assert seen == ALL
    assert set(world.orchestrator.attached) == {4}


async def test_json_answer_survives_the_orchestrators_death_too(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 4
    async with live() as client:
        asked = asyncio.create_task(client.post("/v1/qa", json=QUESTION))
        await world.orchestrator.paused.wait()
        await world.kill()
        world.orchestrator.pause_after = None
        await world.start()
        assert (await asked).json()["answer"] == "Four weeks [1]."


async def test_stream_that_cannot_be_taken_up_again_says_how_to_resume(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 4
    async with (
        live(reattach_for_s=0.2, connection_patience_s=0.1) as client,
        client.stream("POST", "/v1/qa", json=QUESTION, headers=SSE) as response,
    ):
        events = received(response)
        for _ in range(4):
            await anext(events)
        await world.kill()
        rest = [each async for each in events]
    assert [(each.event, each.id) for each in rest] == [("error", None)]
    assert rest[0].data["reason"] == "STREAM_INTERRUPTED"
    assert rest[0].data["resume"] == f"/v1/runs/{RUN_ID}/events?after=4"


async def test_json_answer_that_cannot_be_completed_is_503_and_says_how_to_resume(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 4
    async with live(reattach_for_s=0.2, connection_patience_s=0.1) as client:
        asked = asyncio.create_task(client.post("/v1/qa", json=QUESTION))
        await world.orchestrator.paused.wait()
        await world.kill()
        answer = await asked
    assert answer.status_code == 503
    assert answer.json()["after_seq"] == "4"
    assert str(world.port) not in answer.json()["detail"]


@pytest.mark.parametrize("headers", [{}, SSE])
async def test_question_that_a_hanging_orchestrator_does_not_take_up_is_503(
    live: Live, world: World, headers: dict[str, str]
) -> None:
    world.orchestrator.pause_after = 0
    async with live(rpc_timeout_s=0.3) as client:
        answer = await client.post("/v1/qa", json=QUESTION, headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (503, "RUN_NOT_STARTED")
    assert "retry-after" in answer.headers


async def test_error_that_waiting_cannot_cure_ends_the_stream_at_once(live: Live, world: World) -> None:
    world.orchestrator.log = world.orchestrator.log[:4]
    world.orchestrator.attach_failures = [Internal("the log cannot be read", reason="LOG_BROKEN")]
    async with live() as client, client.stream("POST", "/v1/qa", json=QUESTION, headers=SSE) as response:
        events = [each async for each in received(response)]
    assert [each.id for each in events[:-1]] == ALL[:4]
    assert (events[-1].event, events[-1].data["reason"]) == ("error", "LOG_BROKEN")


async def test_hanging_up_does_not_cancel_the_run(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 4
    async with live() as client:
        async with client.stream("POST", "/v1/qa", json=QUESTION, headers=SSE) as response:
            events = received(response)
            for _ in range(4):
                await anext(events)
        await asyncio.wait_for(world.orchestrator.hung_up.wait(), 30)
        assert world.orchestrator.cancelled == []


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        (f"/v1/runs/{RUN_ID}/events", {}, ALL),
        (f"/v1/runs/{RUN_ID}/events?after=5", {}, ALL[5:]),
        (f"/v1/runs/{RUN_ID}/events", {"Last-Event-ID": "6"}, ALL[6:]),
        (f"/v1/runs/{RUN_ID}/events?after=0", {"Last-Event-ID": "7"}, ALL[7:]),
    ],
)
async def test_run_is_resumed_after_the_last_event_seen(
    live: Live, world: World, path: str, headers: dict[str, str], expected: list[str]
) -> None:
    for status in (run_pb.RUN_STATUS_RUNNING, run_pb.RUN_STATUS_COMPLETED):
        world.orchestrator.status = status
        async with live() as client, client.stream("GET", path, headers=headers) as response:
            assert response.headers["x-run-id"] == RUN_ID
            assert await ids(response) == expected


async def test_following_a_run_that_was_seen_to_its_end_is_204(client: httpx.AsyncClient, world: World) -> None:
    world.orchestrator.status = run_pb.RUN_STATUS_COMPLETED
    answer = await client.get(f"/v1/runs/{RUN_ID}/events", headers={"Last-Event-ID": "8"})
    assert answer.status_code == 204


async def test_following_is_taken_up_again_when_attaching_fails_for_a_while(live: Live, world: World) -> None:
    world.orchestrator.attach_failures = [NATS_DOWN, NATS_DOWN]
    async with live() as client, client.stream("GET", f"/v1/runs/{RUN_ID}/events?after=2") as response:
        assert await ids(response) == ALL[2:]
    assert world.orchestrator.attached == [2, 2, 2]


async def test_malformed_last_event_id_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"/v1/runs/{RUN_ID}/events", headers={"Last-Event-ID": "seven"})
    assert (answer.status_code, answer.json()["reason"]) == (400, "VALIDATION_FAILED")


async def test_silence_is_filled_with_comments(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 1
    async with (
        live(ping_interval_s=0.05) as client,
        client.stream("POST", "/v1/qa", json=QUESTION, headers=SSE) as response,
    ):
        async for line in response.aiter_lines():
            if line == ": ping":
                world.orchestrator.resume.set()
            if line == "event: done":
                break


async def test_draining_gateway_ends_streams_so_that_clients_go_elsewhere(live: Live, world: World) -> None:
    world.orchestrator.pause_after = 4
    closing = asyncio.Event()
    async with live(closing) as client, client.stream("POST", "/v1/qa", json=QUESTION, headers=SSE) as response:
        events = received(response)
        for _ in range(4):
            await anext(events)
        closing.set()
        assert [each async for each in events] == []


async def test_document_is_followed_until_it_is_ready(live: Live, world: World) -> None:
    world.ingest.documents = {"d0000001": document("d0000001"), "d0000002": document("d0000002")}
    for status, stage in ((ingest_pb2.DOCUMENT_STATUS_PROCESSING, "embed"), (ingest_pb2.DOCUMENT_STATUS_READY, "")):
        change = ingest_pb2.WatchDocumentsResponse(document=document("d0000001", status=status, stage=stage))
        world.ingest.changes.put_nowait(change)
    async with live() as client, client.stream("GET", "/v1/documents/d0000001/events") as response:
        events = [each async for each in received(response)]
    assert [(each.event, each.data["id"]) for each in events] == [("document", "d0000001")] * 3
    assert [each.data["status"] for each in events] == ["queued", "processing", "ready"]


async def test_following_an_unknown_document_is_404(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/documents/ffffffff/events")).status_code == 404


async def test_all_documents_are_followed_snapshot_first_and_again_after_a_break(live: Live, world: World) -> None:
    world.ingest.documents = {"d0000001": document("d0000001")}
    async with live() as client, client.stream("GET", "/v1/events") as response:
        events = received(response)
        assert [(await anext(events)).event for _ in range(3)] == ["snapshot_begin", "document", "snapshot_complete"]
        gone = document("d0000001", status=ingest_pb2.DOCUMENT_STATUS_DELETED)
        world.ingest.changes.put_nowait(ingest_pb2.WatchDocumentsResponse(document=gone))
        assert (await anext(events)).data["status"] == "deleted"
        world.ingest.documents = {}
        world.ingest.changes.put_nowait(NATS_DOWN)
        assert [(await anext(events)).event for _ in range(2)] == ["snapshot_begin", "snapshot_complete"]


async def test_all_listeners_share_one_watch(live: Live, world: World) -> None:
    world.ingest.documents = {"d0000001": document("d0000001")}
    async with live() as client, AsyncExitStack() as stack:
        paths = ("/v1/events", "/v1/events", "/v1/events?collection_id=default", "/v1/documents/d0000001/events")
        listeners = [received(await stack.enter_async_context(client.stream("GET", path))) for path in paths]
        for listener in listeners[:3]:
            assert [(await anext(listener)).event for _ in range(3)] == [
                "snapshot_begin",
                "document",
                "snapshot_complete",
            ]
        assert (await anext(listeners[3])).data["status"] == "queued"
        failed = document("d0000001", status=ingest_pb2.DOCUMENT_STATUS_FAILED)
        world.ingest.documents = {"d0000001": failed}
        world.ingest.changes.put_nowait(ingest_pb2.WatchDocumentsResponse(document=failed))
        for listener in listeners:
            assert (await anext(listener)).data["status"] == "failed"
    assert world.ingest.watches == 1


async def test_following_a_document_ends_when_it_vanishes_before_its_changes_are_heard(
    live: Live, world: World
) -> None:
    world.ingest.documents = {"d0000001": document("d0000001")}
    world.ingest.looked_up = world.ingest.documents.clear
    async with live() as client, client.stream("GET", "/v1/documents/d0000001/events") as response:
        assert [each.data["status"] async for each in received(response)] == ["queued"]


async def test_watch_that_is_refused_ends_in_an_error_event(live: Live, world: World) -> None:
    world.ingest.changes.put_nowait(InvalidArgument("no such collection", reason="BAD_COLLECTION"))
    async with live() as client, client.stream("GET", "/v1/events?collection_id=x") as response:
        events = [each async for each in received(response)]
    assert (events[-1].event, events[-1].data["reason"]) == ("error", "BAD_COLLECTION")
