"""Services of a running system that die, one after the other."""

import os
import signal

import pytest

from tests.integration.api import Api
from tests.integration.system import Groundwork, wait_until

pytestmark = pytest.mark.integration


def is_found_by_both_engines(api: Api, collection: str) -> bool:
    response = api.http.post(
        "/v1/search", json={"query": "notice period during probation", "collection_ids": [collection]}
    )
    return response.status_code == 200 and response.json()["hits"] != [] and response.json()["degraded"] == []


@pytest.mark.parametrize("name", ["gateway", "retriever", "nats", "reranker", "memory", "ingest"])
def test_a_service_that_dies_is_started_again_and_answers_as_before(
    model_system: Groundwork, model_api: Api, handbook: str, name: str
) -> None:
    pid = int(model_system.service(name)["pid"])
    os.kill(pid, signal.SIGKILL)
    model_system.wait_until_up(name, not_pid=pid)
    model_system.wait_until_ready()
    assert f"{name:<15} died" in model_system.printed()
    # The others' connections come back within a second of backoff; until then answers are degraded, and say so.
    wait_until(lambda: is_found_by_both_engines(model_api, handbook), "search is whole again")
    document = model_api.ingest(handbook, f"after-{name}.txt", f"After the death of {name} life goes on.".encode())
    model_api.http.delete(f"/v1/documents/{document['id']}").raise_for_status()
