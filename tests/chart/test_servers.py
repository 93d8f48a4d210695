"""What an upgrade cannot do to the servers that run, and is refused before it begins, with a sentence."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts.helm import Helm, HelmError
from tests.doubles.kubernetes import NAMESPACE, KubernetesDouble

APPS = {"groupVersion": "apps/v1", "version": "v1"}
STATEFUL_SETS = {"name": "statefulsets", "kind": "StatefulSet", "namespaced": True, "verbs": ["get"]}
DISCOVERY: dict[str, Any] = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [APPS], "preferredVersion": APPS}]},
    "/apis/apps/v1": {"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [STATEFUL_SETS]},
}
"""What helm asks before it looks an object up."""

REFUSAL = "without the loss of what they hold"


@dataclass(frozen=True)
class Change:
    component: str
    running: int
    wanted: int
    is_allowed: bool


@pytest.fixture
async def kubernetes(tmp_path: Path) -> AsyncIterator[KubernetesDouble]:
    double = KubernetesDouble()
    double.objects.update(DISCOVERY)
    async with double.running():
        double.write_kubeconfig(tmp_path / "kubeconfig")
        yield double


@pytest.mark.parametrize(
    "change",
    [
        Change("nats", 1, 3, is_allowed=False),
        Change("nats", 3, 1, is_allowed=False),
        Change("nats", 5, 3, is_allowed=False),
        Change("nats", 3, 3, is_allowed=True),
        Change("nats", 3, 5, is_allowed=True),
        Change("nats", 0, 3, is_allowed=True),
        Change("elasticsearch", 1, 3, is_allowed=False),
        Change("elasticsearch", 3, 1, is_allowed=False),
        Change("elasticsearch", 3, 5, is_allowed=True),
    ],
    ids=lambda change: f"{change.component} from {change.running} to {change.wanted}",
)
async def test_an_upgrade_that_loses_what_servers_hold_is_refused(
    change: Change, helm: Helm, kubernetes: KubernetesDouble, tmp_path: Path
) -> None:
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/groundwork-{change.component}"
    kubernetes.put(path, {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"replicas": change.running}})
    values = (f"{change.component}.enabled=true", f"{change.component}.replicas={change.wanted}")
    said = await asyncio.to_thread(_said, helm, tmp_path / "kubeconfig", *values)
    assert path in {request.path for request in kubernetes.requests}
    assert (REFUSAL in said) is not change.is_allowed, said
    assert change.is_allowed or f"{change.component}.replicas is {change.wanted}, and {change.running} run" in said


@pytest.mark.parametrize(
    ("component", "values", "is_refused"),
    [
        ("nats", ["nats.persistence.size=40Gi"], True),
        ("nats", ["nats.persistence.size=20480Mi"], False),
        ("retriever", ["retriever.persistence.size=40Gi"], True),
        ("retriever", ["retriever.persistence.size=40Gi", "qdrant.enabled=true", "elasticsearch.enabled=true"], False),
        ("reranker", ["reranker.persistence.size=40Gi", "reranker.persistence.enabled=true"], True),
        ("reranker", ["reranker.persistence.size=40Gi"], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_an_upgrade_to_another_size_of_volumes_is_refused(
    component: str, values: list[str], is_refused: bool, helm: Helm, kubernetes: KubernetesDouble, tmp_path: Path
) -> None:
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/groundwork-{component}"
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "20Gi"}}}}]
    spec = {"replicas": 3, "volumeClaimTemplates": claims}
    kubernetes.put(path, {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": spec})
    said = await asyncio.to_thread(_said, helm, tmp_path / "kubeconfig", *values)
    assert (f"{component}.persistence.size is 40Gi, and the volumes that run have 20Gi" in said) is is_refused, said


def _said(helm: Helm, kubeconfig: Path, *values: str) -> str:
    """What helm says after it has looked at the cluster. It does not end well either way: the double knows no kind but one."""
    options = [part for value in values for part in ("--set", value)]
    with pytest.raises(HelmError) as ended:
        helm.template(namespace=NAMESPACE, options=["--dry-run=server", "--kubeconfig", kubeconfig, *options])
    assert ".tpl:" not in str(ended.value), "a mistake of the template"
    return str(ended.value)
