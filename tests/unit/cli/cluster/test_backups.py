"""`groundwork cluster backup` and `restore`: jobs from the chart's CronJobs, and the services stopped meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from cli.cluster import jobs, standstill
from tests.doubles.http_double import Recorded
from tests.doubles.kubernetes import NAMESPACE, KubernetesDouble
from tests.unit.cli.cluster.conftest import run

APPS, BATCH = f"/apis/apps/v1/namespaces/{NAMESPACE}", f"/apis/batch/v1/namespaces/{NAMESPACE}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SCALED = f"/apis/keda.sh/v1alpha1/namespaces/{NAMESPACE}/scaledobjects"
PAUSED = "autoscaling.keda.sh/paused-replicas"


def labels(component: str) -> dict[str, str]:
    return {f"app.kubernetes.io/{key}": value for key, value in _labels(component)}


def _labels(component: str) -> list[tuple[str, str]]:
    return [("name", "groundwork"), ("instance", "rag"), ("component", component)]


@pytest.fixture(autouse=True)
def _installed(kubernetes: KubernetesDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release whose pods go when it is scaled to nothing, and whose jobs end as soon as they are made."""
    for module in (jobs, standstill):
        monkeypatch.setattr(module, "_AGAIN_AFTER_S", 0.0)
    for component, replicas in {"gateway": 2, "ingest-worker": 3, "nats": 3}.items():
        kind = "statefulsets" if component == "nats" else "deployments"
        put(kubernetes, f"{APPS}/{kind}/rag-groundwork-{component}", component, spec={"replicas": replicas})
        put(kubernetes, f"{PODS}/rag-groundwork-{component}-x", component, spec={}, status={"phase": "Running"})
    put(kubernetes, f"{SCALED}/rag-groundwork-ingest-worker", "ingest-worker", spec={})
    for component in ("backup", "restore"):
        container = {
            "name": component,
            "args": ["backup", "/backups"],
            "env": [{"name": "BACKUP", "value": "/backups"}],
        }
        template = {"spec": {"template": {"spec": {"containers": [container]}}}}
        put(
            kubernetes,
            f"{BATCH}/cronjobs/rag-groundwork-{component}",
            component,
            spec={"suspend": component == "restore", "jobTemplate": template},
            uid="u1",
        )
    kubernetes.before.append(lambda request: pods_go(kubernetes, request))
    end_jobs(kubernetes, "Complete", "It is done.")


def put(kubernetes: KubernetesDouble, path: str, component: str, *, uid: str = "", **content: Any) -> None:
    kubernetes.put(path, {"metadata": {"labels": labels(component), "uid": uid}, **content})


def pods_go(kubernetes: KubernetesDouble, request: Recorded) -> None:
    if request.method == "PATCH" and request.path.startswith(APPS) and request.body.get("spec") == {"replicas": 0}:
        kubernetes.objects.pop(f"{PODS}/{request.path.rpartition('/')[2]}-x", None)


def end_jobs(kubernetes: KubernetesDouble, condition: str, log: str) -> None:
    """A job that is asked about has a pod with a log, and has ended."""

    def end(request: Recorded) -> None:
        if request.method == "GET" and request.path.startswith(f"{BATCH}/jobs/"):
            name = request.path.rpartition("/")[2]
            status = {"conditions": [{"type": condition, "status": "True", "message": "it said so"}]}
            kubernetes.put(request.path, {**kubernetes.objects[request.path], "status": status})
            pod = {"labels": {"batch.kubernetes.io/job-name": name}, "creationTimestamp": "2026-01-01T00:00:00Z"}
            kubernetes.put(f"{PODS}/{name}-y", {"metadata": pod, "spec": {}, "status": {"phase": "Succeeded"}})
            kubernetes.texts[f"{PODS}/{name}-y/log"] = log + "\n"

    kubernetes.before.append(end)


def made_jobs(kubernetes: KubernetesDouble) -> list[dict[str, Any]]:
    return [found for path, found in kubernetes.objects.items() if path.startswith(f"{BATCH}/jobs/")]


def replicas(kubernetes: KubernetesDouble) -> dict[str, int]:
    return {
        path.rpartition("/")[2].removeprefix("rag-groundwork-"): found["spec"]["replicas"]
        for path, found in kubernetes.objects.items()
        if path.startswith(APPS)
    }


async def test_a_backup_is_made_by_the_charts_own_job(kubernetes: KubernetesDouble) -> None:
    result = await run("backup", "--anyway")
    assert result.exit_code == 0, result.output
    assert "It is done." in result.output
    (job,) = made_jobs(kubernetes)
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == ["backup", "/backups", "--anyway"]
    assert job["metadata"]["ownerReferences"][0]["name"] == "rag-groundwork-backup"
    assert replicas(kubernetes) == {"gateway": 2, "ingest-worker": 3, "nats": 3}


async def test_a_restore_happens_while_no_service_runs_and_all_run_again_afterwards(
    kubernetes: KubernetesDouble,
) -> None:
    at_the_job: list[dict[str, Any]] = []

    def look(request: Recorded) -> None:
        if request.method == "POST" and request.path == f"{BATCH}/jobs":
            annotations = kubernetes.objects[f"{SCALED}/rag-groundwork-ingest-worker"]["metadata"]["annotations"]
            backups = kubernetes.objects[f"{BATCH}/cronjobs/rag-groundwork-backup"]["spec"]["suspend"]
            at_the_job.append({**replicas(kubernetes), "keda": annotations[PAUSED], "suspended": backups})

    kubernetes.before.append(look)
    result = await run("restore", "groundwork-20260101T030000Z.tar", "--yes")
    assert result.exit_code == 0, result.output
    assert at_the_job == [{"gateway": 0, "ingest-worker": 0, "nats": 3, "keda": "0", "suspended": True}]
    assert replicas(kubernetes) == {"gateway": 2, "ingest-worker": 3, "nats": 3}
    assert not kubernetes.objects[f"{SCALED}/rag-groundwork-ingest-worker"]["metadata"]["annotations"]
    assert kubernetes.objects[f"{BATCH}/cronjobs/rag-groundwork-backup"]["spec"]["suspend"] is False
    assert kubernetes.objects[f"{BATCH}/cronjobs/rag-groundwork-restore"]["spec"]["suspend"] is True
    (job,) = made_jobs(kubernetes)
    environment = job["spec"]["template"]["spec"]["containers"][0]["env"]
    assert environment == [{"name": "BACKUP", "value": "/backups/groundwork-20260101T030000Z.tar"}]


async def test_after_a_failed_restore_nothing_runs_until_it_is_repeated_or_started_as_it_is(
    kubernetes: KubernetesDouble,
) -> None:
    kubernetes.before.pop()
    end_jobs(kubernetes, "Failed", "There is no backup in /backups")
    result = await run("restore", "--yes")
    assert result.exit_code == 1
    assert "There is no backup in /backups" in result.output
    assert "--only-start" in result.output
    assert replicas(kubernetes) == {"gateway": 0, "ingest-worker": 0, "nats": 3}
    assert (await run("restore", "--yes")).exit_code == 1, "what ran before is still known"
    result = await run("restore", "--only-start")
    assert result.exit_code == 0
    assert replicas(kubernetes) == {"gateway": 2, "ingest-worker": 3, "nats": 3}


async def test_nothing_is_touched_before_somebody_agrees(kubernetes: KubernetesDouble) -> None:
    result = await run("restore")
    assert (result.exit_code, "--yes" in result.output) == (2, True), result.output
    assert replicas(kubernetes) == {"gateway": 2, "ingest-worker": 3, "nats": 3}
    assert {request.method for request in kubernetes.requests} == {"GET"}


async def test_pods_that_do_not_end_are_named(kubernetes: KubernetesDouble) -> None:
    kubernetes.before.clear()
    result = await run("restore", "--yes", "--timeout", "1s")
    assert result.exit_code == 1
    assert "rag-groundwork-gateway-x" in result.output
    assert not made_jobs(kubernetes)


@pytest.mark.parametrize("command", ["backup", "restore"])
async def test_without_backups_it_is_said_how_to_have_them(kubernetes: KubernetesDouble, command: str) -> None:
    del kubernetes.objects[f"{BATCH}/cronjobs/rag-groundwork-{command}"]
    result = await run(command, *(["--yes"] if command == "restore" else []))
    assert result.exit_code == 1
    assert "backup.enabled=true" in result.output


async def test_a_path_is_no_name_of_a_backup(kubernetes: KubernetesDouble) -> None:
    result = await run("restore", "/backups/x.tar", "--yes")
    assert result.exit_code == 2
    assert not made_jobs(kubernetes)
