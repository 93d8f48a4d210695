"""What every request meets before and around its route: hosts, origins, sizes, errors, health, the console."""

from contextlib import closing
from dataclasses import dataclass, field

import httpx
import pytest
from groundwork.store.v1 import store_pb2
from grpc_health.v1 import health_pb2

from kit.errors import FailedPrecondition
from kit.testing.harness import free_port, running_service
from services.gateway.app import run
from services.gateway.metrics import REQUESTS
from services.gateway.serving.server import bind
from tests.service.gateway.conftest import Settings, World, in_process

QUERY = {"query": "notice"}


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8080", "127.0.0.1:99", "[::1]:8080", "LOCALHOST", "127.0.0.2"]
)
async def test_loopback_names_are_answered(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/livez", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "10.0.0.7",
        "",
        "[",
        "evil.example\\@localhost",
        "localhost/evil",
        "localhost:evil",
    ],
)
async def test_foreign_names_are_refused_against_dns_rebinding(client: httpx.AsyncClient, host: str) -> None:
    for path in ("/", "/v1/runs", "/readyz"):
        answer = await client.get(path, headers={"Host": host})
        assert (answer.status_code, answer.json()["reason"]) == (403, "HOST_NOT_ALLOWED")


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_health_is_told_without_its_body(client: httpx.AsyncClient, path: str) -> None:
    whole, head = await client.get(path), await client.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")


async def test_configured_host_is_answered(settings: Settings) -> None:
    async with in_process(settings(allowed_hosts="groundwork.lan, other.lan")) as client:
        assert (await client.get("/livez", headers={"Host": "Groundwork.lan:8080"})).status_code == 200
        assert (await client.get("/livez", headers={"Host": "third.lan"})).status_code == 403


@dataclass(frozen=True)
class OriginCase:
    headers: dict[str, str]
    status: int


@pytest.mark.parametrize(
    "case",
    [
        OriginCase({}, 200),
        OriginCase({"Origin": "http://127.0.0.1:8080"}, 200),
        OriginCase({"Sec-Fetch-Site": "same-origin"}, 200),
        OriginCase({"Origin": "http://127.0.0.1:3000"}, 403),
        OriginCase({"Origin": "https://evil.example"}, 403),
        OriginCase({"Origin": "null"}, 403),
        OriginCase({"Sec-Fetch-Site": "cross-site"}, 403),
        OriginCase({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
async def test_only_own_pages_may_change_anything(client: httpx.AsyncClient, world: World, case: OriginCase) -> None:
    answer = await client.post("/v1/search", json=QUERY, headers=case.headers)
    assert answer.status_code == case.status
    assert "access-control-allow-origin" not in answer.headers
    upload = await client.post(
        "/v1/collections/default/documents", files={"file": ("a.txt", b"x")}, headers=case.headers
    )
    assert upload.status_code == (202 if case.status == 200 else 403)


async def test_preflight_grants_nothing(client: httpx.AsyncClient) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = await client.options("/v1/search", headers=headers)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


PAGE = "https://app.example.com"


async def test_pages_of_a_listed_origin_may_ask_and_read_and_others_may_not(settings: Settings, world: World) -> None:
    async with in_process(settings(cors_origins=f"{PAGE}, http://localhost:3000")) as client:
        asked = {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        preflight = await client.options("/v1/search", headers={"Origin": PAGE, **asked})
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, PAGE)
        answer = await client.post("/v1/search", json=QUERY, headers={"Origin": PAGE})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
        refused = await client.get("/v1/runs/nothing", headers={"Origin": PAGE})
        assert refused.is_error
        assert refused.headers["access-control-allow-origin"] == PAGE, "the page reads why"
        for stranger in ("https://evil.example", "https://app.example.com.evil.example", "null"):
            assert (await client.post("/v1/search", json=QUERY, headers={"Origin": stranger})).status_code == 403
            denied = await client.options("/v1/search", headers={"Origin": stranger, **asked})
            assert "access-control-allow-origin" not in denied.headers


@pytest.mark.parametrize("listed", ["*", "https://app.example.com/path", "app.example.com", "ftp://a.example"])
def test_what_is_no_origin_cannot_be_listed(settings: Settings, listed: str) -> None:
    with pytest.raises(ValueError, match="is no origin"):
        settings(cors_origins=listed)


@dataclass(frozen=True)
class ProblemCase:
    method: str
    path: str
    status: int
    reason: str
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    mentions: str = ""


CASES = [
    ProblemCase("GET", "/v1/nothing", 404, "ROUTE_NOT_FOUND", mentions="/openapi.json"),
    ProblemCase("GET", "/console/nothing.js", 404, "ROUTE_NOT_FOUND"),
    ProblemCase("GET", "/console/..%2fapi.py", 404, "ROUTE_NOT_FOUND"),
    ProblemCase("PUT", "/v1/search", 405, "METHOD_NOT_ALLOWED", b"{}"),
    ProblemCase("POST", "/v1/search", 400, "MALFORMED_JSON", b"{not json"),
    ProblemCase("POST", "/v1/search", 400, "MALFORMED_JSON", b"[" * 100_000, mentions="send a JSON object"),
    ProblemCase("POST", "/v1/search", 400, "MALFORMED_JSON", b'{"query": "\xff"}', mentions="send a JSON object"),
    ProblemCase("POST", "/v1/search", 400, "VALIDATION_FAILED", b"[]", mentions="it must be an object"),
    ProblemCase("POST", "/v1/search", 400, "VALIDATION_FAILED", b"", mentions="body: it is missing"),
    ProblemCase("POST", "/v1/search", 400, "VALIDATION_FAILED", b"{}", mentions="query"),
    ProblemCase("POST", "/v1/search", 400, "VALIDATION_FAILED", b'{"query": "a", "top_k": 1000}', mentions="top_k"),
    ProblemCase("POST", "/v1/search", 400, "VALIDATION_FAILED", b'{"query": "a", "topk": 1}', mentions="topk: there"),
    ProblemCase("POST", "/v1/search", 400, "VALIDATION_FAILED", b'{"query": "\\ud800"}', mentions="query"),
    ProblemCase("POST", "/v1/qa", 400, "VALIDATION_FAILED", b'{"question": ""}', mentions="question"),
    ProblemCase("POST", "/v1/qa", 400, "VALIDATION_FAILED", b'{"question": "a", "collection_ids": []}'),
    ProblemCase(
        "POST", "/v1/qa", 415, "UNSUPPORTED_CONTENT_TYPE", b'{"question": "a"}', {"Content-Type": "text/plain"}
    ),
    ProblemCase("POST", "/v1/qa", 413, "BODY_TOO_LARGE", b'{"question": "' + b"a" * 1_100_000 + b'"}'),
    ProblemCase("GET", "/v1/runs?page_size=0", 400, "VALIDATION_FAILED", mentions="page_size"),
    ProblemCase("GET", "/v1/collections/default/documents?status=gone", 400, "VALIDATION_FAILED", mentions="status"),
    ProblemCase("GET", "/v1/chunks/c1?window=99", 400, "VALIDATION_FAILED", mentions="window"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.method}-{case.path}-{case.content[:16]!r}")
async def test_every_refusal_is_a_problem_that_says_what_to_do(client: httpx.AsyncClient, case: ProblemCase) -> None:
    answer = await client.request(case.method, case.path, content=case.content, headers=case.headers)
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (answer.status_code, body["reason"]) == (case.status, case.reason)
    assert body["status"] == case.status
    assert len(body["trace_id"]) == 32
    assert {"type", "title", "code", "detail"} <= body.keys()
    assert case.mentions in body["detail"]


async def test_chunked_body_is_bounded_as_well(settings: Settings) -> None:
    async def endless() -> object:
        while True:
            yield b"x" * 10_000

    async with in_process(settings(max_json_bytes=50_000)) as client:
        answer = await client.post("/v1/qa", content=endless(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["reason"]) == (413, "BODY_TOO_LARGE")


async def test_method_that_nobody_knows_makes_no_series_of_its_own(client: httpx.AsyncClient) -> None:
    for method in ("BREW", "X-1", "X-2"):
        assert (await client.request(method, "/v1/runs")).status_code in {400, 405}
    methods = {sample.labels["method"] for metric in REQUESTS.collect() for sample in metric.samples}
    assert "other" in methods
    assert methods <= {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET", "other"}


async def test_bug_in_the_gateway_shows_a_trace_id_and_nothing_else(settings: Settings, world: World) -> None:
    async with in_process(settings()) as client:
        app = client._transport.app  # type: ignore[attr-defined]
        del app.state.backends
        answer = await client.get("/v1/runs")
    assert answer.status_code == 500
    assert answer.json()["trace_id"] in answer.json()["detail"]
    assert "backends" not in answer.text


async def test_ready_when_every_service_is_serving(client: httpx.AsyncClient) -> None:
    answer = await client.get("/readyz")
    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "ready"
    names = {"gateway", "ingest", "ingest-worker", "retriever", "reranker", "orchestrator", "memory", "tools"}
    assert body["services"].keys() == names
    assert {each["state"] for each in body["services"].values()} == {"serving"}


async def test_damaged_data_is_told_without_taking_anything_out_of_service(
    client: httpx.AsyncClient, world: World
) -> None:
    finding = store_pb2.Finding(
        kind="entries_missing",
        where="DOCUMENTS",
        count=144,
        repaired=140,
        detail="144 entries of DOCUMENTS are gone; 140 were put right",
        advice="Restore a backup",
        found_at="2026-11-22T00:00:00+00:00",
    )
    world.store.findings.append(finding)
    answer = await client.get("/readyz")
    assert answer.status_code == 200, "a restart would mend nothing"
    assert answer.json()["status"] == "damaged"
    assert [(each["detail"], each["advice"]) for each in answer.json()["damage"]] == [(finding.detail, finding.advice)]
    await world.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not_ready")


async def test_not_ready_names_the_service_that_is_not(settings: Settings, world: World) -> None:
    async with in_process(settings(ingest_worker_address=f"127.0.0.1:{free_port()}")) as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        states = {name: each["state"] for name, each in answer.json()["services"].items()}
        assert states.pop("ingest-worker") == "unreachable"
        assert set(states.values()) == {"serving"}
        await world.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        answer = await client.get("/readyz")
        assert answer.json()["services"]["tools"]["state"] == "not_serving"


async def test_ready_names_what_is_wrong_in_a_service_that_serves(client: httpx.AsyncClient, world: World) -> None:
    world.health.detail, world.health.kinds = (
        "lexical: the engine does not answer – ask again",
        ("language_model", "other"),
    )
    said = {"detail": world.health.detail, "kinds": ["language_model", "other"]}
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert answer.json()["services"]["retriever"] == {"state": "serving", **said}
    await world.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    answer = await client.get("/readyz")
    assert answer.json()["services"]["retriever"] == {"state": "not_serving", **said}


async def test_console_is_served_under_a_strict_policy_and_revalidated(client: httpx.AsyncClient) -> None:
    page = await client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-cache"
    again = await client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert page.headers["x-content-type-options"] == "nosniff"


async def test_refused_method_is_told_every_method_of_the_path(client: httpx.AsyncClient) -> None:
    answer = await client.put("/v1/documents/d0000001", json={})
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET")


async def test_openapi_lists_what_a_json_route_refuses_and_what_a_stream_carries(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    for path in ("/v1/qa", "/v1/search", "/v1/collections", "/v1/threads", "/v1/collections/{collection_id}/chat"):
        assert {"413", "415"} <= paths[path]["post"]["responses"].keys(), path
    stream = paths["/v1/qa"]["post"]["responses"]["200"]["content"]["text/event-stream"]
    assert stream["schema"] == {"type": "string"}
    assert stream["x-event-schemas"]["answer"] == {"$ref": "#/components/schemas/AnswerEvent"}
    file = paths["/v1/documents/{document_id}/content"]["get"]["responses"]["200"]["content"]
    assert {"application/octet-stream", "application/pdf"} <= file.keys()


async def test_openapi_documents_every_route_with_its_errors(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    operations = [
        (f"{method} {path}", operation)
        for path, each in document["paths"].items()
        for method, operation in each.items()
    ]
    assert len(operations) >= 25
    for name, operation in operations:
        assert operation.get("description"), name
        assert "422" not in operation["responses"], name
        if " /v1/" in name:
            error = operation["responses"]["503"]["content"]["application/problem+json"]["schema"]
            assert error == {"$ref": "#/components/schemas/Problem"}
    for reference in _references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas, reference
    upload = document["paths"]["/v1/collections/{collection_id}/documents"]["post"]
    assert "multipart/form-data" in upload["requestBody"]["content"]


def _references(node: object) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [each for value in node.values() for each in _references(value)]
    return [each for value in node for each in _references(value)] if isinstance(node, list) else []


async def test_port_in_use_is_said_before_anything_starts(settings: Settings) -> None:
    with closing(bind("127.0.0.1", 0)) as taken:
        taken.listen()
        with pytest.raises(FailedPrecondition, match="GROUNDWORK_PORT"):
            await run(settings(port=taken.getsockname()[1]))


async def test_whole_process_serves_and_drains(settings: Settings) -> None:
    port, grpc_port = free_port(), free_port()
    changed = settings(port=port, grpc_address=f"127.0.0.1:{grpc_port}", drain_grace_s=1)
    async with running_service(run, changed), httpx.AsyncClient(timeout=60) as client:
        assert (await client.get(f"http://127.0.0.1:{port}/readyz")).json()["status"] == "ready"
