"""`groundwork cluster scale` and `model`: what is changed, what is refused, and what is put back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cli.cluster import rollout
from tests.doubles.kubernetes import NAMESPACE, Object
from tests.doubles.kubernetes_pods import APPS, PodsDouble, labels_of, ready
from tests.unit.cli.cluster.conftest import run

HPAS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
SCALED_OBJECTS = f"/apis/keda.sh/v1alpha1/namespaces/{NAMESPACE}/scaledobjects"
VLLM = f"{APPS}/deployments/groundwork-vllm"
ORCHESTRATOR = f"{APPS}/deployments/groundwork-orchestrator"


@pytest.fixture
async def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PodsDouble]:
    """An installation whose controllers do at once what a change asks for."""
    double = PodsDouble()
    async with double.running():
        double.write_kubeconfig(tmp_path / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        double.workload("gateway", 2)
        double.workload("ingest-worker")
        double.workload("nats", 3, "statefulsets")
        replicas = [{"name": "GROUNDWORK_NATS_REPLICAS", "value": "3"}]
        double.workload("memory", env=replicas)
        retriever = double.workload("retriever", 1, "statefulsets")
        retriever["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
        double.on_patch = lambda path, thing: obey(double, thing)
        yield double


def obey(double: PodsDouble, thing: Object) -> None:
    """As a controller: everything is as it was asked for."""
    if "template" in thing.get("spec", {}):
        generation = thing["metadata"].get("generation", 1) + 1
        thing["metadata"]["generation"] = generation
        thing["status"] = ready(thing["spec"].get("replicas", 1), generation)


def spec(pods: PodsDouble, path: str) -> dict[str, Any]:
    found: dict[str, Any] = pods.objects[path]["spec"]
    return found


async def test_components_are_scaled_and_waited_for(pods: PodsDouble) -> None:
    result = await run("scale", "gateway=3", "memory=0")
    assert result.exit_code == 0, result.output
    assert spec(pods, f"{APPS}/deployments/groundwork-gateway")["replicas"] == 3
    assert spec(pods, f"{APPS}/deployments/groundwork-memory")["replicas"] == 0
    assert "gateway goes from 2 to 3" in result.stderr
    assert "gateway: 3 of 3 ready" in result.stderr
    assert "gateway.replicas=3 and memory.replicas=0" in result.stdout


async def test_what_does_not_become_ready_in_time_is_said_with_the_reason(pods: PodsDouble) -> None:
    def unplaced(_: str, thing: Object) -> None:
        message = "0/1 nodes are available: 1 Insufficient memory."
        condition = {"type": "PodScheduled", "status": "False", "message": message}
        pods.pod("gateway", 2, phase="Pending", conditions=[condition], containerStatuses=[])

    pods.on_patch = unplaced
    result = await run("scale", "gateway=3", "--timeout", "1s")
    assert result.exit_code == 1
    assert "After 1 s, 2 of 3 pods of gateway are ready" in result.stderr
    assert "no node has enough memory" in result.stderr


async def test_without_waiting_nothing_is_waited_for(pods: PodsDouble) -> None:
    pods.on_patch = lambda path, thing: None
    result = await run("scale", "gateway=3", "--no-wait", "--json")
    assert json.loads(result.stdout) == {
        "scaled": [{"component": "gateway", "pods": 3, "value": "gateway.replicas=3"}],
        "ready": False,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retriever=2"], "one process can write"),
        (["nats=2"], "NATS keeps everything on 3 servers"),
        (["gatewy=2"], "There is no component 'gatewy'; there are gateway"),
        (["gateway=many"], "is not COMPONENT=NUMBER"),
        (["gateway"], "is not COMPONENT=NUMBER"),
        (["gateway=2", "--autoscaler-min", "1"], "name the component alone"),
        (["gateway", "--autoscaler-min", "2"], "has no autoscaler"),
        (["gateway=3", "--timeout", "soon"], "is no span of time"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_is_changed(
    pods: PodsDouble, arguments: list[str], said: str
) -> None:
    result = await run("scale", *arguments)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
    assert not [each for each in pods.requests if each.method == "PATCH"]


async def test_a_server_that_was_alone_stays_alone(pods: PodsDouble) -> None:
    spec(pods, f"{APPS}/statefulsets/groundwork-nats")["replicas"] = 1
    result = await run("scale", "nats=3")
    assert result.exit_code == 2
    assert "cannot become one of several without the loss of what it holds" in " ".join(result.stderr.split())
    assert not [each for each in pods.requests if each.method == "PATCH"]


async def test_nothing_is_changed_when_one_of_several_cannot_be(pods: PodsDouble) -> None:
    assert (await run("scale", "gateway=3", "retriever=2")).exit_code == 2
    assert spec(pods, f"{APPS}/deployments/groundwork-gateway")["replicas"] == 2


async def test_a_component_with_an_autoscaler_is_left_to_it(pods: PodsDouble) -> None:
    target = {
        "scaleTargetRef": {"kind": "Deployment", "name": "groundwork-gateway"},
        "minReplicas": 2,
        "maxReplicas": 6,
    }
    pods.put(f"{HPAS}/groundwork-gateway", {"spec": target, "metadata": {"labels": labels_of("gateway")}})
    refused = await run("scale", "gateway=4")
    assert refused.exit_code == 2
    assert "HPA groundwork-gateway decides" in refused.stderr
    assert "--autoscaler-min 4" in refused.stderr
    changed = await run("scale", "gateway", "--autoscaler-min", "3", "--autoscaler-max", "9")
    assert changed.exit_code == 0, changed.output
    assert (
        spec(pods, f"{HPAS}/groundwork-gateway")["minReplicas"],
        spec(pods, f"{HPAS}/groundwork-gateway")["maxReplicas"],
    ) == (3, 9)
    assert "gateway.autoscaling.minReplicas=3 and gateway.autoscaling.maxReplicas=9" in changed.stdout
    impossible = await run("scale", "gateway", "--autoscaler-min", "10", "--autoscaler-max", "9")
    assert "the smallest is above the largest" in impossible.stderr


async def test_keda_is_told_through_its_own_object(pods: PodsDouble) -> None:
    target = {"scaleTargetRef": {"name": "groundwork-ingest-worker"}, "minReplicaCount": 1, "maxReplicaCount": 4}
    made = {"scaleTargetRef": {"name": "groundwork-ingest-worker"}, "minReplicas": 1, "maxReplicas": 4}
    pods.put(f"{SCALED_OBJECTS}/worker", {"spec": target, "metadata": {"labels": labels_of("ingest-worker")}})
    pods.put(f"{HPAS}/keda-hpa-worker", {"spec": made})
    refused = await run("scale", "ingest-worker=2")
    assert "KEDA's ScaledObject worker decides" in refused.stderr
    result = await run("scale", "ingest-worker", "--autoscaler-max", "8")
    assert result.exit_code == 0, result.output
    assert spec(pods, f"{SCALED_OBJECTS}/worker")["maxReplicaCount"] == 8
    assert spec(pods, f"{HPAS}/keda-hpa-worker")["maxReplicas"] == 4


def serve(pods: PodsDouble, *names: str, model: str = "org/small") -> None:
    """vLLM as the chart runs it, and the orchestrator that asks it by its first name."""
    arguments = [model, "--host=0.0.0.0", "--served-model-name", *names, "--max-model-len=4096"]
    pods.workload("vllm", args=arguments)
    asked = [{"name": "GROUNDWORK_LLM_MODEL", "value": names[0]}]
    pods.workload("orchestrator", env=asked)
    pods.pages["groundwork-vllm-0", 8000, "/v1/completions"] = lambda body: complete(pods, json.loads(body)["model"])


def complete(pods: PodsDouble, name: str) -> str:
    served = arguments(pods)
    is_served = name in served[served.index("--served-model-name") :]
    return '{"choices": [{"text": "1"}]}' if is_served else "not ok"


def arguments(pods: PodsDouble) -> list[str]:
    found: list[str] = spec(pods, VLLM)["template"]["spec"]["containers"][0]["args"]
    return found


def asked_name(pods: PodsDouble) -> str:
    (variable,) = spec(pods, ORCHESTRATOR)["template"]["spec"]["containers"][0]["env"]
    return str(variable["value"])


async def test_a_model_with_a_lasting_name_is_exchanged_and_nothing_else(pods: PodsDouble) -> None:
    serve(pods, "chat", "org/small")
    result = await run("model", "org/large")
    assert result.exit_code == 0, result.output
    assert arguments(pods) == [
        "org/large",
        "--host=0.0.0.0",
        "--max-model-len=4096",
        "--served-model-name",
        "chat",
        "org/large",
    ]
    assert asked_name(pods) == "chat"
    assert "set vllm.model=org/large" in result.stdout.replace("\n", " ")


async def test_a_model_that_is_asked_by_its_own_name_stays_reachable_until_the_orchestrators_know(
    pods: PodsDouble,
) -> None:
    serve(pods, "org/small")
    result = await run("model", "org/large", "--json")
    assert result.exit_code == 0, result.output
    assert arguments(pods)[-2:] == ["org/small", "org/large"]
    assert asked_name(pods) == "org/large"
    assert json.loads(result.stdout)["asked_as"] == "org/large"


async def test_a_model_that_does_not_load_gives_way_to_the_former_one(
    pods: PodsDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout, "_LOOK_EVERY_S", 0.05)
    serve(pods, "chat", "org/small")
    pods.previous["groundwork-vllm-0"] = ["2026-11-23T12:00:00Z OSError: org/nothing is no model"]

    def load(_: str, thing: Object) -> None:
        if thing["spec"]["template"]["spec"]["containers"][0]["args"][0] == "org/small":
            pods.pod("vllm")
            obey(pods, thing)
            return
        waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
        ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
        status = {"name": "vllm", "restartCount": 2, "state": waiting, "lastState": ended}
        thing["metadata"]["generation"] = 2
        pods.pod("vllm", conditions=[], containerStatuses=[status])

    pods.on_patch = load
    result = await run("model", "org/nothing")
    assert result.exit_code == 1
    assert arguments(pods)[0] == "org/small"
    assert "org/nothing is no model" in result.stderr
    assert "org/small is served as before." in result.stderr


async def test_a_model_that_completes_nothing_gives_way_to_the_former_one(pods: PodsDouble) -> None:
    serve(pods, "chat", "org/small")
    pods.pages["groundwork-vllm-0", 8000, "/v1/completions"] = "not ok: no such model"
    result = await run("model", "org/large")
    assert result.exit_code == 1
    assert arguments(pods)[0] == "org/small"
    assert "is ready and completes nothing" in result.stderr


@pytest.mark.parametrize(
    ("model", "said"),
    [("org/small", "serves org/small already"), (" ", "The model is empty")],
)
async def test_a_model_that_cannot_be_exchanged_is_a_sentence(pods: PodsDouble, model: str, said: str) -> None:
    serve(pods, "org/small")
    result = await run("model", model)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output


async def test_a_release_without_vllm_has_no_model_to_exchange(pods: PodsDouble) -> None:
    result = await run("model", "org/large")
    assert (result.exit_code, "runs no vllm" in result.stderr) == (2, True)
