"""How a pod starts, tells its state, and ends: requests reach it only while it can answer them, and it ends what it has in hand."""

from collections.abc import Iterator
from typing import Any

from tests.chart.manifests import Container, Manifest
from tests.chart.release import Release, holds
from tests.chart.services import GRPC_PORT, OPS_PORT, SETTINGS

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
HANDLERS = ("grpc", "httpGet", "tcpSocket", "exec")
MARGIN_S = 5
"""For what a service does when its requests have ended (services/standalone/topology.py: STOP_MARGIN_S), on a busy node."""
LONGEST_START_S = 60
"""A pod that is given less to start in may be killed again and again on a node that is busy starting all."""
LONGEST_WAIT_S = 180
"""What is not ready after this long waits for nobody: it is stuck."""
NODE_LOSS_S = 60
"""After a node's power cut its pods begin elsewhere so many seconds after the node was found to be away; Kubernetes' own is 300."""


@holds
def test_every_lasting_container_has_split_probes(release: Release) -> Iterator[str]:
    for container in _lasting(release):
        for probe in PROBES:
            if len([handler for handler in HANDLERS if container.get(f"{probe}.{handler}")]) != 1:
                yield container.problem(probe, "should be there, and ask in one way")
        is_hasty = _given_s(container.get("livenessProbe") or {}) < LONGEST_WAIT_S
        if is_hasty and _asks(container, "readinessProbe") == _asks(container, "livenessProbe"):
            yield container.problem(
                "livenessProbe", "should not be the readiness probe: what waits for another is alive"
            )


@holds
def test_services_are_asked_for_readiness_by_grpc_unless_kubelet_cannot(release: Release) -> Iterator[str]:
    """The kubelet has no certificate, so with TLS it asks the operations port, which speaks for the same state."""
    for container in _ours(release):
        environment = container.environment()
        has_tls = "GROUNDWORK_TLS_CERT_FILE" in environment
        by_http = has_tls or container.pod.component == "gateway"
        if by_http and _http(container, "readinessProbe") != (OPS_PORT, "/readyz"):
            yield container.problem("readinessProbe", f"should be httpGet /readyz at port {OPS_PORT}")
        if not by_http and container.get("readinessProbe.grpc.port") != GRPC_PORT:
            yield container.problem("readinessProbe", f"should be grpc at port {GRPC_PORT}")


@holds
def test_services_are_asked_for_life_at_their_operations_port(release: Release) -> Iterator[str]:
    """Nor does one have to be ready to have started: who waits for the message store would be killed."""
    for container in _ours(release):
        for probe in ("startupProbe", "livenessProbe"):
            if _http(container, probe) != (OPS_PORT, "/livez"):
                yield container.problem(probe, f"should be httpGet /livez at port {OPS_PORT}")


@holds
def test_probes_go_to_ports_that_the_container_has(release: Release) -> Iterator[str]:
    for container in _lasting(release):
        for probe in PROBES:
            for handler in HANDLERS[:3]:
                port = container.get(f"{probe}.{handler}.port")
                if port is not None and _number(container, port) not in container.ports().values():
                    yield container.problem(f"{probe}.{handler}.port", f"the container has {container.ports()}")


@holds
def test_a_pod_has_time_to_start(release: Release) -> Iterator[str]:
    for container in _lasting(release):
        probe = container.get("startupProbe") or {}
        given_s = _given_s(probe) + probe.get("initialDelaySeconds", 0)
        if given_s < LONGEST_START_S:
            yield container.problem("startupProbe", f"gives {given_s} s; a busy node needs {LONGEST_START_S}")


@holds
def test_no_roll_out_counts_as_stuck_while_a_pod_may_still_start(release: Release) -> Iterator[str]:
    for pod in release.lasting_pods():
        probe = pod.main().get("startupProbe") or {}
        given_s = probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)
        if pod.owner.kind == "Deployment" and (pod.owner.get("spec.progressDeadlineSeconds") or 600) <= given_s:
            yield pod.owner.problem(
                "spec.progressDeadlineSeconds", f"should be more than {given_s}, which a start may take"
            )


@holds
def test_a_pod_ends_after_those_who_send_it_requests_have_noticed(release: Release) -> Iterator[str]:
    for container in _ours(release):
        if not container.get("lifecycle.preStop.sleep.seconds"):
            yield container.problem(
                "lifecycle.preStop.sleep.seconds", "endpoints are withdrawn beside SIGTERM, not before it"
            )


@holds
def test_a_pod_has_time_to_end_what_it_has_in_hand(release: Release) -> Iterator[str]:
    for container in _ours(release):
        environment = container.environment()
        pre_stop_s = container.get("lifecycle.preStop.sleep.seconds") or 0
        drain_s = [environment.get(f"GROUNDWORK_DRAIN_{part}_S") for part in ("DELAY", "GRACE")]
        if None in drain_s:
            yield container.problem("env", "should have GROUNDWORK_DRAIN_DELAY_S and GROUNDWORK_DRAIN_GRACE_S")
            continue
        needed_s = pre_stop_s + sum(float(part or 0) for part in drain_s) + MARGIN_S
        if container.pod.spec.get("terminationGracePeriodSeconds", 30) < needed_s:
            yield container.pod.problem(
                "spec.terminationGracePeriodSeconds",
                f"should be at least {needed_s:g}: preStop {pre_stop_s}, delay {drain_s[0]}, grace {drain_s[1]}, and {MARGIN_S}",
            )


@holds
def test_servers_of_others_have_time_to_end_as_well(release: Release) -> Iterator[str]:
    for pod in release.lasting_pods():
        if pod.component not in SETTINGS and pod.spec.get("terminationGracePeriodSeconds", 30) < 30:
            yield pod.problem("spec.terminationGracePeriodSeconds", "should be at least 30")


@holds
def test_pods_leave_a_node_that_is_gone_soon(release: Release) -> Iterator[str]:
    for pod in release.lasting_pods():
        for taint in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
            tolerated_s = [
                each.get("tolerationSeconds") for each in pod.spec.get("tolerations") or () if each.get("key") == taint
            ]
            if not any(seconds is not None and seconds <= NODE_LOSS_S for seconds in tolerated_s):
                yield pod.problem("spec.tolerations", f"should tolerate {taint} for at most {NODE_LOSS_S} s")


@holds
def test_jobs_end(release: Release) -> Iterator[str]:
    """A job that hangs must not hold up `helm install`, nor the next backup."""
    for job in release.of_kind("Job", "CronJob"):
        path = "spec.jobTemplate.spec" if job.kind == "CronJob" else "spec"
        for field in ("activeDeadlineSeconds", "backoffLimit"):
            if job.get(f"{path}.{field}") is None:
                yield job.problem(f"{path}.{field}", "should be set")
        if job.get(f"{path}.template.spec.restartPolicy") not in {"Never", "OnFailure"}:
            yield job.problem(f"{path}.template.spec.restartPolicy", "should be Never or OnFailure")
        if job.kind == "CronJob" and job.get("spec.concurrencyPolicy") != "Forbid":
            yield job.problem("spec.concurrencyPolicy", "should be Forbid: two at once do each other harm")


@holds
def test_a_hook_finds_its_account_its_rights_and_its_ways_there(release: Release) -> Iterator[str]:
    """Helm makes everything else after it, and an install into a namespace that denies all connections would wait for it."""
    for job in release.of_kind("Job"):
        same = (each for each in release.objects if each is not job and each.component == job.component)
        for each in same if job.hooks else ():
            if not job.hooks <= each.hooks or _weight(each) >= _weight(job):
                yield f"{each}: should be a hook of less weight than {job}"


@holds
def test_hooks_are_removed_before_they_are_made_again(release: Release) -> Iterator[str]:
    for each in release.objects:
        policies = each.annotations.get("helm.sh/hook-delete-policy", "")
        if each.hooks and "before-hook-creation" not in policies:
            yield f"{each}: helm.sh/hook-delete-policy is {policies!r}; should name before-hook-creation"


def _weight(hook: Manifest) -> int:
    return int(hook.annotations.get("helm.sh/hook-weight", "0"))


def _lasting(release: Release) -> list[Container]:
    """The containers of pods that last that others connect to; one that reloads another's configuration is no such."""
    return [container for pod in release.lasting_pods() for container in pod.containers() if container.ports()]


def _ours(release: Release) -> list[Container]:
    return [pod.main() for pod in release.lasting_pods() if pod.component in SETTINGS]


def _given_s(probe: dict[str, Any]) -> int:
    """How long it may fail."""
    return int(probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3))


def _asks(container: Container, probe: str) -> Any:
    """How and what a probe asks, with the port's number."""
    for handler in HANDLERS:
        asked = container.get(f"{probe}.{handler}")
        if asked:
            return {**asked, "handler": handler, "port": _number(container, asked.get("port"))}
    return None


def _http(container: Container, probe: str) -> tuple[int | None, str | None]:
    asked = container.get(f"{probe}.httpGet") or {}
    return _number(container, asked.get("port")), asked.get("path")


def _number(container: Container, port: Any) -> int | None:
    return container.ports().get(port) if isinstance(port, str) else port
