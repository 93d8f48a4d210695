"""Worker, retriever, model server and message store killed with SIGKILL at random moments, while documents are uploaded,
replaced and deleted: afterwards every acknowledged document is searchable exactly once in both engines, and nothing else is.

The moments are random with a fixed seed; what is in hand at each moment is not, so every run tries others.
"""

import asyncio
import concurrent.futures
import json
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.access.principal import Principal
from kit.jetstream import connect
from tests.integration.api import Api, Json, ok
from tests.integration.system import Groundwork, running, suspended, wait_until
from tests.system.amounts import kills
from tests.system.shared.test_kill import corpus_stats, jobs_left, kill, unique_word

pytestmark = [pytest.mark.integration, pytest.mark.kill]

KILLED = {"ingest-worker": kills(12), "retriever": kills(18), "reranker": kills(18), "nats": kills(18)}
"""How often each."""
KILLS = sum(KILLED.values())
DOCUMENTS = kills(208)
UPLOADERS = 4
PATIENCE_S = 300.0
"""How long a client repeats what was refused. Refusals are fine; what was acknowledged is what counts."""


@dataclass
class Library:
    """What was acknowledged: each document's number, and its text as last uploaded."""

    collection_id: str
    base_url: str
    ids: dict[int, str] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)

    def upload(self, number: int, version: int = 1) -> None:
        content = document_text(number, version).encode()
        form = {"file": (f"mooring-{number}.txt", content)}
        path = f"/v1/collections/{self.collection_id}/documents"
        self.ids[number] = self._repeated("POST", path, files=form)["document"]["id"]
        self.versions[number] = version

    def delete(self, number: int) -> None:
        self._repeated("DELETE", f"/v1/documents/{self.ids[number]}", gone_is_done=True)
        self.deleted.add(number)

    def _repeated(self, method: str, path: str, *, gone_is_done: bool = False, **options: Any) -> Json:
        """As a client does: again, while the answer is that something is away, or that it broke."""
        give_up_at = time.monotonic() + PATIENCE_S
        with httpx.Client(base_url=self.base_url, timeout=60, trust_env=False) as http:
            while True:
                response = http.request(method, path, **options)
                if gone_is_done and response.status_code == 404:
                    return {}
                if response.status_code < 500 or time.monotonic() > give_up_at:
                    return ok(response)
                time.sleep(0.2)

    def living(self) -> dict[int, str]:
        return {number: id_ for number, id_ in self.ids.items() if number not in self.deleted}


def word_of(number: int, version: int) -> str:
    return unique_word(number + 1000 * version)


def document_text(number: int, version: int) -> str:
    """Mostly one chunk, sometimes several: work of different length in every stage."""
    sentences = (3, 3, 3, 8, 40)[number % 5]
    more = " ".join(f"Buoy {index} of fairway {number} was painted in spring." for index in range(sentences))
    return f"The mooring {word_of(number, version)} lies in the harbour of Emden.\n\n{more}"


def test_killed_services_lose_and_double_no_document(model_system: Groundwork, model_api: Api) -> None:
    library = Library(model_api.new_collection(), model_system.base_url)
    work = list(work_of(random.Random(20261125)))
    allowed = threading.Semaphore(UPLOADERS)
    todo = iter(work)
    turn = threading.Lock()

    def client() -> None:
        while True:
            allowed.acquire()
            with turn:
                task = next(todo, None)
            if task is None:
                allowed.release()
                return
            task(library)

    with concurrent.futures.ThreadPoolExecutor(UPLOADERS) as pool:
        clients = [pool.submit(client) for _ in range(UPLOADERS)]
        killed = kill_at_random(model_system, lambda: allowed.release(len(work) // KILLS + 1))
        allowed.release(len(work))
        for each in clients:
            each.result(2 * PATIENCE_S)
    assert killed == KILLED
    for name in KILLED:
        model_system.wait_until_up(name)
    assert len(library.ids) == DOCUMENTS

    documents = {number: model_api.settled(id_) for number, id_ in library.living().items()}
    failed = [document for document in documents.values() if document["status"] != "ready" or document["error"]]
    assert not failed, json.dumps(failed, indent=1)
    assert model_api.get("/v1/jobs/dead")["dead_letters"] == []
    wait_until(lambda: asyncio.run(jobs_left(model_system)) == 0, "the queue is empty")
    chunks = sum(document["report"]["chunk_count"] for document in documents.values())
    assert asyncio.run(corpus_stats(model_system, library.collection_id)) == (len(documents), chunks)
    for number, document in documents.items():
        assert_there_once(model_api, library, number, document)
    assert_nothing_else_is_there(model_api, library)
    assert model_api.get("/readyz")["damage"] == [], "kills damage nothing, and are not taken for damage"


def work_of(rng: random.Random) -> Iterator[Any]:
    """Uploads, and of what was uploaded well before now and then a new version or a deletion."""
    old: list[int] = []
    for number in range(DOCUMENTS):
        yield lambda library, number=number: library.upload(number)
        if number % 8 == 7:
            replaced = old.pop(rng.randrange(len(old) // 2 + 1))
            yield lambda library, number=replaced: number in library.ids and library.upload(number, 2)
        if number % 12 == 11:
            deleted = old.pop(rng.randrange(len(old) // 2 + 1))
            yield lambda library, number=deleted: number in library.ids and library.delete(number)
        old.append(number)


def kill_at_random(system: Groundwork, after_each: Any) -> Counter[str]:
    """SIGKILL to whichever of the services is up, one after the other at random moments."""
    rng = random.Random(20261126)
    killed: Counter[str] = Counter()
    while sum(killed.values()) < KILLS:
        up = [name for name in KILLED if killed[name] < KILLED[name] and system.is_up(name)]
        if not up:
            time.sleep(0.05)
            continue
        time.sleep(rng.uniform(0.0, 1.2))
        name = rng.choice(up)
        try:
            kill(system, name)
        except (ProcessLookupError, TypeError):
            continue  # it has just ended by itself, because another was killed
        killed[name] += 1
        after_each()
    return killed


def assert_there_once(api: Api, library: Library, number: int, document: Json) -> None:
    """By its word in one document only; of its chunks each exactly once, in each engine."""
    word = word_of(number, library.versions[number])
    found = api.search(library.collection_id, word, strategy="lexical", rerank="off", top_k=20)["hits"]
    assert [hit["document_id"] for hit in found if word in hit["text"]] == [document["id"]], word
    own = {"document_ids": [document["id"]]}
    for strategy in ("lexical", "dense"):
        answer = api.search(
            library.collection_id, "mooring buoy", strategy=strategy, rerank="off", top_k=200, filters=own
        )
        assert answer["degraded"] == []
        ordinals = sorted(hit["ordinal"] for hit in answer["hits"])
        assert ordinals == list(range(document["report"]["chunk_count"])), (strategy, number)
        assert sum(word in hit["text"] for hit in answer["hits"]) == 1, (strategy, number)


def assert_nothing_else_is_there(api: Api, library: Library) -> None:
    """Neither deleted documents nor replaced texts, and no document that nobody uploaded."""
    gone = [word_of(number, library.versions[number]) for number in library.deleted]
    gone += [word_of(number, 1) for number, version in library.versions.items() if version == 2]
    assert len(gone) > DOCUMENTS // 10
    for word in gone:
        found = api.search(library.collection_id, word, strategy="lexical", rerank="off", top_k=20)["hits"]
        assert not [hit for hit in found if word in hit["text"]], word
    listed, token = set(), ""
    while True:
        page = api.get(f"/v1/collections/{library.collection_id}/documents", page_size=1000, page_token=token)
        listed |= {document["id"] for document in page["documents"]}
        token = page["next_page_token"]
        if not token:
            break
    assert listed == set(library.living().values())


def test_job_delivered_five_times_is_done_once(model_system: Groundwork, model_api: Api) -> None:
    collection = model_api.new_collection()
    with suspended(model_system, "ingest-worker"):
        queued = model_api.upload(collection, "mooring-1.txt", document_text(1, 1).encode())
        asyncio.run(deliver_again(model_system, queued["id"], times=5))
    first = model_api.settled(queued["id"])
    assert first["status"] == "ready"
    assert "job_refused" not in model_system.log("ingest-worker")
    wait_until(lambda: asyncio.run(jobs_left(model_system)) == 0, "the queue is empty")
    asyncio.run(deliver_again(model_system, queued["id"], times=5, revision_id=first["revision_id"]))
    wait_until(lambda: asyncio.run(jobs_left(model_system)) == 0, "the queue is empty")
    after = model_api.get(f"/v1/documents/{queued['id']}")
    assert (after["revision_id"], after["updated_at"]) == (first["revision_id"], first["updated_at"])
    assert asyncio.run(corpus_stats(model_system, collection)) == (1, first["report"]["chunk_count"])
    library = Library(collection, model_system.base_url, {1: queued["id"]}, {1: 1})
    assert_there_once(model_api, library, 1, after)


async def deliver_again(system: Groundwork, document_id: str, *, times: int, revision_id: str = "") -> None:
    """Queues a document's job again, past the queue's own deduplication."""
    async with connect(system.state()["nats_url"], name="test") as nats:
        if not revision_id:
            entry = await (await nats.js.key_value("DOCUMENTS")).get(f"local.{document_id}")
            revision_id = json.loads(entry.value or b"")["pending"]["revision_id"]
        job = json.dumps({"tenant_id": "local", "document_id": document_id, "revision_id": revision_id}).encode()
        subject, signer = f"ingest.local.{document_id}.{revision_id}", system.signer()
        for job_id in (f"{revision_id}-{number}" for number in range(times)):
            token = signer.sign_job(Principal("local", "test"), "INGEST", subject, job_id, job)
            await nats.js.publish(subject, job, headers={"Groundwork-Token": token, "Nats-Msg-Id": job_id})


def test_documents_whose_index_was_removed_are_made_again_from_the_stored_files(
    tmp_path: Path, models_dir: Path
) -> None:
    settings = {
        "GROUNDWORK_INGEST_RECONCILE_INTERVAL_S": "1",
        "GROUNDWORK_RESTART_BACKOFF_MAX_S": "0.4",
        "GROUNDWORK_INGEST_LEASE_TTL_S": "3",
    }
    with (
        running(Groundwork(tmp_path / "data", models_dir.absolute(), settings)) as system,
        Api.open(system.base_url) as api,
    ):
        collection = api.new_collection()
        texts = {f"mooring-{n}.txt": document_text(n, 1).encode() for n in range(6)}
        documents = {name: api.ingest(collection, name, text) for name, text in texts.items()}
        shutil.rmtree(system.data_dir / "retriever")
        killed = kill(system, "retriever")
        system.wait_until_up("retriever", not_pid=killed)

        def is_back(document: Json) -> bool:
            now = api.get(f"/v1/documents/{document['id']}")
            return now["status"] == "ready" and now["revision_id"] != document["revision_id"]

        wait_until(lambda: all(is_back(each) for each in documents.values()), "all are back")
        library = Library(collection, system.base_url)
        for number, before in enumerate(documents.values()):
            library.upload(number)  # the same file: the same document
            assert library.ids[number] == before["id"]
            assert_there_once(api, library, number, api.settled(before["id"]))
        chunks = sum(document["report"]["chunk_count"] for document in documents.values())
        assert asyncio.run(corpus_stats(system, collection)) == (6, chunks)
