"""Documents from upload to deletion, over HTTP, through all processes."""

import itertools
from dataclasses import dataclass

import pytest

from kit.testing.pdf_files import pdf_of
from tests.integration.api import Api, problem
from tests.integration.conftest import DATA, Library
from tests.integration.system import Groundwork

pytestmark = pytest.mark.integration


def test_every_supported_format_becomes_ready_with_a_report(library: Library) -> None:
    for name, document in library.documents.items():
        assert document["name"] == name
        assert document["error"] is None
        assert document["report"]["chunk_count"] >= 1
        assert document["report"]["token_count"] > 0
    assert library.documents["report.pdf"]["report"]["page_count"] == 2


def test_progress_of_an_upload_is_told_from_queued_to_ready(api: Api, collection: str) -> None:
    """How many steps a listener sees depends on the machine; that they are told at all is tested where the embedder can wait."""
    text = "\n\n".join(f"Paragraph {number} tells about buoy {number}. " * 12 for number in range(120))
    document = api.upload(collection, "buoys.txt", text.encode())
    states = [event.data for event in api.events("GET", f"/v1/documents/{document['id']}/events")]
    order = {"queued": 0, "processing": 1, "ready": 2}
    assert states[-1]["status"] == "ready"
    assert [order[state["status"]] for state in states] == sorted(order[state["status"]] for state in states)
    progress = [state["progress"] for state in states if state["status"] == "processing"]
    assert progress == sorted(progress)
    assert all(0 <= each < 1 for each in progress)


def test_documents_are_listed_newest_first_in_pages(api: Api, library: Library) -> None:
    path = f"/v1/collections/{library.collection_id}/documents"
    seen, token = [], ""
    for _ in itertools.count():
        page = api.get(path, page_size=2, page_token=token)
        assert len(page["documents"]) <= 2
        seen += page["documents"]
        token = page["next_page_token"]
        if not token:
            break
    assert sorted(each["name"] for each in seen) == sorted(library.documents)
    created = [each["created_at"] for each in seen]
    assert created == sorted(created, reverse=True)


def test_each_format_is_found_by_both_engines_and_explained(api: Api, library: Library) -> None:
    for name, query in {
        "handbook.md": "leased bicycle cost a month",
        "lighthouse.txt": "lighthouse of Roter Sand switched off",
        "recipe.html": "feed the starter with rye flour",
        "stations.csv": "keeper of the station Borkum Pier",
        "report.pdf": "ferry Wangerooge propeller shaft",
    }.items():
        answer = api.search(library.collection_id, query, explain=True)
        best = answer["hits"][0]
        assert best["document_name"] == name, query
        assert answer["strategy"] == "hybrid"
        assert answer["degraded"] == []
        assert best["explain"]["dense_rank"] is not None
        assert best["explain"]["lexical_rank"] is not None
        assert {"embed", "dense", "lexical", "fuse", "total"} <= answer["timings_ms"].keys()


def test_a_hit_in_a_pdf_names_its_page_and_place(api: Api, library: Library) -> None:
    best = api.search(library.collection_id, "propeller shaft of the ferry")["hits"][0]
    assert (best["document_name"], best["page"]) == ("report.pdf", 2)
    assert best["bounding_boxes"], "a PDF has geometry"
    assert {box["page"] for box in best["bounding_boxes"]} == {2}


def test_scripts_and_styles_of_a_page_are_never_indexed(api: Api, library: Library) -> None:
    hits = api.search(library.collection_id, "alert never indexed color red", strategy="lexical")["hits"]
    assert not [hit for hit in hits if "never indexed" in hit["text"] or "color" in hit["text"]]


def test_filter_by_document_holds_in_both_engines(api: Api, library: Library) -> None:
    only = library.id_of("recipe.html")
    for strategy in ("dense", "lexical", "hybrid"):
        answer = api.search(
            library.collection_id,
            "notice period, lighthouse, bake the loaf in an iron pot",
            strategy=strategy,
            filters={"document_ids": [only]},
        )
        assert {hit["document_id"] for hit in answer["hits"]} == {only}, strategy


def test_filter_by_metadata_given_at_upload(api: Api, collection: str) -> None:
    old = api.ingest(collection, "old.txt", b"The harbour fee is 10 euros.", {"year": "2024"})
    new = api.ingest(collection, "new.txt", b"The harbour fee is 12 euros.", {"year": "2026"})
    assert new["metadata"] == {"year": "2026"}
    found = api.search(collection, "harbour fee", filters={"metadata": {"year": ["2026", "2027"]}})["hits"]
    assert {hit["document_id"] for hit in found} == {new["id"]}
    both = api.search(collection, "harbour fee")["hits"]
    assert {hit["document_id"] for hit in both} == {old["id"], new["id"]}


def test_a_deleted_document_is_gone_from_the_very_next_search_and_answer(api: Api, collection: str) -> None:
    kept = api.ingest(collection, "kept.txt", b"The drawbridge of Emden opens at nine in the morning.")
    gone = api.ingest(collection, "gone.txt", b"The ferry to Juist leaves at half past seven.")
    assert api.qa(collection, "When does the ferry to Juist leave?")["status"] == "completed"
    api.http.delete(f"/v1/documents/{gone['id']}").raise_for_status()
    for strategy in ("lexical", "dense", "hybrid"):
        hits = api.search(collection, "When does the ferry to Juist leave?", strategy=strategy)["hits"]
        assert gone["id"] not in {hit["document_id"] for hit in hits}, strategy
    answer = api.qa(collection, "When does the ferry to Juist leave?")
    assert gone["id"] not in {citation["document_id"] for citation in answer["citations"]}
    assert answer["status"] == "refused"
    problem(api.http.get(f"/v1/documents/{gone['id']}"), 404, "DOCUMENT_NOT_FOUND")
    listed = api.get(f"/v1/collections/{collection}/documents")["documents"]
    assert [each["id"] for each in listed] == [kept["id"]]


def test_uploading_the_same_file_again_is_the_same_document(api: Api, collection: str) -> None:
    first = api.ingest(collection, "tide.txt", b"High tide is at noon.")
    again = api.upload(collection, "tide.txt", b"High tide is at noon.")
    assert (again["id"], again["status"]) == (first["id"], "ready")
    assert again["revision_id"] == first["revision_id"]


def test_a_new_version_replaces_the_old_one_in_both_engines(api: Api, collection: str) -> None:
    first = api.ingest(collection, "tide.txt", b"High tide is at quartzmorning.")
    second = api.ingest(collection, "tide.txt", b"High tide is at opalevening.")
    assert second["id"] == first["id"]
    for strategy in ("lexical", "dense"):
        hits = api.search(collection, "when is high tide, quartzmorning or opalevening", strategy=strategy)["hits"]
        assert [hit["text"] for hit in hits] == ["High tide is at opalevening."], strategy


def test_a_new_version_embeds_only_what_changed(api: Api, collection: str) -> None:
    parts = [f"## Part {n}\n\n" + f"The buoy {n} of the fairway was painted in spring. " * 20 for n in range(8)]
    first = api.ingest(collection, "buoys.md", "\n\n".join(parts).encode())
    assert first["report"]["reused_chunk_count"] == 0
    parts[7] = "## Part 7\n\nThe zeppelin of the fairway is new."
    second = api.ingest(collection, "buoys.md", "\n\n".join(parts).encode())
    report = second["report"]
    assert second["id"] == first["id"]
    assert 0 < report["chunk_count"] - report["reused_chunk_count"] < report["chunk_count"] // 2
    for strategy in ("dense", "lexical"):
        hit = api.search(collection, "zeppelin", strategy=strategy)["hits"][0]
        assert "zeppelin" in hit["text"], strategy


def test_the_file_comes_back_as_it_was_sent(api: Api, library: Library) -> None:
    response = api.http.get(f"/v1/documents/{library.id_of('recipe.html')}/content")
    assert response.content == (DATA / "recipe.html").read_bytes()
    assert response.headers["content-type"] == "application/octet-stream", "our page must not run a user's HTML"
    assert response.headers["content-disposition"].startswith("attachment")


@dataclass(frozen=True)
class Unreadable:
    """A file that cannot be read, and what its document says."""

    name: str
    content: bytes
    reason: str


@pytest.mark.parametrize(
    "case",
    [
        Unreadable("empty.txt", b"", "EMPTY_FILE"),
        Unreadable("blank.md", b"  \n\n \t\n", "NO_TEXT"),
        Unreadable("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(64), "IMAGE_BROKEN"),
        Unreadable("letter.docx", b"PK\x03\x04" + bytes(64), "FILE_DAMAGED"),
        Unreadable("secret.pdf", (DATA / "encrypted.pdf").read_bytes(), "PDF_ENCRYPTED"),
        Unreadable("broken.pdf", b"%PDF-1.4\nthis is no pdf", "PDF_BROKEN"),
        Unreadable("cut.pdf", pdf_of([["Half of this is missing."]])[:200], "PDF_BROKEN"),
        Unreadable("scan.pdf", pdf_of([[], []]), "NO_TEXT"),
        Unreadable("not-really.pdf", b"just words that claim to be a pdf", "PDF_BROKEN"),
    ],
    ids=lambda case: case.name,
)
def test_a_file_that_cannot_be_read_fails_with_a_reason_for_people(api: Api, collection: str, case: Unreadable) -> None:
    response = api.send(collection, case.name, case.content)
    if response.status_code == 400:
        body = problem(response, 400, case.reason)
        assert case.name in body["detail"]
        return
    assert response.status_code == 202, response.text
    document = api.settled(response.json()["document"]["id"])
    assert document["status"] == "failed"
    assert document["error"]["reason"] == case.reason
    assert case.name in document["error"]["message"]
    assert api.search(collection, "anything at all")["hits"] == []


def test_a_failed_document_can_be_deleted_and_replaced_by_a_good_one(api: Api, collection: str) -> None:
    failed = api.settled(api.upload(collection, "note.txt", b" ")["id"])
    assert failed["status"] == "failed"
    good = api.ingest(collection, "note.txt", b"The pilot boat is called Wega.")
    assert good["id"] == failed["id"]
    assert good["error"] is None


def test_an_oversized_file_is_refused_while_it_is_sent(model_api: Api) -> None:
    # The system with a model has a small limit, so that the test need not send a hundred megabytes.
    collection = model_api.new_collection()
    problem(model_api.send(collection, "big.txt", b"x" * (3 * 1024 * 1024)), 413, "FILE_TOO_LARGE")
    assert model_api.get(f"/v1/collections/{collection}/documents")["documents"] == []


def test_a_deleted_collection_takes_its_documents_along(api: Api, collection: str) -> None:
    document = api.ingest(collection, "gone.txt", b"The dike reeve is called Hauke Haien.")
    api.http.delete(f"/v1/collections/{collection}").raise_for_status()
    problem(api.http.get(f"/v1/collections/{collection}"), 404, "COLLECTION_NOT_FOUND")
    problem(api.http.get(f"/v1/documents/{document['id']}"), 404, "DOCUMENT_NOT_FOUND")
    again = api.post("/v1/collections", {"id": collection})["id"]
    assert api.search(again, "dike reeve Hauke Haien")["hits"] == []


@dataclass(frozen=True)
class Refused:
    """A request that is wrong, and the problem that says so."""

    method: str
    path: str
    body: object
    status: int
    reason: str


@pytest.mark.parametrize(
    "case",
    [
        Refused("GET", "/v1/documents/0123456789ab", None, 404, "DOCUMENT_NOT_FOUND"),
        Refused("DELETE", "/v1/documents/..%2F..%2Fetc", None, 404, "ROUTE_NOT_FOUND"),
        Refused("GET", "/v1/runs/unknown", None, 400, "VALIDATION_FAILED"),
        Refused("GET", "/v1/runs/*/events", None, 400, "VALIDATION_FAILED"),
        Refused("GET", "/v1/runs/%3E", None, 400, "VALIDATION_FAILED"),
        Refused("POST", "/v1/runs/a.b/cancel", None, 400, "VALIDATION_FAILED"),
        Refused("GET", f"/v1/runs/{'0' * 32}", None, 404, "RUN_NOT_FOUND"),
        Refused("POST", f"/v1/runs/{'0' * 32}/cancel", None, 404, "RUN_NOT_FOUND"),
        Refused("GET", f"/v1/runs/{'0' * 32}/events", None, 404, "RUN_NOT_FOUND"),
        Refused("GET", "/v1/chunks/unknown", None, 404, "CHUNK_NOT_FOUND"),
        Refused("GET", "/v1/threads/0123456789ab", None, 404, "THREAD_NOT_FOUND"),
        Refused("GET", "/v1/collections/Nope%20/documents", None, 400, "VALIDATION_FAILED"),
        Refused("GET", "/v1/collections/default/documents?page_token=%21", None, 400, "BAD_PAGE_TOKEN"),
        Refused("GET", "/v1/collections/default/documents?status=lost", None, 400, "VALIDATION_FAILED"),
        Refused("GET", "/v1/nothing", None, 404, "ROUTE_NOT_FOUND"),
        Refused("PUT", "/v1/qa", {}, 405, "METHOD_NOT_ALLOWED"),
        Refused("POST", "/v1/qa", {}, 400, "VALIDATION_FAILED"),
        Refused("POST", "/v1/qa", {"question": "x" * 8001}, 400, "VALIDATION_FAILED"),
        Refused("POST", "/v1/search", {"query": "a", "top_k": 0}, 400, "VALIDATION_FAILED"),
        Refused("POST", "/v1/search", {"query": "a", "typo": 1}, 400, "VALIDATION_FAILED"),
        Refused("POST", "/v1/search", {"query": "a", "collection_ids": ["nowhere"]}, 404, "COLLECTION_NOT_FOUND"),
        Refused("POST", "/v1/qa", {"question": "a", "collection_ids": ["default", "no"]}, 404, "COLLECTION_NOT_FOUND"),
        Refused("POST", "/v1/collections/nowhere/chat", {"message": "a"}, 404, "COLLECTION_NOT_FOUND"),
        Refused("POST", "/v1/collections", {"id": "../x"}, 400, "VALIDATION_FAILED"),
        Refused("DELETE", "/v1/collections/default", None, 412, "COLLECTION_PROTECTED"),
    ],
    ids=lambda case: f"{case.method} {case.path} {case.reason}",
)
def test_every_refusal_is_a_problem_that_says_what_to_do(api: Api, case: Refused) -> None:
    problem(api.http.request(case.method, case.path, json=case.body), case.status, case.reason)


def test_an_upload_to_no_collection_and_one_without_a_file_are_refused(api: Api, collection: str) -> None:
    problem(api.send("nowhere", "a.txt", b"text"), 404, "COLLECTION_NOT_FOUND")
    path = f"/v1/collections/{collection}/documents"
    problem(api.http.post(path, files={"other": ("a.txt", b"text")}), 400, "BAD_FORM")
    problem(api.http.post(path, content=b"text"), 415, "UNSUPPORTED_CONTENT_TYPE")


def test_hostile_file_names_stay_names(api: Api, collection: str) -> None:
    document = api.ingest(collection, "../../etc/<b>passwd.txt", b"The root of the tree is deep.")
    assert document["name"] == "<b>passwd.txt"
    assert api.search(collection, "root of the tree")["hits"][0]["document_name"] == document["name"]
    problem(api.send(collection, "evil\u202efdp.txt", b"text"), 400, "BAD_NAME")


def test_a_page_of_another_site_may_change_nothing(api: Api, collection: str) -> None:
    path = f"/v1/collections/{collection}/documents"
    foreign = {"Origin": "http://evil.example"}
    problem(api.http.post(path, files={"file": ("a.txt", b"x")}, headers=foreign), 403, "CROSS_ORIGIN")
    problem(api.http.get("/v1/collections", headers={"Host": "evil.example"}), 403, "HOST_NOT_ALLOWED")


def test_readiness_names_every_service(api: Api, system: Groundwork) -> None:
    answer = api.get("/readyz")
    assert answer["status"] == "ready"
    expected = {each["service"] for each in system.state()["services"].values()} - {"nats"}
    assert set(answer["services"]) == expected
    assert {each["state"] for each in answer["services"].values()} == {"serving"}
