"""Pods as the API server shows them, reduced to what the commands need, and the labels by which objects of a release are found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cli.cluster.connection.api import Json

NAME_LABEL = "app.kubernetes.io/name"
RELEASE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
PRODUCT = "groundwork"
OPS_PORT = 9000


@dataclass(frozen=True)
class Container:
    """A container of a pod. `waiting` and `message` say why it does not run; `exit_code` is None until it has ended once."""

    name: str
    image: str = ""
    ready: bool = False
    restarts: int = 0
    waiting: str = ""
    message: str = ""
    exit_code: int | None = None
    end_reason: str = ""

    @property
    def has_failed(self) -> bool:
        return bool(self.exit_code) and not self.ready


@dataclass(frozen=True)
class Pod:
    """A pod of the release."""

    name: str
    component: str
    owner: str = ""
    """Name of the Deployment, StatefulSet or Job that made it."""
    is_of_job: bool = False
    is_stateful: bool = False
    """Of a StatefulSet."""
    node: str = ""
    phase: str = ""
    ready: bool = False
    created_at: datetime | None = None
    is_leaving: bool = False
    """It is being ended."""
    unschedulable: str = ""
    """The scheduler's words for why no node takes it; empty once one does."""
    containers: Sequence[Container] = ()
    ports: Sequence[int] = ()

    @property
    def runs(self) -> bool:
        return self.phase == "Running" and not self.is_leaving


def parse_pod(thing: Json) -> Pod:
    """Of an object of the API server."""
    spec, status = thing["spec"], thing.get("status") or {}
    kind, owner = _owner(thing)
    scheduled = condition(thing, "PodScheduled")
    return Pod(
        name=name_of(thing),
        component=component_of(thing),
        owner=owner,
        is_of_job=kind == "Job",
        is_stateful=kind == "StatefulSet",
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "",
        ready=condition(thing, "Ready").get("status") == "True",
        created_at=moment(thing["metadata"].get("creationTimestamp")),
        is_leaving=bool(thing["metadata"].get("deletionTimestamp")),
        unschedulable=str(scheduled.get("message") or "") if scheduled.get("status") == "False" else "",
        containers=tuple(_containers(status)),
        ports=[port["containerPort"] for each in spec.get("containers") or () for port in each.get("ports") or ()],
    )


def condition(thing: Json, kind: str) -> Json:
    """The condition of an object's status; empty where there is none."""
    conditions = (thing.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), {})


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


def _owner(thing: Json) -> tuple[str, str]:
    """Kind and name of the owner. A ReplicaSet is named as its Deployment with a hash behind."""
    owners = thing["metadata"].get("ownerReferences") or []
    if not owners:
        return "", ""
    kind, name = str(owners[0]["kind"]), str(owners[0]["name"])
    return (kind, name.rpartition("-")[0]) if kind == "ReplicaSet" else (kind, name)


def _containers(status: Json) -> Iterable[Container]:
    """Init containers first, since they run first."""
    for each in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = each.get("state") or {}
        waiting = state.get("waiting") or {}
        ended = state.get("terminated") or (each.get("lastState") or {}).get("terminated") or {}
        yield Container(
            name=each["name"],
            image=each.get("image") or "",
            ready=bool(each.get("ready")),
            restarts=int(each.get("restartCount") or 0),
            waiting=waiting.get("reason") or "",
            message=waiting.get("message") or "",
            exit_code=ended.get("exitCode"),
            end_reason=ended.get("reason") or "",
        )
