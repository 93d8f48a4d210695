"""Forgetting, seen from outside: what quotes a deleted document or belongs to a deleted thread is gone from the API and from the
message store."""

import asyncio

import pytest
from nats.js.errors import NotFoundError

from kit.jetstream import connect
from tests.integration.api import Api, Event, Json, only, problem
from tests.integration.system import Groundwork, wait_until

pytestmark = [pytest.mark.integration]

SECRET = "zqvorlux"
TEXT = f"The password of the lighthouse on Wangerooge is {SECRET}. The lighthouse is red and white."
QUESTION = "What is the password of the lighthouse on Wangerooge?"


async def _stored(url: str, secret: str) -> list[str]:
    """Subjects of all messages in the store that hold the secret."""
    found = []
    async with connect(url, name="test") as nats:
        for info in await nats.js.streams_info():
            for seq in range(max(1, info.state.first_seq), info.state.last_seq + 1):
                try:
                    message = await nats.js.get_msg(str(info.config.name), seq=seq)
                except NotFoundError:
                    continue
                if secret.encode() in (message.data or b""):
                    found.append(str(message.subject))
    return found


def stored(system: Groundwork, secret: str = SECRET) -> list[str]:
    return asyncio.run(_stored(system.state()["nats_url"], secret))


def run_of(events: list[Event]) -> str:
    run_id: str = events[0].data["run_id"]
    return run_id


def is_forgotten(api: Api, run_id: str) -> bool:
    """Whether nothing of the run is left to erase: its record says so last of all, after its events are gone."""
    if api.get(f"/v1/runs/{run_id}")["forgotten_at"] is None:
        return False
    problem(api.http.get(f"/v1/runs/{run_id}/events"), 404, "RUN_FORGOTTEN")
    return True


def answer_in(api: Api, thread_id: str) -> Json:
    _, answer = api.get(f"/v1/threads/{thread_id}")["messages"]
    found: Json = answer
    return found


def test_deleted_document_is_forgotten_by_runs_threads_and_the_message_store(
    system: Groundwork, api: Api, collection: str
) -> None:
    document = api.ingest(collection, "lighthouse.txt", TEXT.encode())
    thread_id = api.post("/v1/threads", {})["id"]
    in_thread = list(api.chat(collection, QUESTION, thread_id=thread_id))
    alone = list(api.ask(collection, QUESTION))
    assert SECRET in only(in_thread, "answer").data["text"]
    assert SECRET in answer_in(api, thread_id)["text"]
    assert stored(system)
    assert api.http.delete(f"/v1/documents/{document['id']}").status_code == 204
    for events in (in_thread, alone):
        run_id = run_of(events)
        wait_until(lambda run_id=run_id: is_forgotten(api, run_id), "the run is forgotten")
        assert api.get(f"/v1/runs/{run_id}")["question"] == QUESTION
    answer = answer_in(api, thread_id)
    assert answer["forgotten"]
    assert SECRET not in answer["text"]
    assert stored(system) == []
    for name in ("gateway", "orchestrator", "memory", "ingest", "ingest-worker", "retriever"):
        assert SECRET not in system.log(name)


def test_deleted_thread_takes_its_runs_and_questions_with_it(api: Api, collection: str) -> None:
    thread_id = api.post("/v1/threads", {})["id"]
    run_id = run_of(list(api.chat(collection, QUESTION, thread_id=thread_id)))
    other = run_of(list(api.ask(collection, QUESTION)))
    assert api.http.delete(f"/v1/threads/{thread_id}").status_code == 204
    wait_until(lambda: api.http.get(f"/v1/runs/{run_id}").status_code == 404, "the thread's run is gone")
    problem(api.http.get(f"/v1/runs/{run_id}/events"), 404, "RUN_NOT_FOUND")
    listed = {run["id"] for run in api.get("/v1/runs")["runs"]}
    assert other in listed
    assert run_id not in listed


def test_deleted_run_is_gone_at_once(api: Api, collection: str) -> None:
    run_id = run_of(list(api.ask(collection, QUESTION)))
    wait_until(lambda: api.get(f"/v1/runs/{run_id}")["finished_at"] is not None, "the run has ended")
    for _ in range(2):
        assert api.http.delete(f"/v1/runs/{run_id}").status_code == 204
    problem(api.http.get(f"/v1/runs/{run_id}"), 404, "RUN_NOT_FOUND")
    problem(api.http.delete("/v1/runs/*"), 400, "VALIDATION_FAILED")
