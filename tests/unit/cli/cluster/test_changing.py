"""`groundwork cluster model`: what is changed, what is refused, and what is put back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cli.cluster import rollout
from tests.doubles.kubernetes import NAMESPACE, Object
from tests.doubles.kubernetes_pods import APPS, PodsDouble, ready
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


def serve(pods: PodsDouble, *names: str, model: str = "org/small") -> None:
    """vLLM as the chart runs it, and the orchestrator that asks it by its first name."""
    arguments = [model, "--host=0.0.0.0", "--served-model-name", *names, "--max-model-len=4096"]
    pods.workload("vllm", args=arguments)
    asked = [{"name": "GROUNDWORK_LLM_MODEL", "value": names[0]}]
    pods.workload("orchestrator", env=asked)


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


async def test_a_model_is_exchanged_again_and_the_orchestrators_ask_for_one_that_is_served(pods: PodsDouble) -> None:
    serve(pods, "org/small")
    for model in ("org/large", "org/larger"):
        result = await run("model", model, "--json")
        assert (result.exit_code, json.loads(result.stdout)["asked_as"]) == (0, model), result.output
    # The first name stays: the readiness probe asks for it. The former one is asked for until the orchestrators are new.
    assert arguments(pods)[-4:] == ["--served-model-name", "org/small", "org/large", "org/larger"]
    assert asked_name(pods) == "org/larger"


async def test_a_model_that_does_not_load_gives_way_to_the_former_one(
    pods: PodsDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout, "_AGAIN_AFTER_S", 0.05)
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


async def test_a_model_that_does_not_get_ready_in_time_gives_way_to_the_former_one(pods: PodsDouble) -> None:
    serve(pods, "chat", "org/small")

    def load(_: str, thing: Object) -> None:
        obey(pods, thing)
        if thing["spec"]["template"]["spec"]["containers"][0]["args"][0] == "org/large":
            thing["status"]["readyReplicas"] = 0  # the readiness probe asks for a completion and gets none

    pods.on_patch = load
    result = await run("model", "org/large", "--timeout", "1s")
    assert result.exit_code == 1
    assert arguments(pods)[0] == "org/small"
    assert "0 of 1 ready of the pods of vllm" in result.stderr.replace("\n", " ")
    assert "org/small is served as before." in result.stderr


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
