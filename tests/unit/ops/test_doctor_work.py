"""`groundwork doctor` on jobs, indexes, and whether the system runs."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from cli.operating import message_store as commands
from cli.operating import surroundings
from kit.access.keys import new_key, public_half
from kit.access.principal import Principal, use_principal
from kit.access.tokens import TokenSigner
from kit.jetstream import KeyValue, Nats, WorkQueue
from kit.observability.ops import OpsServer
from kit.stores.forgetting import ForgetQueue, ForgetRequest, Source
from kit.testing.harness import free_port, make_signer, make_verifier
from kit.testing.nats import nats_server_binary
from ops.indexes import describe_indexes
from ops.signers import SIGNERS
from ops.work import observe_work
from services.ingest.state import JOBS as INGEST
from services.retriever import metrics as retriever_metrics
from services.standalone.private_store import private_store
from services.standalone.storage.data_dir import open_data_dir
from services.standalone.supervising.models import StartLimits
from services.standalone.supervising.state_file import RunningSystem
from tests.unit.ops.stores import AT

ANN = Principal("acme", "ann")


async def put(nats: Nats, bucket: str, key: str, **fields: object) -> None:
    await (await KeyValue.open(nats, bucket)).put(key, json.dumps(fields).encode())


async def document(nats: Nats, number: int, **fields: object) -> None:
    known = {"tenant_id": "acme", "document_id": f"d{number}", "collection_id": "default", "name": f"n{number}.txt"}
    await put(nats, "DOCUMENTS", f"acme.d{number}", **known, **fields)


async def forget(nats: Nats, signer: TokenSigner, number: int) -> None:
    with use_principal(ANN):
        queue = await ForgetQueue.open(nats, signer, make_verifier())
        await queue.request(ForgetRequest(Source.document(f"d{number}"), AT))


async def read_later(nats: Nats, signer: TokenSigner, number: int) -> None:
    with use_principal(ANN):
        queue = await WorkQueue.open(nats, INGEST, signer, make_verifier())
        await queue.publish(f"acme.d{number}.r{number}", b"{}", job_id=f"r{number}")


async def test_jobs_that_wait_are_refused_or_were_given_up_are_told(jetstream: Nats) -> None:
    stranger = make_signer(new_key("stranger"))
    await read_later(jetstream, make_signer(), 1)
    await read_later(jetstream, stranger, 2)
    await put(jetstream, "DEAD_LETTERS", "acme.default.d8.r8", requeued_at=None)
    await put(jetstream, "DEAD_LETTERS", "acme.default.d9.r9", requeued_at="2026-11-22")
    seen = await observe_work(jetstream, make_verifier())
    assert not seen.is_wrong, "ingestion makes its jobs again"
    assert seen.lines[0] == "Jobs of all tenants:"
    assert seen.lines[2].startswith("  INGEST   2 waiting or in hand (documents to read); 1 REFUSED")
    assert "queued again within three minutes" in seen.lines[2]
    assert seen.lines[1] == "  FORGET   0 waiting or in hand (deletions of what quotes a document, a thread or a run)"
    assert seen.lines[5].startswith("  given up 1 (groundwork jobs dead")

    await forget(jetstream, make_signer(), 1)
    await forget(jetstream, stranger, 2)
    seen = await observe_work(jetstream, make_verifier())
    assert seen.is_wrong
    assert seen.lines[1].startswith(
        "  FORGET   2 waiting or in hand (deletions of what quotes a document, a thread or a run); 1 REFUSED"
    )
    assert "no service does them" in seen.lines[1]


async def test_a_job_of_a_kind_that_its_key_is_not_good_for_is_refused(jetstream: Nats) -> None:
    memory = new_key("memory")
    signer, verifier = make_signer(memory), make_verifier(public_half(memory, SIGNERS["memory"]))
    with use_principal(ANN):
        queue = await ForgetQueue.open(jetstream, signer, verifier)
        for source in (Source.thread("ann", "t1"), Source.thread("ann", "t2"), Source.document("d1"), Source.run("r1")):
            await queue.request(ForgetRequest(source, AT))
    seen = await observe_work(jetstream, verifier)
    assert seen.is_wrong
    assert "FORGET   4 waiting" in seen.lines[1]
    assert "2 REFUSED, since no known key is good for them" in seen.lines[1]


async def test_without_public_keys_it_is_said_that_refusals_are_not_known(jetstream: Nats) -> None:
    await forget(jetstream, make_signer(), 1)
    seen = await observe_work(jetstream, None)
    assert not seen.is_wrong
    assert seen.lines[1].endswith("; whether 1 of them are refused was not looked at")


async def test_documents_without_a_job_or_not_searchable_are_told(jetstream: Nats) -> None:
    await read_later(jetstream, make_signer(), 1)
    await document(jetstream, 1, status="queued", pending={"revision_id": "r1"})
    await document(jetstream, 2, status="processing", pending={"revision_id": "r2"})
    for number in range(3, 6):
        await document(jetstream, number, status="ready", active={"revision_id": "r"})
    await document(jetstream, 6, status="deleted")
    await put(jetstream, "ACTIVE_REVISIONS", "acme.d3", revision_id="r", deleted=False)
    await put(jetstream, "ACTIVE_REVISIONS", "acme.d4", revision_id="older", deleted=False)
    seen = await observe_work(jetstream, make_verifier())
    documents, jobless, hidden = seen.lines[6:]
    assert documents == "Documents: 1 processing, 1 queued, 3 ready"
    assert jobless.startswith("  1 on their way without a job")
    assert jobless.endswith(": default/n2.txt (d2)")
    assert hidden.startswith("  2 ready and not searchable; ingestion makes them again")
    assert hidden.endswith(": default/n4.txt (d4), default/n5.txt (d5)")


async def test_what_the_indexes_lack_is_asked_of_the_retriever_that_runs() -> None:
    retriever_metrics.MISSING_REVISIONS.labels("dense").set(3)
    retriever_metrics.ENGINE_UP.labels("dense").set(1)
    retriever_metrics.ENGINE_UP.labels("lexical").set(1)
    with OpsServer("127.0.0.1", 0, ready=lambda: True) as ops:
        dense, lexical = await describe_indexes(ops.port)
        retriever_metrics.MISSING_REVISIONS.labels("dense").set(0)
        retriever_metrics.ENGINE_UP.labels("lexical").set(0)
        whole, away = await describe_indexes(ops.port)
    assert dense.startswith("Indexes: the vector index lacks 3 documents and is being filled again")
    assert lexical == "Indexes: the text index lacks no document."
    assert whole == "Indexes: the vector index lacks no document."
    assert "does not answer" in away
    (silent,) = await describe_indexes(free_port())
    assert "does not say what they lack" in silent


async def test_a_running_system_is_told_with_what_is_not_ready() -> None:
    states = {"nats": {"state": "ready"}, "memory": {"state": "died"}}
    (line,) = await surroundings.of_running(RunningSystem(7, "http://x", "nats://x", states))
    assert line == "Groundwork runs: process 7, http://x; not ready: memory (died)."
    (line,) = await surroundings.of_running(RunningSystem(7, "http://x", "nats://x", {"nats": {"state": "ready"}}))
    assert line.endswith("; all of its processes (1) are ready.")


def test_of_a_stopped_system_it_is_said_what_cannot_be_known(tmp_path: Path) -> None:
    (tmp_path / "retriever" / "dense").mkdir(parents=True)
    stopped, gone = surroundings.of_stopped(tmp_path, {})
    assert "not known until it runs" in stopped
    assert str(tmp_path / "retriever" / "lexical") in gone
    assert surroundings.of_stopped(tmp_path, {"GROUNDWORK_ELASTICSEARCH_URL": "http://x"}) == [stopped]


async def test_the_command_tells_all_of_a_stopped_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUNDWORK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("GROUNDWORK_NATS_URL", raising=False)
    limits = StartLimits(120.0, 2**40, "")
    with open_data_dir(tmp_path / "data") as data_dir:
        async with private_store(data_dir.nats_store, Path(nats_server_binary()), limits, lambda _: None) as nats:
            await forget(nats, make_signer(), 1)
    assert await asyncio.to_thread(lambda: commands.doctor(accept=False)) == 0
    said = capsys.readouterr().out
    assert "Groundwork is stopped" in said
    assert "FORGET   1 waiting or in hand" in said
    assert "was not looked at" in said
    assert "There is no ledger" in said


def test_a_state_file_of_a_living_supervisor_is_a_running_system(tmp_path: Path) -> None:
    state = json.dumps({"nats_url": "nats://x", "supervisor_pid": os.getpid()})
    with open_data_dir(tmp_path) as data_dir:
        data_dir.state_file.write_text(state)
        assert commands.running_nats_url(tmp_path) == "nats://x"


def test_a_state_file_whose_process_id_is_now_anothers_is_left_over(tmp_path: Path) -> None:
    with open_data_dir(tmp_path) as data_dir:
        data_dir.state_file.write_text(json.dumps({"nats_url": "nats://x", "supervisor_pid": os.getpid()}))
    assert commands.running_nats_url(tmp_path) == ""
    with open_data_dir(tmp_path):  # having looked has locked nothing
        pass
