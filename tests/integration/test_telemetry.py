"""Traces, as a collector sees them: a question is one trace through all services that work on it, and so is an upload."""

from pathlib import Path

import pytest

from kit.testing.telemetry import collector
from tests.integration.api import Api
from tests.integration.system import Groundwork, running, wait_until

pytestmark = pytest.mark.integration

QUESTION_SPANS = {
    "groundwork-gateway": {"HTTP POST", "/groundwork.orchestrator.v1.OrchestratorService/StartRun"},
    "groundwork-orchestrator": {
        "/groundwork.orchestrator.v1.OrchestratorService/StartRun",
        "run",
        "/groundwork.retriever.v1.RetrieverService/Search",
    },
    "groundwork-retriever": {"/groundwork.retriever.v1.RetrieverService/Search"},
    "groundwork-reranker": {"/groundwork.reranker.v1.RerankerService/Embed"},
}
UPLOAD_SPANS = {
    "groundwork-gateway": {"HTTP POST", "/groundwork.ingest.v1.IngestService/UploadDocument"},
    "groundwork-ingest": {"/groundwork.ingest.v1.IngestService/UploadDocument"},
    "groundwork-ingest-worker": {"/groundwork.retriever.v1.RetrieverService/IndexChunks"},
    "groundwork-retriever": {"/groundwork.retriever.v1.RetrieverService/IndexChunks"},
    "groundwork-reranker": {"/groundwork.reranker.v1.RerankerService/Embed"},
}
"""Some of the spans that must be there, by service."""


def test_a_question_and_an_upload_are_one_trace_each_through_all_services(tmp_path: Path, models_dir: Path) -> None:
    with collector() as collected:
        settings = {"GROUNDWORK_OTLP_ENDPOINT": collected.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        with (
            running(Groundwork(tmp_path / "data", models_dir.absolute(), settings)) as system,
            Api.open(system.base_url) as api,
        ):
            collection = api.new_collection()
            uploaded = api.send(collection, "tower.md", b"# The tower\n\nThe tower was built in 1889 by Ilse.")
            api.settled(uploaded.json()["document"]["id"])
            asked = api.http.post(
                "/v1/qa", json={"question": "When was the tower built?", "collection_ids": [collection]}
            )
            assert asked.json()["status"] == "completed"

            def missing(trace_id: str, expected: dict[str, set[str]]) -> dict[str, set[str]]:
                found = {(span.service, span.name) for span in collected.spans if span.trace_id == trace_id}
                left = {service: {n for n in names if (service, n) not in found} for service, names in expected.items()}
                return {service: names for service, names in left.items() if names}

            for answer, expected in ((asked, QUESTION_SPANS), (uploaded, UPLOAD_SPANS)):
                trace_id = answer.headers["X-Trace-Id"]
                wait_until(
                    lambda trace_id=trace_id, expected=expected: not missing(trace_id, expected),  # type: ignore[misc]
                    "every service has told of its spans",
                    more=lambda trace_id=trace_id, expected=expected: f"missing: {missing(trace_id, expected)}",  # type: ignore[misc]
                )
