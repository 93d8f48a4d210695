"""Every plain route over real gRPC: what a client sends arrives, what a service answers comes back in the public shape."""

from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.ingest.v1 import ingest_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb

from kit.access.principal import OPERATOR, Principal
from kit.errors import NotFound, ResourceExhausted
from tests.service.gateway.conftest import World
from tests.service.gateway.fakes import AT, NATS_DOWN, OTHER_RUN_ID, RUN_ID, document


async def test_document_is_shown_in_its_public_shape(client: httpx.AsyncClient, world: World) -> None:
    report = ingest_pb2.IngestReport(chunk_count=3, pages=[ingest_pb2.PageStatus(page=1, status="text")], attempts=1)
    world.ingest.documents["d0000001"] = document(
        status=ingest_pb2.DOCUMENT_STATUS_FAILED,
        error=ingest_pb2.DocumentError(reason="PDF_ENCRYPTED", message="it is encrypted; send it without a password"),
        report=report,
        metadata={"year": "2026"},
    )
    answer = await client.get("/v1/documents/d0000001")
    assert answer.status_code == 200
    body = answer.json()
    assert body["id"] == "d0000001"
    assert body["status"] == "failed"
    assert body["error"] == {"reason": "PDF_ENCRYPTED", "message": "it is encrypted; send it without a password"}
    assert body["report"]["chunk_count"] == 3
    assert body["report"]["pages"] == [{"page": 1, "status": "text"}]
    assert body["metadata"] == {"year": "2026"}
    assert body["revision_id"] is None


async def test_document_without_report_and_error_has_an_empty_report_and_null_error(
    client: httpx.AsyncClient, world: World
) -> None:
    world.ingest.documents["d0000001"] = document()
    body = (await client.get("/v1/documents/d0000001")).json()
    assert body["error"] is None
    assert body["report"]["chunk_count"] == 0


async def test_times_have_as_many_decimals_on_a_whole_second_as_within_it(
    client: httpx.AsyncClient, world: World
) -> None:
    within = Timestamp(seconds=AT.seconds, nanos=47_123_456)
    world.ingest.documents["d0000001"] = document(created_at=AT, updated_at=within)
    body = (await client.get("/v1/documents/d0000001")).json()
    assert (body["created_at"], body["updated_at"]) == ("2025-06-15T15:06:40.000Z", "2025-06-15T15:06:40.047Z")


async def test_documents_are_listed_by_page_and_status(client: httpx.AsyncClient, world: World) -> None:
    world.ingest.documents = {
        "d0000001": document("d0000001", status=ingest_pb2.DOCUMENT_STATUS_READY),
        "d0000002": document("d0000002", status=ingest_pb2.DOCUMENT_STATUS_FAILED),
        "d0000003": document("d0000003", status=ingest_pb2.DOCUMENT_STATUS_READY),
    }
    failed = (await client.get("/v1/collections/default/documents?status=failed")).json()
    assert [each["id"] for each in failed["documents"]] == ["d0000002"]
    assert failed["next_page_token"] is None
    first = (await client.get("/v1/collections/default/documents?page_size=2")).json()
    assert len(first["documents"]) == 2
    assert first["next_page_token"] == "after-2"


async def test_document_is_deleted_and_reindexed(client: httpx.AsyncClient, world: World) -> None:
    world.ingest.documents["d0000001"] = document()
    again = await client.post("/v1/documents/d0000001/reindex")
    assert (again.status_code, again.json()["document"]["id"]) == (202, "d0000001")
    assert (await client.delete("/v1/documents/d0000001")).status_code == 204
    assert (await client.get("/v1/documents/d0000001")).status_code == 404


@dataclass(frozen=True)
class DownloadCase:
    media_type: str
    sent_as: str


@pytest.mark.parametrize(
    "case",
    [
        DownloadCase("application/pdf", "application/pdf"),
        DownloadCase("text/plain", "text/plain; charset=utf-8"),
        DownloadCase("text/html", "application/octet-stream"),
        DownloadCase("image/svg+xml", "application/octet-stream"),
    ],
)
async def test_download_never_runs_as_our_page(client: httpx.AsyncClient, world: World, case: DownloadCase) -> None:
    world.ingest.documents["d0000001"] = document(name='docs/né "w".pdf', media_type=case.media_type)
    world.ingest.files["d0000001"] = b"hello world"
    answer = await client.get("/v1/documents/d0000001/content")
    assert answer.content == b"hello world"
    assert answer.headers["content-type"] == case.sent_as
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''n%C3%A9%20%22w%22.pdf"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-length"] == "11"


async def test_collections_are_made_listed_and_removed(client: httpx.AsyncClient) -> None:
    made = await client.post("/v1/collections", json={"id": "contracts", "name": "Contracts"})
    assert (made.status_code, made.headers["location"]) == (201, "/v1/collections/contracts")
    assert made.json()["id"] == "contracts"
    assert (await client.get("/v1/collections")).json()["collections"][0]["id"] == "default"
    assert (await client.get("/v1/collections/contracts")).json()["name"] == "contracts"
    assert (await client.delete("/v1/collections/contracts")).status_code == 204
    assert (await client.delete("/v1/collections/large")).status_code == 202
    assert (await client.post("/v1/collections", json={"id": "default"})).status_code == 409
    assert (await client.delete("/v1/collections/default")).json()["reason"] == "COLLECTION_PROTECTED"


async def test_collections_say_whose_they_are_and_who_may_read_them(client: httpx.AsyncClient) -> None:
    found = (await client.get("/v1/collections/contracts")).json()
    assert (found["owner"], found["visibility"]) == ("local-user", "private")
    old = (await client.get("/v1/collections/old")).json()
    assert (old["owner"], old["visibility"]) == (None, "tenant")


async def test_collection_is_renamed_and_shared_by_its_owner(client: httpx.AsyncClient, world: World) -> None:
    changed = await client.patch("/v1/collections/contracts", json={"name": "Treaties", "visibility": "tenant"})
    assert (changed.status_code, changed.json()["visibility"]) == (200, "tenant")
    await client.patch("/v1/collections/contracts", json={"name": "Treaties"})
    visibilities = [each.visibility for each in world.ingest.updates]
    assert visibilities == [ingest_pb2.COLLECTION_VISIBILITY_TENANT, ingest_pb2.COLLECTION_VISIBILITY_UNSPECIFIED]
    refused = await client.patch("/v1/collections/shared", json={"visibility": "private"})
    assert (refused.status_code, refused.json()["reason"]) == (403, "NOT_YOURS")
    assert (await client.patch("/v1/collections/nope", json={"name": "Mine"})).status_code == 404
    assert (await client.patch("/v1/collections/contracts", json={"visibility": "friends"})).status_code == 400


async def test_collection_that_allows_local_models_only_says_so(client: httpx.AsyncClient, world: World) -> None:
    for said in (True, False):
        changed = await client.patch("/v1/collections/contracts", json={"local_models_only": said})
        assert (changed.status_code, changed.json()["local_models_only"]) == (200, said)
    await client.patch("/v1/collections/contracts", json={"name": "Contracts"})
    assert [each.HasField("local_models_only") for each in world.ingest.updates] == [True, True, False]


async def test_mode_of_memory_is_the_requests_else_that_of_the_collection_that_shows_least(
    client: httpx.AsyncClient, world: World
) -> None:
    changed = await client.patch("/v1/collections/contracts", json={"memory": "off"})
    assert (changed.status_code, changed.json()["memory"]) == (200, "off")
    assert (await client.patch("/v1/collections/contracts", json={"memory": "unset"})).json()["memory"] is None
    assert [each.memory for each in world.ingest.updates] == ["off", ""]
    assert (await client.patch("/v1/collections/contracts", json={"memory": "sometimes"})).status_code == 400
    world.ingest.memory = {"contracts": "always", "papers": "agentic"}
    for path, body in (
        ("/v1/chat", {"message": "Hi", "collection_ids": ["contracts", "papers", "others"]}),
        ("/v1/chat", {"message": "Hi", "collection_ids": ["contracts"], "memory": "off"}),
        ("/v1/collections/contracts/chat", {"message": "Hi"}),
        ("/v1/chat", {"message": "Hi", "collection_ids": ["others"]}),
    ):
        await client.post(path, json=body, headers={"Accept": "application/json"})
    assert [each.memory for each in world.orchestrator.requests] == ["agentic", "off", "always", ""]


async def test_qa_answers_with_citations(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.post("/v1/qa", json={"question": "How long?", "collection_ids": ["default"]})
    assert answer.status_code == 200
    body = answer.json()
    assert body["run_id"] == RUN_ID
    assert body["answer"] == "Four weeks [1]."
    assert body["citations"][0]["number"] == 1
    assert body["citations"][0]["document_name"] == "handbook.pdf"
    assert body["citations"][0]["page"] is None
    assert body["support_status"] == "supported"
    assert body["usage"]["seconds"] == 0.5
    assert body["method"] == "extractive"
    assert body["status"] == "completed"
    assert body["degraded"] == [{"part": "rerank", "reason": "RERANKER_UNAVAILABLE", "message": "fused order"}]
    assert world.orchestrator.requests[0].mode == run_pb.RUN_MODE_QA


@dataclass(frozen=True)
class EndCase:
    status: Any
    http_status: int
    reason: str
    error: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    "case",
    [
        EndCase(run_pb.RUN_STATUS_CANCELLED, 499, "RUN_CANCELLED"),
        EndCase(run_pb.RUN_STATUS_TIMEOUT, 504, "RUN_TIMEOUT"),
        EndCase(run_pb.RUN_STATUS_FAILED, 500, "RUN_FAILED"),
        EndCase(
            run_pb.RUN_STATUS_FAILED,
            503,
            "RETRIEVER_UNAVAILABLE",
            {"code": "UNAVAILABLE", "reason": "RETRIEVER_UNAVAILABLE", "message": "search is down"},
        ),
    ],
)
async def test_qa_that_ended_without_an_answer_is_a_problem(
    client: httpx.AsyncClient, world: World, case: EndCase
) -> None:
    log = world.orchestrator.log[:3]
    if case.error:
        log.append(run_pb.RunEvent(run_id=RUN_ID, seq=4, error=run_pb.RunError(**case.error)))
    log.append(run_pb.RunEvent(run_id=RUN_ID, seq=5, done=run_pb.Done(status=case.status)))
    world.orchestrator.log = log
    answer = await client.post("/v1/qa", json={"question": "How long?"})
    assert answer.status_code == case.http_status
    assert answer.json()["reason"] == case.reason
    assert answer.json()["run_id"] == RUN_ID


async def test_runs_are_listed_shown_and_cancelled(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.get("/v1/runs")).json()["runs"][0]["id"] == RUN_ID
    run = (await client.get(f"/v1/runs/{RUN_ID}")).json()
    assert (run["status"], run["mode"], run["thread_id"], run["finished_at"]) == ("running", "qa", None, None)
    assert run["subject"] == "ann"
    assert (await client.post(f"/v1/runs/{RUN_ID}/cancel")).status_code == 202
    assert world.orchestrator.cancelled == [RUN_ID]
    assert (await client.get(f"/v1/runs/{OTHER_RUN_ID}")).json()["reason"] == "RUN_NOT_FOUND"
    assert (await client.get(f"/v1/runs/{OTHER_RUN_ID}/events")).status_code == 404


async def test_run_is_deleted(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.delete(f"/v1/runs/{RUN_ID}")).status_code == 204
    assert world.orchestrator.deleted == [RUN_ID]


async def test_forgotten_run_is_shown_as_such_and_its_events_are_not_found(
    client: httpx.AsyncClient, world: World
) -> None:
    world.orchestrator.status = run_pb.RUN_STATUS_COMPLETED
    world.orchestrator.forgotten_at = Timestamp(seconds=1_800_000_000)
    world.orchestrator.attach_failures = [NotFound("the events of the run were erased", reason="RUN_FORGOTTEN")]
    run = (await client.get(f"/v1/runs/{RUN_ID}")).json()
    assert (run["status"], run["forgotten_at"]) == ("completed", "2027-01-15T08:00:00.000Z")
    events = await client.get(f"/v1/runs/{RUN_ID}/events")
    assert (events.status_code, events.json()["reason"]) == (404, "RUN_FORGOTTEN")


@pytest.mark.parametrize("status", [run_pb.RUN_STATUS_UNKNOWN, 99])
async def test_state_of_a_newer_version_is_shown_as_unknown(
    client: httpx.AsyncClient, world: World, status: Any
) -> None:
    world.orchestrator.status = status
    assert (await client.get(f"/v1/runs/{RUN_ID}")).json()["status"] == "unknown"
    assert [run["status"] for run in (await client.get("/v1/runs")).json()["runs"]] == ["unknown"]


async def test_threads_are_made_listed_shown_renamed_and_removed(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/threads", json={"title": "Notice"})).status_code == 201
    assert (await client.post("/v1/threads")).status_code == 201
    listed = (await client.get("/v1/threads")).json()
    assert (listed["threads"][0]["id"], listed["next_page_token"]) == ("0123456789ab", "more")
    thread = (await client.get("/v1/threads/0123456789ab")).json()
    question, answer = thread["messages"]
    assert (question["role"], question["method"], question["answer_status"]) == ("user", None, None)
    assert (answer["method"], answer["answer_confidence"], answer["answer_status"]) == ("extractive", 0.5, "uncertain")
    assert answer["support_status"] == "unknown"
    assert question["verification"] is None
    assert [each["verdict"] for each in answer["verification"]["sentences"]] == ["contradicted"]
    assert (await client.patch("/v1/threads/0123456789ab", json={"title": "Other"})).json()["title"] == "Other"
    assert (await client.delete("/v1/threads/0123456789ab")).status_code == 204
    assert (await client.get("/v1/threads/ffffffffffff")).json()["reason"] == "THREAD_NOT_FOUND"


async def test_services_are_called_as_the_local_user(client: httpx.AsyncClient, world: World) -> None:
    await client.post("/v1/collections/default/documents", files={"file": ("a.txt", b"hello")})
    assert world.ingest.callers == [Principal("local", "local-user", frozenset({OPERATOR}))]


async def test_unavailable_service_is_503_with_retry_after(client: httpx.AsyncClient, world: World) -> None:
    world.orchestrator.start_failure = NATS_DOWN
    for accept in ("application/json", "text/event-stream"):
        answer = await client.post("/v1/qa", json={"question": "How long?"}, headers={"Accept": accept})
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["reason"] == "NATS_UNAVAILABLE"


async def test_killed_service_is_503_with_retry_after(client: httpx.AsyncClient, world: World) -> None:
    await world.kill()
    answer = await client.post("/v1/qa", json={"question": "How long?"})
    assert answer.status_code == 503
    assert "retry-after" in answer.headers
    assert "127.0.0.1" not in answer.text
    upload = await client.post("/v1/collections/default/documents", files={"file": ("a.txt", b"hello")})
    assert upload.status_code == 503
    assert "retry-after" in upload.headers


async def test_busy_service_is_429_with_retry_after(client: httpx.AsyncClient, world: World) -> None:
    world.retriever.failure = ResourceExhausted("too many searches", reason="TOO_MANY_SEARCHES")
    answer = await client.post("/v1/search", json={"query": "notice"})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "2")


async def test_bug_in_a_service_shows_a_trace_id_and_nothing_else(client: httpx.AsyncClient, world: World) -> None:
    world.retriever.failure = RuntimeError("secret connection string")
    answer = await client.post("/v1/search", json={"query": "notice"})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["trace_id"] in answer.json()["detail"]


async def test_thinking_without_degradation_adds_no_note(client: httpx.AsyncClient, world: World) -> None:
    log = world.orchestrator.log
    log[1].retrieval.ClearField("degraded")
    log[2].thinking.ClearField("degraded")
    assert (await client.post("/v1/qa", json={"question": "How long?"})).json()["degraded"] == []


def dead_letter(id_: str, **fields: Any) -> ingest_pb2.DeadLetter:
    defaults = {"document_id": "d0000001", "collection_id": "default", "reason": "WORKER_DIED", "deaths": 5}
    return ingest_pb2.DeadLetter(dead_letter_id=id_, **{**defaults, **fields})


async def test_jobs_are_counted_and_dead_letters_listed(client: httpx.AsyncClient, world: World) -> None:
    world.ingest.dead_letters = {
        "1e000001": dead_letter("1e000001", stage="embed"),
        "1e000002": dead_letter("1e000002", reason="INTERNAL"),
    }
    counts = (await client.get("/v1/jobs")).json()
    assert counts == {"queued_count": 2, "processing_count": 0, "dead_letter_count": 2, "oldest_queued_at": None}
    page = (await client.get("/v1/jobs/dead?reason=WORKER_DIED")).json()
    (letter,) = page["dead_letters"]
    assert (letter["id"], letter["reason"], letter["deaths"], letter["stage"]) == (
        "1e000001",
        "WORKER_DIED",
        5,
        "embed",
    )
    assert page["next_page_token"] is None
    assert (await client.get("/v1/jobs/dead?page_size=1")).json()["next_page_token"] == "more"


async def test_dead_letter_is_queued_again_and_says_what_became_of_it(client: httpx.AsyncClient, world: World) -> None:
    world.ingest.documents["d0000001"] = document("d0000001")
    world.ingest.dead_letters = {
        "1e000001": dead_letter("1e000001"),
        "1e000002": dead_letter("1e000002", document_id="gone"),
    }
    done = await client.post("/v1/jobs/dead/1e000001/requeue")
    assert (done.status_code, done.json()["outcome"], done.json()["document"]["id"]) == (202, "requeued", "d0000001")
    assert (await client.post("/v1/jobs/dead/1e000002/requeue")).json() == {
        "outcome": "document_deleted",
        "document": None,
    }
    unknown = await client.post("/v1/jobs/dead/1e000003/requeue")
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "DEAD_LETTER_NOT_FOUND")


async def test_many_dead_letters_are_queued_again(client: httpx.AsyncClient, world: World) -> None:
    world.ingest.dead_letters = {"1e000001": dead_letter("1e000001")}
    done = await client.post("/v1/jobs/dead/requeue", json={"collection_id": "default", "reason": "WORKER_DIED"})
    assert (done.status_code, done.json()) == (202, {"requeued_count": 1, "dropped_count": 0, "remaining_count": 1})
    (request,) = world.ingest.requeues
    assert (request.collection_id, request.reason) == ("default", "WORKER_DIED")
    assert (await client.post("/v1/jobs/dead/requeue", json={"nonsense": 1})).status_code == 400


async def test_embedding_model_of_a_collection_is_shown_with_progress_and_figures(client: httpx.AsyncClient) -> None:
    shown = (await client.get("/v1/collections/contracts/embedding")).json()
    assert (shown["model"], shown["other_model"], shown["stage"]) == ("old-model", "new-model", "ready")
    assert shown["problem"] is None
    assert shown["in_other_model"] == {"document_count": 2, "chunk_count": 7}
    assert shown["searched"] == {"old-model": {"document_count": 2, "chunk_count": 7}}
    assert shown["evaluation"]["vectors"]["after"] == {"ndcg_at_10": 0.75, "mrr_at_10": 0.5}
    assert (await client.get("/v1/collections/nope/embedding")).json()["reason"] == "COLLECTION_NOT_FOUND"


async def test_embedding_model_is_changed_compared_swapped_rolled_back_and_dropped(
    client: httpx.AsyncClient, world: World
) -> None:
    path = "/v1/collections/contracts/embedding"
    questions = [{"text": "Who signed?", "document_ids": ["d1"]}]
    changed = await client.post(path, json={"model": "new-model", "questions": questions, "margin": 0.1})
    assert changed.status_code == 202
    assert (await client.post(f"{path}/evaluate")).status_code == 202
    assert (await client.post(f"{path}/swap", json={"force": True})).status_code == 200
    assert (await client.post(f"{path}/swap")).status_code == 200
    assert (await client.post(f"{path}/rollback")).status_code == 200
    assert (await client.delete(path)).status_code == 202
    change, evaluation, forced, swap, *_ = commands = world.retriever.commands
    assert [type(each).__name__.removesuffix("CollectionModelRequest") for each in commands] == [
        "Change",
        "Evaluate",
        "Swap",
        "Swap",
        "RollBack",
        "Drop",
    ]
    assert {each.collection_id for each in commands} == {"contracts"}
    assert (change.model, change.margin, change.questions[0].document_ids) == ("new-model", 0.1, ["d1"])
    assert (list(evaluation.questions), evaluation.margin) == ([], 0.02)
    assert (forced.force, swap.force) == (True, False)


async def test_embedding_model_that_cannot_be_changed_is_said_why(client: httpx.AsyncClient) -> None:
    path = "/v1/collections/contracts/embedding"
    refused = await client.post(path, json={"model": "old-model"})
    assert (refused.status_code, refused.json()["reason"]) == (412, "EMBEDDING_UNCHANGED")
    assert (await client.post(path, json={"model": "new-model", "margin": 2})).status_code == 400
    assert (
        await client.post(path, json={"model": "x", "questions": [{"text": " ", "document_ids": ["d"]}]})
    ).status_code == 400


async def test_collection_is_shared_with_a_group_and_no_longer(client: httpx.AsyncClient) -> None:
    members = "/v1/collections/contracts/members"
    sales = {"kind": "group", "name": "/sales", "role": "editor"}
    assert (await client.get(members)).json() == {"members": []}
    assert (await client.put(members, json=sales)).json() == {"members": [sales]}
    assert (await client.get(members)).json() == {"members": [sales]}
    gone = await client.delete(members, params={"kind": "group", "name": "/sales"})
    assert gone.json() == {"members": []}
    unclear = await client.put(members, json={**sales, "role": "king"})
    assert (unclear.status_code, unclear.json()["errors"][0]["field"]) == (400, "role")


async def test_document_gets_an_access_list_and_loses_it(client: httpx.AsyncClient) -> None:
    access = "/v1/documents/d0000001/access"
    everybody = {"restricted": False, "subjects": [], "groups": []}
    assert (await client.get(access)).json() == everybody
    listed = {"subjects": ["anna"], "groups": ["/sales"]}
    assert (await client.put(access, json=listed)).json() == {"restricted": True, **listed}
    assert (await client.get(access)).json() == {"restricted": True, **listed}
    assert (await client.put(access, json={})).json() == {**everybody, "restricted": True}
    assert (await client.delete(access)).json() == everybody


async def test_versions_of_a_document_are_listed_with_who_asked_for_them(
    client: httpx.AsyncClient, world: World
) -> None:
    world.ingest.documents["d0000001"] = document()
    world.ingest.revisions["d0000001"] = [
        ingest_pb2.DocumentRevision(
            revision_id="r2",
            number=2,
            state=ingest_pb2.REVISION_STATE_ACTIVE,
            sha256="cd" * 32,
            queued_by="anna",
            queued_at=AT,
            ended_at=AT,
            chunk_count=3,
        ),
        ingest_pb2.DocumentRevision(revision_id="r1", number=1, state=ingest_pb2.REVISION_STATE_REPLACED),
    ]
    newest, oldest = (await client.get("/v1/documents/d0000001/revisions")).json()["revisions"]
    assert (newest["id"], newest["state"], newest["queued_by"]) == ("r2", "active", "anna")
    assert newest["queued_at"] == newest["ended_at"] == "2025-06-15T15:06:40.000Z"
    assert (oldest["state"], oldest["queued_by"], oldest["queued_at"]) == ("replaced", None, None)
    unknown = await client.get("/v1/documents/d0000009/revisions")
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "DOCUMENT_NOT_FOUND")


@pytest.mark.parametrize(("form", "beginning"), [("markdown", b"# "), ("docx", b"PK")])
async def test_conversation_is_saved_as_a_document(client: httpx.AsyncClient, form: str, beginning: bytes) -> None:
    answer = await client.get("/v1/threads/0123456789ab/export", params={"format": form, "language": "he"})
    assert (answer.status_code, answer.content[:2]) == (200, beginning)
    assert f"conversation-0123456789ab.{ {'markdown': 'md'}.get(form, form) }" in answer.headers["content-disposition"]
    unknown = await client.get("/v1/threads/0123456789ab/export", params={"format": "pdf"})
    assert (unknown.status_code, unknown.json()["errors"][0]["field"]) == (400, "format")
