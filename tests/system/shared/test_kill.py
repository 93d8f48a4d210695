"""Processes killed with SIGKILL in the middle of their work, again and again: nothing acknowledged is lost, nothing is doubled.

The moments are random with a fixed seed; what is in hand at each moment is not, so every run of these tests tries others.
"""

import asyncio
import concurrent.futures
import os
import random
import signal
import threading
import time
from collections import Counter

import pytest
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from kit.access.principal import Principal, use_principal
from kit.jetstream import connect
from kit.rpc.channel import open_channel
from kit.testing.openai import Reply
from tests.integration.api import EVENT_STREAM, Api, Event, Json, assert_complete, only, parse_events
from tests.integration.conftest import Model
from tests.integration.system import POLL_S, Groundwork, wait_until
from tests.system.amounts import kills

pytestmark = [pytest.mark.integration, pytest.mark.kill]

KILLS = kills(10)
DOCUMENTS_A_KILL = 8
ORCHESTRATOR_KILLS = kills(30)
CLIENTS = 8
"""A run whose orchestrator was killed waits for its lease to run out; others must be under way at the next kill."""


def kill(system: Groundwork, service: str) -> int:
    """SIGKILL to a process of the service, to any if there are several; the process id that is no more."""
    pid = int(random.choice(system.processes_of(service))["pid"])
    os.kill(pid, signal.SIGKILL)
    return pid


def unique_word(number: int) -> str:
    """A word that no other document has, that no stemmer touches and that no tokenizer takes for a number."""
    return "zq" + "".join("bcdfghjkmp"[int(digit)] for digit in f"{number:04d}") + "ux"


def document_text(number: int, rng: random.Random) -> str:
    """Mostly one chunk, sometimes twenty: work of different length in every stage."""
    sentences = rng.choice([3, 3, 3, 10, 200])
    more = " ".join(f"Buoy {index} of fairway {number} was painted in spring." for index in range(sentences))
    return f"The mooring {unique_word(number)} lies in the harbour of Emden.\n\n{more}"


def test_worker_killed_again_and_again_loses_and_doubles_no_document(model_system: Groundwork, model_api: Api) -> None:
    rng = random.Random(20261121)
    collection = model_api.new_collection()
    acknowledged: list[Json] = []

    def upload(number: int) -> Json:
        with Api.open(model_system.base_url) as api:
            return api.upload(collection, f"mooring-{number}.txt", document_text(number, rng).encode())

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for round_ in range(KILLS):
            model_system.wait_until_up("ingest-worker")
            numbers = range(round_ * DOCUMENTS_A_KILL, (round_ + 1) * DOCUMENTS_A_KILL)
            uploads = [pool.submit(upload, number) for number in numbers]
            time.sleep(rng.uniform(0.0, 0.8))
            pid = kill(model_system, "ingest-worker")
            acknowledged += [each.result() for each in uploads]
            model_system.wait_until_up("ingest-worker", not_pid=pid)
    assert len({document["id"] for document in acknowledged}) == KILLS * DOCUMENTS_A_KILL

    documents = [model_api.settled(document["id"]) for document in acknowledged]
    assert Counter(document["status"] for document in documents) == {"ready": KILLS * DOCUMENTS_A_KILL}
    assert max(document["report"]["attempts"] for document in documents) > 1, "no kill hit any work"
    for document in documents:
        assert_searchable_once(model_api, collection, document)
    chunks = sum(document["report"]["chunk_count"] for document in documents)
    assert asyncio.run(corpus_stats(model_system, collection)) == (KILLS * DOCUMENTS_A_KILL, chunks)
    wait_until(lambda: asyncio.run(jobs_left(model_system)) == 0, "the queue is empty")


def assert_searchable_once(api: Api, collection: str, document: Json) -> None:
    """By its word exactly one hit in each engine; of its chunks each exactly once."""
    word = unique_word(int(document["name"].removeprefix("mooring-").removesuffix(".txt")))
    for strategy in ("lexical", "dense", "hybrid"):
        answer = api.search(collection, f"mooring {word}", strategy=strategy, top_k=200, explain=True)
        assert answer["degraded"] == [], strategy
        assert not [each for each in answer["dropped"] if each["stage"] == "revision"], "chunks of an inactive revision"
        holding = [hit["document_id"] for hit in answer["hits"] if word in hit["text"]]
        assert holding == [document["id"]], (strategy, word)
    for strategy in ("lexical", "dense"):
        own = {"document_ids": [document["id"]]}
        hits = api.search(collection, "mooring buoy fairway", strategy=strategy, top_k=200, filters=own)["hits"]
        ordinals = sorted(hit["ordinal"] for hit in hits)
        assert ordinals == list(range(document["report"]["chunk_count"])), strategy


async def corpus_stats(system: Groundwork, collection: str) -> tuple[int, int]:
    """Documents and chunks that the retriever counts in the collection."""
    services = [retriever_pb2.DESCRIPTOR.services_by_name["RetrieverService"]]
    async with open_channel(system.service("retriever")["address"], system.signer(), services) as channel:
        with use_principal(Principal("local", "test")):
            stub = retriever_pb2_grpc.RetrieverServiceStub(channel)
            request = retriever_pb2.CorpusStatsRequest(collection_ids=[collection])
            (stats,) = (await stub.CorpusStats(request, timeout=60)).collections
    return stats.document_count, stats.chunk_count


async def jobs_left(system: Groundwork) -> int:
    """Jobs in the queue of ingestion."""
    async with connect(system.state()["nats_url"], name="test") as nats:
        return int((await nats.js.stream_info("INGEST")).state.messages)


ANSWER = [
    *("During ", "probation ", "the notice ", "period ", "is two ", "weeks ", "[1]. "),
    *("The notice ", "period is ", "four weeks ", "to the end ", "of a month ", "[1]. "),
    *("A leased ", "bicycle ", "costs 28 ", "euros a ", "month ", "and may be ", "used in ", "private ", "[1]."),
]


class Client:
    """A user who asks one question after the other in a thread and reads each answer to its end, on a slow machine over several
    streams: the gateway takes a run's stream up again for 30 s, which ten restarts may outlast."""

    def __init__(self, base_url: str, collection: str) -> None:
        self._base_url = base_url
        self._collection = collection
        with Api.open(base_url) as api:
            self.thread_id: str = api.post("/v1/threads")["id"]
        self.runs: list[list[Event]] = []
        self._reader: concurrent.futures.Future[None] | None = None

    def keep_asking(self, pool: concurrent.futures.Executor) -> None:
        """Asks the next question when the last one is answered; returns when its answer has begun."""
        if self._reader is not None:
            if not self._reader.done():
                return
            self._reader.result()
        begun = threading.Event()
        self._reader = pool.submit(self._read, begun)
        assert begun.wait(30), "a question was not taken"

    def _read(self, begun: threading.Event) -> None:
        events: list[Event] = []
        question = f"What about the notice period, please ({len(self.runs) + 1})?"
        self.runs.append(events)
        try:
            with Api.open(self._base_url) as api:
                for event in api.chat(self._collection, question, thread_id=self.thread_id):
                    _note(event, events)
                    begun.set()
                while events[-1].kind != "done":
                    _read_on(api, events)
        finally:
            begun.set()

    def finish(self) -> None:
        """Until the last answer has ended."""
        assert self._reader is not None
        self._reader.result(90)


def _read_on(api: Api, events: list[Event]) -> None:
    """One more stream, behind the last event; none while the orchestrator is away."""
    path, last = f"/v1/runs/{events[0].data['run_id']}/events", {"Last-Event-ID": str(events[-1].seq)}
    with api.http.stream("GET", path, headers={**EVENT_STREAM, **last}) as response:
        if response.status_code == 503:
            time.sleep(POLL_S)
            return
        assert response.status_code == 200, response.read()
        for event in parse_events(response.iter_lines()):
            _note(event, events)


def _note(event: Event, events: list[Event]) -> None:
    if event.seq is not None:  # else it is the gateway's own word that it lost the run: reading on is what helps
        events.append(event)


@pytest.fixture
def clients(model_system: Groundwork, handbook: str) -> list[Client]:
    return [Client(model_system.base_url, handbook) for _ in range(CLIENTS)]


def test_orchestrator_killed_again_and_again_breaks_and_doubles_no_answer(
    model_system: Groundwork, model_api: Api, scripted: Model, clients: list[Client]
) -> None:
    rng = random.Random(20261122)
    # Shorter than most lives of an orchestrator here: an answer that is never finished proves nothing.
    scripted.will(Reply(ANSWER, pause_s=0.03))
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for _ in range(ORCHESTRATOR_KILLS):
            for client in clients:
                client.keep_asking(pool)
            time.sleep(rng.uniform(0.0, 1.6))
            pid = kill(model_system, "orchestrator")
            model_system.wait_until_up("orchestrator", not_pid=pid)
            wait_until(lambda: reaches_orchestrator(model_api), "the gateway has found the orchestrator again")
        for client in clients:
            client.finish()
    runs = [events for client in clients for events in client.runs]
    assert any(is_resumed(events) for events in runs), "no kill hit any answer"
    for client in clients:
        for events in client.runs:
            assert events[-1].data["status"] == "completed", "\n".join(map(str, events))
            assert_complete(events)
            assert only(events, "answer").data["method"] == "model"
            usage = only(events, "usage").data
            assert {each["step"] for each in usage["steps"]} == {"agent", "plan", "retrieve", "draft"}
            assert usage["completion_tokens"] == sum(each["completion_tokens"] for each in usage["steps"]) > 0
            assert model_api.replay(events[0].data["run_id"]) == events
            assert model_api.get(f"/v1/runs/{events[0].data['run_id']}")["status"] == "completed"
        assert_thread_holds_each_turn_once(model_api, client)
    assert not [run for run in model_api.get("/v1/runs", page_size=1000)["runs"] if run["status"] == "running"]


def reaches_orchestrator(api: Api) -> bool:
    return api.http.get("/v1/runs", params={"page_size": 1}).status_code == 200


def is_resumed(events: list[Event]) -> bool:
    return any(event.kind == "thinking" and event.data["phase"] == "resume" for event in events)


def assert_thread_holds_each_turn_once(api: Api, client: Client) -> None:
    expected = []
    for events in client.runs:
        run_id = events[0].data["run_id"]
        expected.append(("user", run_id, events[0].data["question"]))
        expected.append(("assistant", run_id, only(events, "answer").data["text"]))
    thread = api.get(f"/v1/threads/{client.thread_id}", limit=1000)
    assert [(each["role"], each["run_id"], each["text"]) for each in thread["messages"]] == expected
    assert thread["message_count"] == len(expected)
