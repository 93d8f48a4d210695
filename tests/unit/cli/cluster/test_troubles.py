"""Each kind of trouble is found once and named in a sentence with its cure; of what is well nothing is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.cluster.connection.pods import Container, Pod
from cli.cluster.installation import Installation
from cli.cluster.troubles import find_troubles

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
RUNS = Pod(
    "memory-0", "memory", node="node1", phase="Running", ready=True, containers=(Container("memory", ready=True),)
)
NODE = {"metadata": {"name": "node1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
BACKUP = {"name": "backup", "labels": {"app.kubernetes.io/component": "backup"}, "creationTimestamp": NOW.isoformat()}


def seen(*pods: Pod, **parts: Any) -> Installation:
    return Installation(NOW, **{"pods": pods or (RUNS,), "nodes": [NODE], **parts})


def failing(phase: str = "Running", component: str = "memory", **container: Any) -> Pod:
    return Pod(f"{component}-0", component, node="node1", phase=phase, containers=(Container(component, **container),))


def thing(name: str, status: Mapping[str, Any], spec: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec or {}, "status": status}


def backups(status: Mapping[str, Any], *, suspend: bool = False) -> dict[str, Any]:
    return {"metadata": BACKUP, "spec": {"suspend": suspend}, "status": status}


@dataclass(frozen=True)
class Case:
    """An installation, and the words in which its one trouble must be named."""

    installation: Installation
    kind: str
    words: tuple[str, ...] = field(default=())


LOST_NODE = {"metadata": {"name": "node1"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
MOUNT = {"reason": "FailedMount", "message": 'secret "keys" not found', "involvedObject": {"name": "memory-0"}}
CRASH = failing(waiting="CrashLoopBackOff", restarts=4, exit_code=1)
REFUSES = failing(waiting="CrashLoopBackOff", restarts=4, exit_code=78)
STATEFUL = Pod("zoo-0", "zoo", is_stateful=True, node="node1")
TWO_DAYS_AGO = (NOW - timedelta(days=3)).isoformat()
JOB = {"metadata": {**BACKUP, "name": "backup-1"}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}
CASES = {
    "lost node": Case(seen(RUNS, nodes=[LOST_NODE]), "NODE_LOST", ("node1", "memory-0")),
    "lost node of many pods": Case(
        seen(*(Pod(f"tools-{n}", "tools", node="node1") for n in range(4)), STATEFUL, nodes=[LOST_NODE]),
        "NODE_LOST",
        ("and zoo-0, tools-0, tools-1 and 2 more hang there",),
    ),
    "failed preparation": Case(
        seen(failing("Failed", "prepare", exit_code=1), last_words={"prepare-0": "FORBIDDEN: no right"}),
        "PREPARATION_FAILED",
        ("FORBIDDEN: no right", "same helm command"),
    ),
    "missing key": Case(
        seen(failing("Pending", waiting="CreateContainerConfigError", message='secret "x" not found')),
        "SECRET_MISSING",
        ('secret "x" not found', "helm upgrade"),
    ),
    "missing volume of keys": Case(seen(failing("Pending"), warnings=[MOUNT]), "SECRET_MISSING", ('secret "keys"',)),
    "image": Case(
        seen(failing("Pending", image="here/memory:1", waiting="ErrImagePull", message="not found")),
        "IMAGE_NOT_PULLED",
        ("here/memory:1", "image.tag"),
    ),
    "crash": Case(
        seen(CRASH, last_words={"memory-0": "Traceback\n  File x\nValueError: broken"}),
        "CRASH_LOOP",
        ("exit code 1", "ValueError: broken", "--previous"),
    ),
    "settings": Case(
        seen(REFUSES, last_words={"memory-0": "GROUNDWORK_PORT=x is not valid"}),
        "SETTINGS_REFUSED",
        ("GROUNDWORK_PORT=x is not valid", "memory.env"),
    ),
    "memory": Case(
        seen(failing(end_reason="OOMKilled", exit_code=137, restarts=1, component="ingest-worker")),
        "KILLED_FOR_MEMORY",
        ("ingestWorker.resources.limits.memory",),
    ),
    "no node": Case(
        seen(Pod("memory-0", "memory", phase="Pending", unschedulable="0/3 nodes are available")),
        "UNSCHEDULABLE",
        ("0/3 nodes are available",),
    ),
    "quota": Case(
        seen(
            workloads=[
                thing("memory", {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "quota"}]})
            ]
        ),
        "POD_REFUSED",
        ("quota",),
    ),
    "no volume": Case(
        seen(workloads=[thing("nats", {})], claims=[thing("data-nats-0", {"phase": "Pending"})]),
        "VOLUME_NOT_MADE",
        ("data-nats-0", "storage class"),
    ),
    "reported": Case(
        seen(troubles={"memory-0": ["message store: waits for it since 3 s: no answer"]}),
        "SERVICE_IN_TROUBLE",
        ("memory reports about message store", "NATS"),
    ),
    "not ready": Case(
        seen(Pod("memory-0", "memory", phase="Running", created_at=NOW - timedelta(hours=1))),
        "NOT_READY",
        ("memory-0",),
    ),
    "suspended": Case(seen(cron_jobs=[backups({}, suspend=True)]), "BACKUP_SUSPENDED", ("kubectl patch",)),
    "failed backup": Case(seen(cron_jobs=[backups({})], jobs=[JOB]), "BACKUP_FAILED", ("job/backup-1",)),
    "old backup": Case(seen(cron_jobs=[backups({"lastSuccessfulTime": TWO_DAYS_AGO})]), "BACKUP_OLD", ("2026-11-20",)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_trouble_is_named_once_with_its_cure(case: Case) -> None:
    (found,) = find_troubles(case.installation)
    assert found.kind == case.kind
    assert [word for word in case.words if word not in found.text] == []
    assert found.text.endswith(".")
    assert "\n" not in found.text


@pytest.mark.parametrize(
    "installation",
    [
        pytest.param(seen(), id="well"),
        pytest.param(seen(Pod("m", "memory", phase="Running", created_at=NOW)), id="just starting"),
        pytest.param(seen(failing("Succeeded", "backup")), id="a job that is done"),
        pytest.param(seen(cron_jobs=[backups({"lastSuccessfulTime": NOW.isoformat()})]), id="a backup of today"),
        pytest.param(seen(claims=[thing("strange", {"phase": "Pending"})]), id="a claim of others"),
    ],
)
def test_what_is_well_is_not_named(installation: Installation) -> None:
    assert not find_troubles(installation)


def test_replicas_that_report_the_same_are_named_once() -> None:
    pods = [RUNS, Pod("memory-1", "memory", phase="Running", ready=True)]
    lines = {"memory-0": ["x: away since 3 s"], "memory-1": ["x: away since 9 s"]}
    assert len(find_troubles(seen(*pods, troubles=lines))) == 1
