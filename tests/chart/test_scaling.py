"""How many pods there are, where they lie, and that a drain and an autoscaler go together with them."""

from collections.abc import Iterator
from typing import Any

from tests.chart.manifests import Manifest, Pod, matches
from tests.chart.release import Release, holds
from tests.chart.services import SETTINGS, STATELESS

HOST = "kubernetes.io/hostname"
BY_MAJORITY = {"nats", "qdrant", "elasticsearch"}


@holds
def test_every_workload_has_one_disruption_budget(release: Release) -> Iterator[str]:
    for pod in release.lasting_pods():
        budgets = [str(each) for each in _budgets(release) if matches(each.spec["selector"], pod.labels)]
        if len(budgets) != 1:
            yield f"{pod}: the disruption budgets of its pods are {budgets}; should be one, since two allow no eviction"


@holds
def test_every_disruption_budget_selects_the_pods_of_one_workload(release: Release) -> Iterator[str]:
    for budget in _budgets(release):
        chosen = {str(pod) for pod in release.pods() if matches(budget.spec["selector"], pod.labels)}
        if len(chosen) != 1:
            yield budget.problem("spec.selector", f"selects the pods of {sorted(chosen) or 'nobody'}")


@holds
def test_every_disruption_budget_allows_a_drain(release: Release) -> Iterator[str]:
    for budget in _budgets(release):
        for pod in release.lasting_pods():
            if matches(budget.spec["selector"], pod.labels):
                yield from _blocks(release, budget, pod)


@holds
def test_a_roll_out_waits_for_the_elections_of_a_message_stores_server(release: Release) -> Iterator[str]:
    """A server that has caught up is not yet a quiet cluster: the next one goes 10 s later at the soonest."""
    for servers in release.of_kind("StatefulSet"):
        if servers.component == "nats" and (servers.get("spec.minReadySeconds") or 0) < 10:
            yield servers.problem("spec.minReadySeconds", "should be 10 or more")


@holds
def test_a_broken_pod_holds_up_no_drain_that_leaves_a_majority(release: Release) -> Iterator[str]:
    """By default a pod that is not ready cannot be evicted while its budget is not met: it would keep its node for ever. Of servers
    that decide by majority it is better so: one broken server can be evicted, a second one that catches up cannot."""
    for budget in _budgets(release):
        expected = "IfHealthyBudget" if budget.component in BY_MAJORITY else "AlwaysAllow"
        if budget.get("spec.unhealthyPodEvictionPolicy") != expected:
            yield budget.problem("spec.unhealthyPodEvictionPolicy", f"should be {expected}")


@holds
def test_autoscalers_scale_workloads_of_the_release_within_their_bounds(release: Release) -> Iterator[str]:
    for scaler in release.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        target = scaler.get("spec.scaleTargetRef") or {}
        if release.find(target.get("kind", "Deployment"), target.get("name", "")) is None:
            yield scaler.problem("spec.scaleTargetRef", "should name a workload of the release")
        if target.get("apiVersion", "apps/v1") != "apps/v1":
            yield scaler.problem("spec.scaleTargetRef.apiVersion", "should be apps/v1")
        least, most = bounds(scaler)
        if not 1 <= least <= most:
            yield scaler.problem("spec", f"should have 1 ≤ min ≤ max, and has {least} and {most}")


@holds
def test_autoscalers_say_how_fast_they_scale(release: Release) -> Iterator[str]:
    for scaler in release.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        field = (
            "spec.behavior"
            if scaler.kind == "HorizontalPodAutoscaler"
            else "spec.advanced.horizontalPodAutoscalerConfig.behavior"
        )
        for direction in ("scaleUp", "scaleDown"):
            if (
                not scaler.get(f"{field}.{direction}.policies")
                or scaler.get(f"{field}.{direction}.stabilizationWindowSeconds") is None
            ):
                yield scaler.problem(f"{field}.{direction}", "should have policies and stabilizationWindowSeconds")


@holds
def test_what_an_autoscaler_measures_is_there(release: Release) -> Iterator[str]:
    for scaler in release.of_kind("HorizontalPodAutoscaler"):
        pod = _target(release, scaler)
        if pod is None:
            continue
        for index, metric in enumerate(scaler.get("spec.metrics") or ()):
            measured = metric.get("resource", {}).get("name")
            if metric["type"] == "Resource" and not pod.main().get(f"resources.requests.{measured}"):
                yield scaler.problem(
                    f"spec.metrics[{index}]", f"{pod} requests no {measured}, of which this is a share"
                )
        if not scaler.get("spec.metrics"):
            yield scaler.problem("spec.metrics", "should say what is measured")


@holds
def test_every_workload_has_one_autoscaler_at_most(release: Release) -> Iterator[str]:
    owners: dict[str, Manifest] = {}
    for scaler in release.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        name = scaler.get("spec.scaleTargetRef.name")
        if owners.setdefault(name, scaler) is not scaler:
            yield f"{scaler}: {owners[name]} scales {name} too; they would undo each other's work"


@holds
def test_a_workload_with_an_autoscaler_has_no_number_of_its_own(release: Release) -> Iterator[str]:
    """Each upgrade would set it, under whatever load."""
    for scaler in release.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        pod = _target(release, scaler)
        if pod is not None and pod.owner.get("spec.replicas") is not None:
            yield pod.owner.problem("spec.replicas", f"leave it to {scaler}")


@holds
def test_of_every_stateless_service_there_are_two(release: Release) -> Iterator[str]:
    for pod in release.lasting_pods():
        if pod.component in STATELESS and release.case.is_redundant and least_pods(release, pod) < 2:
            yield f"{pod}: there may be {least_pods(release, pod)} pod; without a second one the loss of a node is an outage"


@holds
def test_pods_of_a_workload_are_spread_over_nodes(release: Release) -> Iterator[str]:
    for pod in release.lasting_pods():
        spread = pod.spec.get("topologySpreadConstraints") or ()
        if not any(each["topologyKey"] == HOST for each in spread):
            yield pod.problem("spec.topologySpreadConstraints", f"should spread over {HOST}")
        for index, each in enumerate(spread):
            chosen = {str(other) for other in release.pods() if matches(each.get("labelSelector"), other.labels)}
            if chosen != {str(pod)}:
                yield pod.problem(f"spec.topologySpreadConstraints[{index}].labelSelector", f"selects {sorted(chosen)}")


@holds
def test_several_replicas_of_one_store_never_share_a_node_that_need_not_be_shared(release: Release) -> Iterator[str]:
    """A majority of NATS servers on one node would be lost with it."""
    for pod in release.pods_of("nats"):
        hard = [
            each["whenUnsatisfiable"]
            for each in pod.spec.get("topologySpreadConstraints") or ()
            if each["topologyKey"] == HOST
        ]
        if pod.lasts and pod.replicas > 1 and hard != ["DoNotSchedule"] and not pod.spec.get("affinity"):
            yield pod.problem("spec.topologySpreadConstraints", "should say DoNotSchedule, or have an anti-affinity")


@holds
def test_services_roll_without_fewer_pods(release: Release) -> Iterator[str]:
    """vLLM may: few clusters have GPUs to spare for a second one."""
    for deployment in release.of_kind("Deployment"):
        if deployment.component in SETTINGS and deployment.get("spec.strategy.rollingUpdate.maxUnavailable") != 0:
            yield deployment.problem("spec.strategy.rollingUpdate.maxUnavailable", "should be 0: a new pod first")


def bounds(scaler: Manifest) -> tuple[int, int]:
    """Fewest and most pods."""
    if scaler.kind == "ScaledObject":
        return scaler.get("spec.minReplicaCount") or 0, scaler.get("spec.maxReplicaCount") or 100
    return scaler.get("spec.minReplicas") or 1, scaler.get("spec.maxReplicas") or 0


def least_pods(release: Release, pod: Pod) -> int:
    """Fewest pods of a workload while nobody changes it by hand."""
    for scaler in release.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        if _names(scaler, pod):
            return bounds(scaler)[0]
    return pod.replicas


def _budgets(release: Release) -> list[Manifest]:
    return release.of_kind("PodDisruptionBudget")


def _blocks(release: Release, budget: Manifest, pod: Pod) -> Iterator[str]:
    most, least = budget.get("spec.maxUnavailable"), budget.get("spec.minAvailable")
    if (most is None) == (least is None):
        yield budget.problem("spec", "should have maxUnavailable or minAvailable")
    elif most is not None and _share(most, 100) < 1:
        yield budget.problem("spec.maxUnavailable", f"no pod of {pod} could ever be evicted")
    elif least is not None and _share(least, least_pods(release, pod)) >= least_pods(release, pod):
        yield budget.problem(
            "spec.minAvailable", f"no pod of {pod} could be evicted while there are {least_pods(release, pod)}"
        )


def _share(value: Any, whole: int) -> float:
    return float(value.removesuffix("%")) * whole / 100 if isinstance(value, str) else value


def _target(release: Release, scaler: Manifest) -> Pod | None:
    return next((pod for pod in release.lasting_pods() if _names(scaler, pod)), None)


def _names(scaler: Manifest, pod: Pod) -> bool:
    target = scaler.get("spec.scaleTargetRef") or {}
    return (target.get("kind", "Deployment"), target.get("name")) == (pod.owner.kind, pod.owner.name)
