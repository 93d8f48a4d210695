"""More of a service and fewer, by hand and by load."""

import re
import time
from collections import Counter
from collections.abc import Mapping

import pytest

from tests.cluster.cluster import Cluster, CommandFailed, Json, Pod
from tests.cluster.facts import User
from tests.cluster.release import NAME, Release
from tests.cluster.report import Report
from tests.cluster.traffic import Load, Traffic
from tests.cluster.unbroken import used_meanwhile

pytestmark = [pytest.mark.timeout(2400), pytest.mark.long]
SCALED = ("gateway", "orchestrator", "reranker", "ingest", "ingest-worker", "memory", "tools")
WORK = {
    "gateway": "groundwork_gateway_requests_total",
    "ingest-worker": "groundwork_ingest_documents_total",
}
"""What counts the work of a service; of the others the calls that it has answered."""
CALLS = "groundwork_grpc_server_requests_total"
CONNECTION_AGE_S = 10
"""So long it takes at most until a new pod is asked: callers renew their connections, and look their names up, so often."""
SHARE_MIN = 0.1
"""Of the work, of each of three pods. A fair share is a third."""
WAITING_DOCUMENTS = 150
"""More than the first workers are done with before the others have started."""
NEW_CLIENTS = 60
"""Of the gateway; others use it meanwhile."""
READ_METRICS = (
    "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9000/metrics', timeout=5).read().decode())"
)


@pytest.fixture(scope="module")
def renewing(release: Release) -> Release:
    """The installation with connections that are renewed often."""
    sections = ("orchestrator", "retriever", "reranker", "ingest", "ingestWorker", "memory", "tools")
    release.upgrade({f"{section}.env.GROUNDWORK_MAX_CONNECTION_AGE_S": str(CONNECTION_AGE_S) for section in sections})
    return release


@pytest.mark.parametrize("component", SCALED)
def test_no_request_fails_while_a_service_is_scaled(
    component: str, renewing: Release, operator_key: str, report: Report
) -> None:
    cluster, shares = renewing.cluster, dict[str, float]()

    def up_and_down() -> None:
        _scale(cluster, component, 3)
        shares.update(_shares(renewing, component, operator_key))
        _scale(cluster, component, 1)

    _scale(cluster, component, 1)
    about = (
        "`kubectl scale` from one to three pods and back, while two ask, one talks and two upload; nobody tries again."
    )
    with report.section(f"Scaling {component} 1 → 3 → 1", about) as section:
        try:
            used_meanwhile(renewing, operator_key, up_and_down, section)
        finally:
            _scale(cluster, component, 2)
        section.figure(
            "share of the work of each of three pods", ", ".join(f"{share:.0%}" for share in shares.values())
        )
        assert len(shares) == 3
        assert min(shares.values()) >= SHARE_MIN, shares


def _scale(cluster: Cluster, component: str, count: int) -> None:
    cluster.kubectl("scale", f"deployment/{NAME}-{component}", f"--replicas={count}")

    def scaled(pods: list[Pod]) -> bool:
        return len(pods) == count and all(pod.is_ready for pod in pods)

    cluster.until_pods(scaled, f"{count} of {component}", component=component)


def _shares(release: Release, component: str, key: str) -> dict[str, float]:
    """Of each pod its part of what all do together from now on, once they have had time to be found."""
    cluster = release.cluster
    time.sleep(2 * CONNECTION_AGE_S)  # nothing tells when the last caller has renewed its connection
    pods = [pod for pod in cluster.pods(component) if pod.is_ready]
    before = {pod.name: _work(cluster, pod) for pod in pods}
    if component == "gateway":
        _come_anew(release, key)
    deadline = time.monotonic() + 120
    while True:
        done = {pod.name: _work(cluster, pod) - before[pod.name] for pod in pods}
        total = sum(done.values())
        if total >= 60 or (total and time.monotonic() > deadline):
            return {name: each / total for name, each in done.items()}
        time.sleep(1)  # metrics offer no event


def _come_anew(release: Release, key: str) -> None:
    """New clients. Those that are there keep their connections, and so their gateways, for as long as they like."""
    for _ in range(NEW_CLIENTS):
        with release.api(key) as api:
            api.get("/v1/collections")


def _work(cluster: Cluster, pod: Pod) -> float:
    text = cluster.kubectl("exec", pod.name, "--", "python", "-c", READ_METRICS)
    name = WORK.get(pod.component, CALLS)
    lines = [line for line in text.splitlines() if line.startswith(name) and "Health/" not in line]
    return sum(float(re.split(r"\s+", line.rpartition("}")[2].strip() or line)[0]) for line in lines)


def test_autoscaler_follows_the_load_up_and_down(release: Release, users: list[User], report: Report) -> None:
    """By processor time, as the metrics server has it."""
    values = {
        "orchestrator.autoscaling.enabled": "true",
        "orchestrator.autoscaling.minReplicas": "1",
        "orchestrator.autoscaling.maxReplicas": "3",
        "orchestrator.autoscaling.targetCPUPercent": "50",
        "autoscaling.behavior.scaleDown.stabilizationWindowSeconds": "15",
        "autoscaling.behavior.scaleDown.policies[0].type": "Pods",
        "autoscaling.behavior.scaleDown.policies[0].value": "1",
        "autoscaling.behavior.scaleDown.policies[0].periodSeconds": "15",
        "orchestrator.resources.requests.cpu": "50m",
    }
    about = "A HorizontalPodAutoscaler of the orchestrator with a small request of processor time: eight ask, then nobody does."
    with report.section("Scaling by load", about) as section:
        release.upgrade(values)
        try:
            _until_count(release.cluster, "orchestrator", 1)
            began = time.monotonic()
            traffic = Traffic(lambda: release.addresses, users, Load(uploaders=0, uploads=0, askers=8, readers=0))
            with traffic.running():
                _until_count(release.cluster, "orchestrator", 3)
                section.figure("seconds until three are ready", time.monotonic() - began)
            assert not traffic.journal.failures, traffic.journal.failures[:10]
            began = time.monotonic()
            _until_count(release.cluster, "orchestrator", 1)
            section.figure("seconds after the load until one is left", time.monotonic() - began)
            section.figure("requests", traffic.journal.answers)
            section.figure("failed", len(traffic.journal.failures))
        finally:
            release.upgrade({"orchestrator.autoscaling.enabled": "false", "orchestrator.replicas": "2"})


def test_ingest_worker_follows_the_lag_of_the_queue(release: Release, users: list[User], report: Report) -> None:
    """By KEDA, which asks NATS how many jobs wait."""
    if not _has_keda(release.cluster):
        pytest.skip("the cluster has no KEDA")
    values = {
        "ingestWorker.autoscaling.enabled": "true",
        "ingestWorker.autoscaling.keda.enabled": "true",
        "ingestWorker.autoscaling.minReplicas": "1",
        "ingestWorker.autoscaling.maxReplicas": "4",
        "ingestWorker.autoscaling.keda.jobsPerWorker": "4",
        "ingestWorker.autoscaling.keda.pollingSeconds": "5",
    }
    about = "KEDA on the lag of the ingestion queue: long documents until four workers are ready, then none until one is left."
    with report.section("Scaling by the queue", about) as section:
        release.upgrade(values)
        try:
            _until_count(release.cluster, "ingest-worker", 1)
            began = time.monotonic()
            with release.api(users[0].key) as api:
                documents = [
                    api.upload(users[0].collection_id, f"logbook-{number}.txt", _logbook(number))
                    for number in range(WAITING_DOCUMENTS)
                ]
                _until_count(release.cluster, "ingest-worker", 4)
                section.figure("seconds until four are ready", time.monotonic() - began)
                ended = Counter(api.settled(document["id"])["status"] for document in documents)
            assert ended == {"ready": WAITING_DOCUMENTS}
            began = time.monotonic()
            _until_count(release.cluster, "ingest-worker", 1)
            section.figure("seconds after the last document until one is left", time.monotonic() - began)
            section.figure("documents", WAITING_DOCUMENTS)
        finally:
            release.upgrade(
                {
                    "ingestWorker.autoscaling.enabled": "false",
                    "ingestWorker.autoscaling.keda.enabled": "false",
                    "ingestWorker.replicas": "2",
                }
            )


def _logbook(number: int) -> bytes:
    """Some twenty passages."""
    entries = (
        f"On watch {entry} of voyage {number} the barometer stood at {990 + entry % 40}." for entry in range(400)
    )
    return " ".join(entries).encode()


def _until_count(cluster: Cluster, component: str, count: int) -> None:
    def reached(pods: list[Pod]) -> bool:
        return len(pods) == count and all(pod.is_ready for pod in pods)

    cluster.until_pods(reached, f"{count} of {component}", component=component, timeout_s=600)


def _has_keda(cluster: Cluster) -> bool:
    try:
        found: Mapping[str, Json] = cluster.get("crd", "scaledobjects.keda.sh")
    except CommandFailed:
        return False
    return bool(found)
