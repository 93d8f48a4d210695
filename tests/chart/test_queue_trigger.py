"""What KEDA asks the ingest workers: a metric that they have, at a Service of theirs, as the scaler reads both."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from services.ingest.metrics import Metrics
from tests.chart.manifests import Manifest
from tests.chart.release import Release, holds
from tests.chart.services import OPS_PORT


@holds
def test_the_queue_is_followed_by_a_metric_that_the_workers_have(release: Release) -> Iterator[str]:
    registry = CollectorRegistry()
    Metrics(registry)
    known = {sample.name for family in registry.collect() for sample in family.samples}
    for scaled, trigger in _triggers(release):
        if trigger["valueLocation"] not in known:
            yield scaled.problem("spec.triggers", f"the worker has no metric {trigger['valueLocation']}")


@holds
def test_the_metric_is_read_of_every_worker(release: Release) -> Iterator[str]:
    """KEDA takes service and namespace from the first two parts of the host, and the port with the last one: a name of two parts
    finds no pods. One worker tells the depth, the others 0."""
    for scaled, trigger in _triggers(release):
        url = urlsplit(trigger["url"])
        service, namespace, *rest = url.netloc.split(".")
        if not rest or (service, namespace) != (f"{release.fullname}-ingest-worker", release.case.namespace):
            yield scaled.problem("spec.triggers", f"{trigger['url']} should be SERVICE.NAMESPACE.svc of the worker")
        if url.port != OPS_PORT or url.path != "/metrics":
            yield scaled.problem("spec.triggers", f"{trigger['url']} should be the worker's metrics")
        if (trigger["aggregateFromKubeServiceEndpoints"], trigger["aggregationType"]) != ("true", "max"):
            yield scaled.problem("spec.triggers", "should take the largest of what all workers tell")


def _triggers(release: Release) -> Iterator[tuple[Manifest, dict[str, str]]]:
    for scaled in release.of_kind("ScaledObject"):
        for trigger in scaled.spec["triggers"]:
            if trigger["type"] == "metrics-api":
                yield scaled, trigger["metadata"]
