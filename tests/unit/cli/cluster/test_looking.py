"""`groundwork cluster doctor` against an API server over HTTP: what is read, and what is said when it cannot be."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.doubles.http_double import Failure
from tests.doubles.kubernetes import NAMESPACE, refusal
from tests.doubles.kubernetes_pods import APPS, PODS, PodsDouble, labels_of
from tests.unit.cli.cluster.conftest import run


@pytest.fixture
async def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PodsDouble]:
    """A cluster with a node and a gateway, to which KUBECONFIG leads."""
    double = PodsDouble()
    async with double.running():
        double.write_kubeconfig(tmp_path / "kubeconfig")
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        double.put(f"/api/v1/namespaces/{NAMESPACE}", {})
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "spec": {}}
        double.put("/api/v1/nodes/node1", ready)
        double.workload("gateway")
        double.says("groundwork-gateway-0")
        yield double


async def test_doctor_finds_nothing_wrong_with_what_is_well(pods: PodsDouble) -> None:
    result = await run("doctor")
    assert (result.exit_code, result.stdout) == (0, "Nothing is wrong with release groundwork in namespace rag.\n")


async def test_doctor_names_troubles_and_fails(pods: PodsDouble) -> None:
    pods.says("groundwork-gateway-0", "ok\nsigning key: gateway-1 is not among the public keys\n")
    result = await run("doctor")
    assert result.exit_code == 1
    assert result.stdout.startswith("SERVICE_IN_TROUBLE  gateway reports about signing key")
    as_json = json.loads((await run("doctor", "--json")).stdout)
    assert [each["kind"] for each in as_json["findings"]] == ["SERVICE_IN_TROUBLE"]


async def test_doctor_quotes_the_last_words_of_what_crashes(pods: PodsDouble) -> None:
    ended = {"terminated": {"exitCode": 78, "reason": "Error"}}
    status = {"name": "gateway", "ready": False, "restartCount": 3, "lastState": ended}
    status["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    pods.pod("gateway", conditions=[], containerStatuses=[status])
    pods.previous["groundwork-gateway-0"] = [
        "2026-11-23T12:00:00Z GROUNDWORK_PORT=x is not valid: it must be a whole number"
    ]
    result = await run("doctor")
    assert "GROUNDWORK_PORT=x is not valid" in result.stdout


async def test_what_may_not_be_looked_at_is_said_and_the_rest_is_shown(pods: PodsDouble) -> None:
    pods.unauthorized_ports = True
    pods.failures.append(
        Failure("GET /api/v1/nodes", 403, refusal(403, "Forbidden", "nodes is forbidden: User cannot list nodes"))
    )
    result = await run("doctor")
    assert result.exit_code == 0
    assert "Not looked at: nodes (" in result.stderr
    assert "what the pods say of themselves (" in result.stderr
    assert "in what could be looked at" in result.stdout


async def test_a_pod_that_does_not_answer_is_named(pods: PodsDouble) -> None:
    pods.pages.clear()
    result = await run("doctor")
    assert "gateway reports about operations port: it does not answer" in result.stdout


async def test_several_releases_are_listed_to_choose_from(pods: PodsDouble) -> None:
    labels = {**labels_of("gateway"), "app.kubernetes.io/instance": "trial"}
    pods.put(f"{APPS}/deployments/trial", {"metadata": {"labels": labels, "namespace": NAMESPACE}})
    result = await run("doctor")
    assert result.exit_code == 2
    assert "in namespace 'rag': groundwork, trial" in result.stderr
    assert "--release" in result.stderr
    assert (await run("doctor", "--release", "groundwork")).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["-n", "nowhere"], "in namespace 'nowhere'. Name its namespace with -n", id="no such namespace"),
        pytest.param(["--release", "other"], "There is no release 'other'", id="no such release"),
        pytest.param(["--context", "other"], "cannot be used", id="no such context"),
    ],
)
async def test_what_is_not_there_is_said_with_exit_code_2(pods: PodsDouble, arguments: list[str], said: str) -> None:
    result = await run("doctor", *arguments)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        (401, "Unauthorized", "does not accept the credentials"),
        (403, "deployments.apps is forbidden: User anna cannot list", "User anna cannot list. Ask for a role"),
        (500, "etcd is away", "overloaded or starting"),
        (429, "too many requests", "overloaded or starting"),
    ],
)
async def test_refusals_are_a_sentence_and_exit_code_2(pods: PodsDouble, status: int, message: str, said: str) -> None:
    pods.failures.extend(Failure("GET /apis/apps", status, refusal(status, "x", message)) for _ in range(2))
    result = await run("doctor", "-n", NAMESPACE)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


async def test_an_api_server_that_is_away_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double = PodsDouble()
    async with double.running():
        double.write_kubeconfig(tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    result = await run("doctor")
    assert result.exit_code == 2
    assert "cannot be reached" in result.stderr
    assert "--context" in result.stderr


async def test_no_kubeconfig_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = await run("doctor")
    assert (result.exit_code, "cannot be used" in result.stderr) == (2, True)


async def test_pods_of_others_are_left_alone(pods: PodsDouble) -> None:
    pods.put(f"{PODS}/stranger", {"metadata": {"labels": {"app": "x"}}, "spec": {}, "status": {}})
    assert (await run("doctor")).exit_code == 0
