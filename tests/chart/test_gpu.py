"""What runs on GPUs: it gets one, goes where they are, keeps what it fetched, and is ready once it answers."""

from collections.abc import Iterator

from tests.chart.manifests import Container
from tests.chart.release import Release, holds

GPU = "nvidia.com/gpu"
PARTS = "--tensor-parallel-size="
WAITS = "--shutdown-timeout="
SHORTEST_ANSWER_S = 60
PROVIDER = "GROUNDWORK_RERANKER_RERANK_PROVIDER"
SHORTEST_START_S = 1800
"""Fetching and reading models of several gigabytes."""


@holds
def test_who_is_to_use_a_gpu_gets_one_and_uses_it(release: Release) -> Iterator[str]:
    found = {container.pod.component for container in _on_gpus(release)}
    for component in sorted(found ^ release.case.on_gpus):
        yield f"{component}: resources.limits has {'a' if component in found else 'no'} {GPU}"
    for container in _on_gpus(release):
        if container.environment().get(PROVIDER, "gpu") != "gpu":
            yield container.variable_problem(PROVIDER, "should be gpu")


@holds
def test_who_has_a_gpu_may_go_where_they_are(release: Release) -> Iterator[str]:
    """Nodes with GPUs have a taint that keeps others away."""
    for container in _on_gpus(release):
        if GPU not in {each.get("key") for each in container.pod.spec["tolerations"]}:
            yield container.pod.problem("spec.tolerations", f"should tolerate {GPU}")


@holds
def test_who_has_a_gpu_gets_it_as_the_nodes_give_it(release: Release) -> Iterator[str]:
    for container in _on_gpus(release):
        if container.pod.spec.get("runtimeClassName") != release.case.runtime_class:
            yield container.pod.problem("spec.runtimeClassName", f"should be {release.case.runtime_class}")


@holds
def test_a_language_model_ends_its_answers_before_it_is_killed(release: Release) -> Iterator[str]:
    """By default vLLM breaks off what it writes at SIGTERM."""
    for pod in release.pods_of("vllm"):
        waits = [each for each in map(str, pod.main().body["args"]) if each.startswith(WAITS)]
        killed_s = pod.spec["terminationGracePeriodSeconds"] - pod.main().get("lifecycle.preStop.sleep.seconds")
        if not waits or not SHORTEST_ANSWER_S <= int(waits[0].removeprefix(WAITS)) < killed_s:
            yield pod.main().problem("args", f"should have {WAITS}, of less than {killed_s} s")


@holds
def test_a_model_is_divided_among_as_many_gpus_as_the_pod_has(release: Release) -> Iterator[str]:
    for container in _on_gpus(release):
        parts = [each.removeprefix(PARTS) for each in container.body.get("args") or () if each.startswith(PARTS)]
        if parts and [str(container.get("resources.limits")[GPU])] != parts:
            yield container.problem("resources.limits", f"does not fit {PARTS}{parts[0]}")


@holds
def test_models_are_kept_in_a_writable_volume_and_may_take_their_time(release: Release) -> Iterator[str]:
    for container in _on_gpus(release):
        folders = [f"{mount['mountPath']}/" for mount in container.mounts() if not mount.get("readOnly")]
        if not container.environment().get("HF_HOME", "").startswith(tuple(folders)):
            yield container.variable_problem("HF_HOME", "should be in a writable volume")
        probe = container.get("startupProbe")
        if probe["periodSeconds"] * probe["failureThreshold"] < SHORTEST_START_S:
            yield container.problem("startupProbe", f"should allow {SHORTEST_START_S} s")


@holds
def test_a_language_model_is_ready_when_it_completes_and_calls_tools(release: Release) -> Iterator[str]:
    for pod in release.pods_of("vllm"):
        container = pod.main()
        if not container.get("readinessProbe.exec.command"):
            yield container.problem(
                "readinessProbe", "should ask for a completion: a server with a broken model is alive"
            )
        if not any(str(argument).startswith("--tool-call-parser=") for argument in container.body["args"]):
            yield container.problem("args", "should name a --tool-call-parser")


def _on_gpus(release: Release) -> list[Container]:
    return [pod.main() for pod in release.lasting_pods() if GPU in (pod.main().get("resources.limits") or {})]
