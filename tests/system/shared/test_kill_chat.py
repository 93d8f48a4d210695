"""Orchestrator and tools service killed with SIGKILL while chats call tools and wait for approvals: every chat ends in its answer,
nothing is done twice, and what may or may not have been done is told as that.

The moments are random with a fixed seed; what is in hand at each moment is not, so every run of this test tries others.
"""

import concurrent.futures
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kit.testing.openai import Reply
from tests.integration.api import EVENT_STREAM, Api, Event, Json, assert_complete, only, parse_events
from tests.integration.conftest import Model
from tests.integration.scripting import calling, data_of, question_in, rounds_in
from tests.integration.system import POLL_S, Groundwork, wait_until
from tests.service.tools.mail_server import MailServer
from tests.system.amounts import kills
from tests.system.shared.test_kill import kill

pytestmark = [pytest.mark.integration, pytest.mark.kill]

KILLS = kills(8)
CHATS_A_KILL = 4
PATIENCE_S = 300.0
ANSWER = ("During probation ", "the notice period ", "is two weeks [1]. ", "I have done it.")


def acts_as_asked(request: Json) -> Reply:
    """Searches and computes, then writes an e-mail or keeps a note, whichever the question asks for, and answers."""
    what, number, collection = re.findall(r"(e-mail|note) (\d+) in (\S+)", question_in(request))[0]
    match rounds_in(request):
        case 0:
            return calling(("search", {"queries": ["notice period probation"]}), ("math_eval", {"expression": "6*7"}))
        case 1 if what == "note":
            note = {"title": f"note-{number}", "text": "The kitchen is green.", "collection_id": collection}
            return calling(("rag_index", note))
        case 1:
            mail = {"to": ["ann@example.com"], "subject": f"mail-{number}", "text": "Two weeks."}
            return calling(("send_email", mail))
        case _:
            return Reply(ANSWER, pause_s=0.05)


@contextmanager
def allowing(base_url: str) -> Iterator[None]:
    """Somebody who allows whatever is asked, as long as the block runs."""
    enough = threading.Event()

    def allow() -> None:
        while not enough.wait(POLL_S):
            with Api.open(base_url) as api:
                found = api.http.get("/v1/approvals")
                for each in found.json()["approvals"] if found.is_success else []:
                    body = {"decision": "allow", "arguments_hash": each["arguments_hash"]}
                    api.http.post(f"/v1/approvals/{each['id']}", json=body)  # asked again when it was not heard

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        allowing = pool.submit(allow)
        try:
            yield
        finally:
            enough.set()
        allowing.result()


def begun(api: Api, path: str, body: Json, key: str) -> str:
    """The run of a new question, asked for until the system takes it; nobody reads its stream."""
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        with api.http.stream("POST", path, json=body, headers={**EVENT_STREAM, "Idempotency-Key": key}) as answer:
            if answer.status_code == 200 and "X-Run-Id" in answer.headers:
                return str(answer.headers["X-Run-Id"])
            answer.read()
            assert answer.status_code in {409, 503}, answer.text
        assert time.monotonic() < give_up_at, answer.text
        time.sleep(POLL_S)


def to_its_end(api: Api, run_id: str) -> list[Event]:
    """All events of a run, read over as many streams as it takes."""
    events: list[Event] = []
    give_up_at = time.monotonic() + PATIENCE_S
    while not events or events[-1].kind != "done":
        assert time.monotonic() < give_up_at, events[-3:]
        path = f"/v1/runs/{run_id}/events?after={events[-1].seq if events else 0}"
        with api.http.stream("GET", path, headers=EVENT_STREAM) as response:
            if response.status_code == 200:
                # One without seq is the gateway's own word that it lost the run: reading on is what helps.
                events += [event for event in parse_events(response.iter_lines()) if event.seq is not None]
    return events


def test_killed_while_tools_are_called_every_chat_ends_and_nothing_is_done_twice(
    model_system: Groundwork, model_api: Api, handbook: str, scripted: Model, mailbox: MailServer
) -> None:
    rng = random.Random(20261123)
    scripted.will_by_request(acts_as_asked)
    mailbox.delivered.clear()
    notes = model_api.new_collection()
    runs: dict[str, str] = {}
    with allowing(model_system.base_url):
        for round_ in range(KILLS):
            for number in range(round_ * CHATS_A_KILL, (round_ + 1) * CHATS_A_KILL):
                name = f"{'note' if number % 2 else 'e-mail'} {number}"
                question = f"How long is the notice period during probation? Then send {name} in {notes}"
                body = {"message": question, "collection_ids": [handbook, notes]}
                runs[name] = begun(model_api, "/v1/chat", body, f"{notes}-{number}")
            time.sleep(rng.uniform(0.0, 1.2))
            victim = ("orchestrator", "tools")[round_ % 2]
            model_system.wait_until_up(victim, not_pid=kill(model_system, victim))
        ended = {name: to_its_end(model_api, run_id) for name, run_id in runs.items()}

    for events in ended.values():
        assert_complete(events)
        assert events[-1].data["status"] == "completed", events[-3:]
        answer = only(events, "answer").data
        assert answer["text"] == "".join(ANSWER)
        assert [each["document_name"] for each in answer["citations"]] == ["handbook.md"]
        calls = [each["call_id"] for each in data_of(events, "tool")]
        assert len(calls) == len(set(calls)), "each call is told once"
        assert len({call_id.removesuffix("/again") for call_id in calls}) == 3, calls
        assert [each["decision"] for each in data_of(events, "approval")] == ["pending", "allowed"]
    assert_each_effect_once(model_api, notes, ended, mailbox)
    wait_until(lambda: model_api.get("/v1/approvals")["approvals"] == [], "nothing waits any more")


def assert_each_effect_once(api: Api, notes: str, ended: dict[str, list[Event]], mailbox: MailServer) -> None:
    """A note is there once. An e-mail was sent once; one that was in doubt, at most once, and it is told."""
    kept = Counter(each["name"] for each in api.get(f"/v1/collections/{notes}/documents", page_size=100)["documents"])
    sent = Counter(str(message["Subject"]) for _, message in mailbox.delivered)
    for name, events in ended.items():
        what, number = name.split()
        result = data_of(events, "tool_result")[-1]
        if what == "note":
            assert (result["ok"], kept[f"note-{number}.md"]) == (True, 1), str(result)
        elif result["ok"]:
            assert sent[f"mail-{number}"] == 1
        else:
            assert result["error"]["reason"] == "IN_DOUBT", result
            assert sent[f"mail-{number}"] <= 1
