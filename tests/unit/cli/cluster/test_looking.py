"""`groundwork cluster status` and `doctor` against an API server over HTTP: what is read, and what is said when it cannot be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.cluster.api import open_api
from cli.cluster.log_reading import Logs, follow_logs
from cli.cluster.release import Release
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


async def test_status_shows_components_with_what_they_say(pods: PodsDouble) -> None:
    pods.workload("memory")
    pods.says("groundwork-memory-0", "not ok\nmessage store: waits for it since 3 s: no answer\n")
    result = await run("status", "-n", NAMESPACE)
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert lines["gateway"].split()[:4] == ["gateway", "1", "1", "dev"]
    assert lines["gateway"].rstrip().endswith("ok")
    assert "message store: waits for it since 3 s: no answer" in lines["memory"]


async def test_status_as_json_has_numbers(pods: PodsDouble) -> None:
    metrics = {
        "containers": [{"usage": {"cpu": "25m", "memory": "64Mi"}}],
        "metadata": {"labels": labels_of("gateway")},
    }
    pods.put(f"/apis/metrics.k8s.io/v1beta1/namespaces/{NAMESPACE}/pods/groundwork-gateway-0", metrics)
    result = await run("status", "--json")
    (component,) = json.loads(result.stdout)["components"]
    assert (component["ready"], component["cpu_cores"], component["memory_bytes"]) == (1, 0.025, 64 * 2**20)


async def test_status_fails_while_a_component_lacks_pods(pods: PodsDouble) -> None:
    deployment = pods.objects[f"{APPS}/deployments/groundwork-gateway"]
    deployment["spec"]["replicas"] = 2
    assert (await run("status")).exit_code == 1


async def test_doctor_finds_nothing_wrong_with_what_is_well(pods: PodsDouble) -> None:
    result = await run("doctor")
    assert (result.exit_code, result.stdout) == (0, "Nothing is wrong with release groundwork in namespace rag.\n")


async def test_doctor_names_troubles_and_fails(pods: PodsDouble) -> None:
    pods.says("groundwork-gateway-0", "ok\nsigning key: gateway-1 is not among the public keys\n")
    result = await run("doctor")
    assert result.exit_code == 1
    assert result.stdout.startswith("SIGNING_KEY_UNKNOWN  The signing key of gateway is not good")
    as_json = json.loads((await run("doctor", "--json")).stdout)
    assert [each["kind"] for each in as_json["findings"]] == ["SIGNING_KEY_UNKNOWN"]


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
    assert "OPERATIONS_PORT_SILENT" in result.stdout
    assert "groundwork-gateway-0" in result.stdout


async def test_a_release_in_another_namespace_is_found(pods: PodsDouble) -> None:
    pods.objects = {
        path.replace(f"/namespaces/{NAMESPACE}/", "/namespaces/other/"): thing for path, thing in pods.objects.items()
    }
    everywhere = [thing for path, thing in pods.objects.items() if "/deployments/" in path]
    for thing in everywhere:
        thing["metadata"]["namespace"] = "other"
        pods.objects[f"/apis/apps/v1/deployments/{thing['metadata']['name']}"] = thing
    assert "namespace other" in (await run("doctor")).stdout


async def test_several_releases_are_listed_to_choose_from(pods: PodsDouble) -> None:
    labels = {**labels_of("gateway"), "app.kubernetes.io/instance": "trial"}
    pods.put(f"{APPS}/deployments/trial", {"metadata": {"labels": labels, "namespace": NAMESPACE}})
    result = await run("status")
    assert result.exit_code == 2
    assert "groundwork in rag, trial in rag" in result.stderr
    assert "--release" in result.stderr
    assert (await run("doctor", "--release", "groundwork")).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["-n", "nowhere"], "There is no namespace 'nowhere'", id="no such namespace"),
        pytest.param(["--release", "other"], "There is no release 'other'", id="no such release"),
        pytest.param(["--context", "other"], "cannot be used", id="no such context"),
    ],
)
async def test_what_is_not_there_is_said_with_exit_code_2(pods: PodsDouble, arguments: list[str], said: str) -> None:
    result = await run("status", *arguments)
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
    result = await run("status", "-n", NAMESPACE)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


async def test_an_api_server_that_is_away_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double = PodsDouble()
    async with double.running():
        double.write_kubeconfig(tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    result = await run("status")
    assert result.exit_code == 2
    assert "cannot be reached" in result.stderr
    assert "--context" in result.stderr


async def test_no_kubeconfig_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = await run("status")
    assert (result.exit_code, "There is no kubeconfig at" in result.stderr) == (2, True)


async def test_logs_are_merged_by_time_and_can_be_narrowed(pods: PodsDouble) -> None:
    pods.workload("nats")
    trace = "0af7651916cd43dd8448eb211c80319c"
    pods.logs["groundwork-gateway-0"] = [
        f"2026-11-23T12:00:01.5Z {json.dumps({'event': 'request', 'level': 'info', 'trace_id': trace})}",
        f"2026-11-23T12:00:03Z {json.dumps({'event': 'refused', 'level': 'warning', 'run_id': 'r1'})}",
    ]
    pods.logs["groundwork-nats-0"] = ["2026-11-23T12:00:02Z [1] 2026/11/23 12:00:02 [INF] Server is ready"]
    shown = (await run("logs")).stdout.splitlines()
    assert [line.split()[1] for line in shown] == ["gateway-0", "nats-0", "gateway-0"]
    assert shown[0].split()[2:] == ["info", "request", f"trace_id={trace}"]
    assert (await run("logs", "--level", "warning")).stdout.count("\n") == 1
    assert "request" in (await run("logs", "--trace", f"00-{trace}-00f067aa0ba902b7-01")).stdout
    assert "refused" in (await run("logs", "--run", "r1")).stdout
    lines = [json.loads(line) for line in (await run("logs", "nats", "--json")).stdout.splitlines()]
    assert [(line["pod"], line["level"]) for line in lines] == [("groundwork-nats-0", "info")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["natss"], "There are no pods of natss; there are those of gateway"),
        (["--since", "soon"], "is no span of time"),
        (["--level", "loud"], "There is no level 'loud'"),
        (["--trace", "abc"], "is no trace id"),
        (["-f", "--previous"], "do not go together"),
    ],
)
async def test_logs_that_cannot_be_are_a_sentence(pods: PodsDouble, arguments: list[str], said: str) -> None:
    result = await run("logs", *arguments)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output


async def test_logs_of_what_ran_before_say_why_it_ended(pods: PodsDouble) -> None:
    pods.logs["groundwork-gateway-0"] = ["2026-11-23T12:00:09Z again"]
    pods.previous["groundwork-gateway-0"] = ["2026-11-23T12:00:00Z BAD_KEYS: no usable key"]
    shown = (await run("logs", "--previous", "--level", "error")).stdout
    assert "BAD_KEYS" in shown
    assert "again" not in shown


async def test_followed_logs_take_in_new_pods(pods: PodsDouble) -> None:
    pods.logs["groundwork-gateway-0"] = ["2026-11-23T12:00:00Z first"]
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def follow() -> None:
        async with open_api() as api:
            async for line in follow_logs(api, Release(NAMESPACE, "groundwork"), Logs(("gateway",), 600)):
                await seen.put(line.text)

    following = asyncio.create_task(follow())
    try:
        async with asyncio.timeout(60):
            assert await seen.get() == "first"
            pods.logs["groundwork-gateway-1"] = ["2026-11-23T12:00:01Z of the new pod"]
            pods.pod("gateway", 1)
            await pods.tell()
            assert await seen.get() == "of the new pod"
            pods.logs["groundwork-gateway-0"].append("2026-11-23T12:00:02Z second")
            await pods.tell()
            assert await seen.get() == "second"
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_pods_of_others_are_left_alone(pods: PodsDouble) -> None:
    pods.put(f"{PODS}/stranger", {"metadata": {"labels": {"app": "x"}}, "spec": {}, "status": {}})
    assert (await run("doctor")).exit_code == 0
