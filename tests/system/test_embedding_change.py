"""The embedding model of a collection changed in a real system: while documents come and go, the retriever is killed, and people
search."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.api import Api, Json, ok
from tests.integration.conftest import UNHURRIED
from tests.integration.system import Groundwork, running, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kill, pytest.mark.timeout(1200)]

ENGLISH, MULTILINGUAL = "all-MiniLM-L6-v2-int8", "multilingual-e5-small-q4-centred"
DOCUMENTS = 48
FERRY = "The ferry Wangerooge was docked for nine weeks because of a cracked propeller shaft."
IN_GERMAN = "Warum lag die Fähre neun Wochen im Dock?"
LIBRARY = "Die Bibliothek öffnet jeden Morgen um neun Uhr."
"""Nearer to the question for a model that hardly knows German (cosines 0.31 and 0.20), and not for one that understands it (0.24
and 0.56)."""
PATIENCE_S = 300.0


def text_of(number: int) -> bytes:
    """Three chunks or so, about something that nobody asks for."""
    trees = ("oak", "birch", "maple", "poplar", "willow", "cedar", "spruce", "chestnut")
    tree = trees[number % len(trees)]
    lines = [
        f"In row {row} of orchard {number} a {tree} was pruned in early spring by the gardeners." for row in range(50)
    ]
    return " ".join(lines).encode()


class Searching:
    """Somebody who searches all the time, and leaves the machine some of it."""

    def __init__(self, system: Groundwork, collection: str) -> None:
        self._system = system
        self._collection = collection
        self._stopping = threading.Event()
        self.count = 0
        self.failures: list[str] = []

    def run(self) -> None:
        with Api.open(self._system.base_url) as api:
            while not self._stopping.is_set():
                try:
                    question = "Which ferry was docked for nine weeks?"
                    hits = api.search(self._collection, question, rerank="off", cache=False)["hits"]
                    if not hits or hits[0]["text"] != FERRY:
                        self.failures.append(f"found {[hit['text'][:60] for hit in hits]}")
                except Exception as error:  # whatever it is, a person would have seen it
                    self.failures.append(repr(error))
                self.count += 1
                self._stopping.wait(0.1)

    @contextmanager
    def going_on(self) -> Iterator["Searching"]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield self
        finally:
            self._stopping.set()
            thread.join()


def test_model_is_changed_while_the_system_is_used_and_the_retriever_is_killed(
    tmp_path: Path, models_dir: Path
) -> None:
    settings = UNHURRIED | {"GROUNDWORK_RERANKER_CPU_EMBEDDING_MODEL": "english"}
    system = Groundwork(tmp_path / "data", models_dir.absolute(), settings)
    with running(system), Api.open(system.base_url) as api:
        collection = api.new_collection()
        path = f"/v1/collections/{collection}/embedding"
        uploaded = [api.upload(collection, f"orchard-{n}.txt", text_of(n)) for n in range(DOCUMENTS)]
        ferry = api.ingest(collection, "ferry.txt", FERRY.encode())
        api.ingest(collection, "library.txt", LIBRARY.encode())
        for document in uploaded:
            assert api.settled(document["id"])["status"] == "ready"
        before = api.get(path)
        assert (before["model"], before["is_chosen"], before["stage"]) == (ENGLISH, False, "settled")
        assert best(api, collection, IN_GERMAN) != ferry["id"], "the English model understands German"
        with Searching(system, collection).going_on() as searching:
            building = api.post(path, {"model": MULTILINGUAL})
            assert (building["stage"], building["other_model"]) == ("building", MULTILINGUAL)
            kill_in_the_midst(system, api, path)
            late = [api.upload(collection, f"late-{n}.txt", text_of(100 + n)) for n in range(3)]
            for document in uploaded[:3]:
                ok(api.http.delete(f"/v1/documents/{document['id']}"))
            assert {api.settled(document["id"])["status"] for document in late} == {"ready"}
            ready = until(api, path, "ready")
            assert ready["whole"]["document_count"] == DOCUMENTS + 2
            assert ready["in_model"] == ready["in_other_model"] == ready["whole"]
            assert list(ready["searched"]) == [ENGLISH]
            assert ready["evaluation"]["is_made"]
            assert ready["evaluation"]["question_count"] > 0
            question = {"text": IN_GERMAN, "document_ids": [ferry["id"]]}
            api.post(f"{path}/evaluate", {"questions": [question]})
            compared = until(api, path, "ready")["evaluation"]
            assert (compared["question_count"], compared["is_made"], compared["worse"]) == (1, False, [])
            assert compared["vectors"]["after"]["ndcg_at_10"] > compared["vectors"]["before"]["ndcg_at_10"]
            swapped = api.post(f"{path}/swap")
            assert (swapped["model"], swapped["other_model"], list(swapped["searched"])) == (
                MULTILINGUAL,
                ENGLISH,
                [MULTILINGUAL],
            )
            assert best(api, collection, IN_GERMAN) == ferry["id"]
            after_swap = api.ingest(collection, "after-swap.txt", text_of(200))
            wait_until(lambda: is_whole(api.get(path)), "the new document lies in both spaces", timeout_s=PATIENCE_S)
            assert api.post(f"{path}/rollback")["model"] == ENGLISH
            assert best(api, collection, IN_GERMAN) != ferry["id"]
            assert api.post(f"{path}/swap")["model"] == MULTILINGUAL
            ok(api.http.delete(path))
            settled = until(api, path, "settled")
            assert (settled["model"], settled["other_model"], settled["is_chosen"]) == (MULTILINGUAL, None, True)
            assert settled["in_model"] == settled["whole"]
        assert searching.count > 20
        assert searching.failures == []
        pid = kill_retriever(system)
        system.wait_until_up("retriever", not_pid=pid)
        assert best(api, collection, IN_GERMAN) == ferry["id"], "the choice outlives the process"
        assert is_found(api, collection, after_swap)
        assert [is_found(api, collection, document) for document in uploaded[:4]] == [False, False, False, True]


def is_found(api: Api, collection: str, document: Json) -> bool:
    """By its vectors."""
    own = {"document_ids": [document["id"]]}
    answer = api.search(collection, "Which tree was pruned?", strategy="dense", filters=own)
    return {hit["document_id"] for hit in answer["hits"]} == {document["id"]}


def best(api: Api, collection: str, question: str) -> str:
    """The document that vectors have first."""
    answer = api.search(collection, question, strategy="dense", rerank="off", cache=False)
    assert answer["degraded"] == []
    document_id: str = answer["hits"][0]["document_id"]
    return document_id


def kill_in_the_midst(system: Groundwork, api: Api, path: str) -> None:
    """Once some documents have been copied, and not all."""
    wait_until(
        lambda: api.get(path)["in_other_model"]["document_count"] > 0, "documents are copied", timeout_s=PATIENCE_S
    )
    at_the_kill = api.get(path)
    pid = kill_retriever(system)
    assert at_the_kill["stage"] == "building", "it was built before it could be killed"
    system.wait_until_up("retriever", not_pid=pid)


def kill_retriever(system: Groundwork) -> int:
    pid = int(system.service("retriever")["pid"])
    os.kill(pid, signal.SIGKILL)
    return pid


def until(api: Api, path: str, stage: str) -> Json:
    wait_until(lambda: api.get(path)["stage"] == stage, f"the change is {stage}", timeout_s=PATIENCE_S)
    return api.get(path)


def is_whole(state: Json) -> bool:
    return bool(state["in_model"] == state["in_other_model"] == state["whole"])
