"""The whole system with TLS between its services: an upload and a question, new certificates while it runs, and strangers."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kit.testing.certificates import Authority, CertificateFolder, shown_by
from kit.testing.telemetry import collector
from tests.integration.api import Api
from tests.integration.conftest import UNHURRIED
from tests.integration.system import Groundwork, running, wait_until

pytestmark = pytest.mark.integration

REPLICAS = "orchestrator=2"
"""Two addresses in one setting."""
QUESTIONS = 20


def test_the_system_works_over_tls_and_takes_new_certificates(tmp_path: Path, models_dir: Path) -> None:
    authority = Authority()
    files = CertificateFolder(tmp_path / "tls", authority.issue(), [authority])
    collecting = grpc.ssl_server_credentials([tuple(reversed(authority.issue()))])  # type: ignore[list-item]
    with collector(collecting) as collected:
        settings = UNHURRIED | {
            **files.environment(),
            "GROUNDWORK_OTLP_ENDPOINT": collected.endpoint,
            "GROUNDWORK_OTLP_CA_FILE": str(files.ca_file),
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        with (
            running(Groundwork(tmp_path / "data", models_dir.absolute(), settings, REPLICAS)) as system,
            Api.open(system.base_url) as api,
        ):
            collection = api.new_collection()
            api.ingest(collection, "tower.md", b"# The tower\n\nThe tower was built in 1889 by Ilse.")
            _ask(api, collection)
            addresses = {name: each["address"] for name, each in system.state()["services"].items() if name != "nats"}
            _refuses_strangers(addresses["retriever"], authority)

            files.put(authority.issue("renewed"))
            wait_until(
                lambda: all(shown_by(address, files) == files.cert_file.read_bytes() for address in _grpc(addresses)),
                "every service shows the new certificate",
            )
            for _ in range(QUESTIONS):
                _ask(api, collection)
            assert api.get("/readyz")["status"] == "ready"
            wait_until(
                lambda: {span.service for span in collected.spans} >= {"groundwork-gateway", "groundwork-retriever"},
                "spans have come over TLS",
            )


def _ask(api: Api, collection: str) -> None:
    answer = api.post("/v1/qa", {"question": "When was the tower built?", "collection_ids": [collection]})
    assert answer["status"] == "completed"
    assert "1889" in answer["answer"]


def _grpc(addresses: dict[str, str]) -> list[str]:
    return [address for name, address in addresses.items() if name != "gateway"]


def _refuses_strangers(address: str, authority: Authority) -> None:
    trusting = grpc.ssl_channel_credentials(authority.pem)
    for channel in (grpc.insecure_channel(address), grpc.secure_channel(address, trusting)):
        with channel, pytest.raises(grpc.RpcError) as caught:
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)  # type: ignore[no-untyped-call]
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
