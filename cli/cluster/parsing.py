"""Objects of the API server as what the snapshot keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from cli.cluster.api import Json
from cli.cluster.quantities import quantity
from cli.cluster.snapshot import (
    Budget,
    Claim,
    Container,
    Ended,
    Node,
    Pod,
    Usage,
    Warned,
    Workload,
)

NAME_LABEL = "app.kubernetes.io/name"
RELEASE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
PRODUCT = "groundwork"
GPU = "nvidia.com/gpu"
_HOST_LABEL = "kubernetes.io/hostname"


def moment(text: object) -> datetime | None:
    """A time as Kubernetes writes it."""
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None


def name_of(thing: Json) -> str:
    return str(thing["metadata"]["name"])


def labels_of(thing: Json) -> Mapping[str, str]:
    return thing["metadata"].get("labels") or {}


def component_of(thing: Json) -> str:
    return labels_of(thing).get(COMPONENT_LABEL, "")


def pod(thing: Json) -> Pod:
    spec, status = thing["spec"], thing.get("status") or {}
    owner = _owner(thing)
    return Pod(
        name=name_of(thing),
        component=component_of(thing),
        workload=owner[1],
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "",
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        ready=_condition(status, "Ready").get("status") == "True",
        created_at=moment(thing["metadata"].get("creationTimestamp")),
        is_leaving=bool(thing["metadata"].get("deletionTimestamp")),
        unschedulable=_unschedulable(status),
        containers=tuple(_containers(spec, status)),
        claims=tuple(_claims(spec)),
        ports=_ports(spec),
        gpus=_gpus(spec),
        labels=labels_of(thing),
        is_of_job=owner[0] == "Job",
    )


def workload(thing: Json) -> Workload:
    """A Deployment or StatefulSet."""
    spec, status = thing["spec"], thing.get("status") or {}
    template = spec["template"]
    container = template["spec"]["containers"][0]
    progressing = _condition(status, "Progressing")
    return Workload(
        kind=str(thing["kind"]),
        name=name_of(thing),
        component=component_of(thing),
        wanted=int(spec.get("replicas", 1)),
        ready=int(status.get("readyReplicas") or 0),
        updated=int(status.get("updatedReplicas") or 0),
        image=container.get("image") or "",
        refused=_condition(status, "ReplicaFailure").get("message") or "",
        is_stuck=progressing.get("reason") == "ProgressDeadlineExceeded",
        environment={each["name"]: each["value"] for each in container.get("env") or () if "value" in each},
        pod_labels=(template.get("metadata") or {}).get("labels") or {},
        keeps_data=bool(spec.get("volumeClaimTemplates")),
    )


def node(thing: Json) -> Node:
    status = thing.get("status") or {}
    ready = _condition(status, "Ready")
    return Node(
        name=name_of(thing),
        ready=ready.get("status") == "True",
        reason=ready.get("message") or ready.get("reason") or "",
        pressures=tuple(
            each["type"]
            for each in status.get("conditions") or ()
            if each["type"].endswith("Pressure") and each["status"] == "True"
        ),
        unschedulable=bool(thing["spec"].get("unschedulable")),
        gpus=int(quantity((status.get("allocatable") or {}).get(GPU))),
    )


def claim(thing: Json, volumes: Mapping[str, Json]) -> Claim:
    """`volumes`: PersistentVolumes by name, as far as they may be read."""
    spec, status = thing["spec"], thing.get("status") or {}
    volume = volumes.get(spec.get("volumeName") or "")
    return Claim(
        name=name_of(thing),
        phase=status.get("phase") or "",
        size_bytes=int(quantity((status.get("capacity") or {}).get("storage"))),
        node=_node_of_volume(volume) if volume else "",
        storage_class=spec.get("storageClassName") or "",
    )


def budget(thing: Json) -> Budget:
    spec, status = thing["spec"], thing.get("status") or {}
    return Budget(
        name=name_of(thing),
        selector=(spec.get("selector") or {}).get("matchLabels") or {},
        min_available=str(spec.get("minAvailable", "")),
        max_unavailable=str(spec.get("maxUnavailable", "")),
        expected=int(status.get("expectedPods") or 0),
        healthy=int(status.get("currentHealthy") or 0),
        allowed=int(status.get("disruptionsAllowed") or 0),
    )


def warned(thing: Json) -> Warned:
    about = thing.get("involvedObject") or {}
    return Warned(
        kind=about.get("kind") or "",
        name=about.get("name") or "",
        reason=thing.get("reason") or "",
        message=thing.get("message") or "",
        at=moment(
            (thing.get("series") or {}).get("lastObservedTime")
            or thing.get("lastTimestamp")
            or thing.get("eventTime")
            or thing["metadata"].get("creationTimestamp")
        ),
    )


def usage(thing: Json) -> Usage:
    """Of a pod, from metrics.k8s.io."""
    containers = [each.get("usage") or {} for each in thing.get("containers") or ()]
    return Usage(
        cpu_cores=sum(quantity(each.get("cpu")) for each in containers),
        memory_bytes=int(sum(quantity(each.get("memory")) for each in containers)),
    )


def _owner(thing: Json) -> tuple[str, str]:
    """Kind and name of what made a pod. A ReplicaSet's name is that of its Deployment and a hash."""
    owners = thing["metadata"].get("ownerReferences") or []
    if not owners:
        return "", ""
    kind, name = str(owners[0]["kind"]), str(owners[0]["name"])
    return (kind, name.rpartition("-")[0]) if kind == "ReplicaSet" else (kind, name)


def _containers(spec: Json, status: Json) -> Iterable[Container]:
    """The containers, those of the start first, since they run first."""
    for specs, statuses in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
        limits = {each["name"]: (each.get("resources") or {}).get("limits") or {} for each in spec.get(specs) or ()}
        for each in status.get(statuses) or ():
            yield _container(each, limits.get(each["name"], {}))


def _container(status: Json, limits: Mapping[str, Any]) -> Container:
    state = status.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated")
    last = ended or (status.get("lastState") or {}).get("terminated")
    return Container(
        name=status["name"],
        image=status.get("image") or "",
        ready=bool(status.get("ready")),
        restarts=int(status.get("restartCount") or 0),
        waiting=waiting.get("reason") or "",
        message=waiting.get("message") or "",
        ended=_ended(last) if last else None,
        memory_limit_bytes=int(quantity(limits.get("memory"))),
    )


def _ended(state: Json) -> Ended:
    return Ended(
        reason=state.get("reason") or "",
        exit_code=int(state.get("exitCode") or 0),
        message=state.get("message") or "",
        at=moment(state.get("finishedAt")),
    )


def _condition(status: Json, kind: str) -> Json:
    """Empty where there is none."""
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})


def _unschedulable(status: Json) -> str:
    condition = _condition(status, "PodScheduled")
    return str(condition.get("message") or "") if condition.get("status") == "False" else ""


def _claims(spec: Json) -> Iterable[str]:
    for volume in spec.get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            yield source["claimName"]


def _ports(spec: Json) -> Mapping[str, int]:
    ports: Sequence[Json] = [port for each in spec.get("containers") or () for port in each.get("ports") or ()]
    return {port.get("name") or str(port["containerPort"]): int(port["containerPort"]) for port in ports}


def _gpus(spec: Json) -> int:
    return sum(
        int(quantity(((each.get("resources") or {}).get("limits") or {}).get(GPU)))
        for each in spec.get("containers") or ()
    )


def _node_of_volume(volume: Json) -> str:
    """The one node that a local volume is bound to; empty where any node can mount it."""
    terms = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or []
    names = {
        value
        for term in terms
        for expression in term.get("matchExpressions") or ()
        if expression.get("key") == _HOST_LABEL and expression.get("operator") == "In"
        for value in expression.get("values") or ()
    }
    return names.pop() if len(names) == 1 else ""
