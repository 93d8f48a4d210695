"""What a change of the number of pods means: whether it can be, and what has to be changed for it."""

from __future__ import annotations

from dataclasses import dataclass

from cli.cluster.checks.finding import value_name
from cli.cluster.checks.message_store import asked_copies
from cli.cluster.snapshot import Autoscaler, Snapshot, Workload
from cli.errors import UsageError

_HOLDS_DATA = {"nats", "qdrant", "elasticsearch"}
"""Each of their pods holds a part of what is stored."""
_CLUSTERED = {"nats", "elasticsearch"}
"""A server of these is told at its first start whether it is alone."""
_KINDS = {"Deployment": "apps/v1/deployments", "StatefulSet": "apps/v1/statefulsets"}
_SCALERS = {
    "HorizontalPodAutoscaler": ("autoscaling/v2/horizontalpodautoscalers", "minReplicas", "maxReplicas"),
    "ScaledObject": ("keda.sh/v1alpha1/scaledobjects", "minReplicaCount", "maxReplicaCount"),
}


@dataclass(frozen=True)
class Bounds:
    """What an autoscaler is to keep to; None leaves it as it is."""

    minimum: int | None = None
    maximum: int | None = None

    def __bool__(self) -> bool:
        return self.minimum is not None or self.maximum is not None


@dataclass(frozen=True)
class Change:
    """A patch of one object, and what it brings."""

    component: str
    workload: Workload
    kind: str
    """API and kind of the object that is patched, as in a path."""
    name: str
    patch: dict[str, dict[str, int]]
    wanted: int | None
    """Pods afterwards; None where an autoscaler decides."""
    told: str
    value: str
    """What to set in the values, so that the next `helm upgrade` keeps it."""


def parse(arguments: list[str], bounds: Bounds) -> dict[str, int | None]:
    """`COMPONENT=N` as names and numbers; with bounds of an autoscaler `COMPONENT` alone. Raises UsageError."""
    wanted: dict[str, int | None] = {}
    for argument in arguments:
        name, equals, number = argument.partition("=")
        if bounds and not equals:
            wanted[name] = None
        elif bounds:
            raise UsageError(f"{argument!r}: name the component alone, its autoscaler decides how many there are.")
        elif not equals or not number.isdigit():
            raise UsageError(f"{argument!r} is not COMPONENT=NUMBER, as in gateway=3.")
        else:
            wanted[name] = int(number)
    return wanted


def decide(snapshot: Snapshot, component: str, wanted: int | None, bounds: Bounds) -> Change:
    """What has to be changed. Raises UsageError for what cannot be, with what can."""
    workload = snapshot.workload_of(component)
    if workload is None:
        there = ", ".join(each.component for each in snapshot.workloads)
        raise UsageError(f"There is no component {component!r}; there are {there}.")
    scaler = next((each for each in snapshot.autoscalers if each.target == workload.name), None)
    if wanted is None:
        return _bounded(workload, scaler, bounds)
    if scaler is not None:
        raise UsageError(
            f"{_kind(scaler)} {scaler.name} decides how many pods {component} has ({scaler.minimum} to "
            f"{scaler.maximum}), and would undo it: change its bounds with groundwork cluster scale {component} "
            f"--autoscaler-min {wanted}, or --autoscaler-max."
        )
    _require_possible(snapshot, workload, wanted)
    return Change(
        component=component,
        workload=workload,
        kind=_KINDS[workload.kind],
        name=workload.name,
        patch={"spec": {"replicas": wanted}},
        wanted=wanted,
        told=f"{component} goes from {workload.wanted} to {wanted}",
        value=f"{value_name(component)}.replicas={wanted}",
    )


def _bounded(workload: Workload, scaler: Autoscaler | None, bounds: Bounds) -> Change:
    component = workload.component
    section = f"{value_name(component)}.autoscaling"
    if scaler is None:
        raise UsageError(
            f"{component} has no autoscaler: groundwork cluster scale {component}=N changes it, or switch one on with "
            f"{section}.enabled=true (helm upgrade)."
        )
    minimum = scaler.minimum if bounds.minimum is None else bounds.minimum
    maximum = scaler.maximum if bounds.maximum is None else bounds.maximum
    if minimum > maximum:
        raise UsageError(f"At least {minimum} and at most {maximum} cannot both be: the smallest is above the largest.")
    if minimum < 1 and not scaler.is_keda:
        raise UsageError(f"An HPA keeps one pod at least: {component} cannot be scaled to none by it.")
    _require_not_embedded(workload, maximum)
    kind, smallest, largest = _SCALERS[scaler.kind]
    return Change(
        component=component,
        workload=workload,
        kind=kind,
        name=scaler.name,
        patch={"spec": {smallest: minimum, largest: maximum}},
        wanted=None,
        told=f"{_kind(scaler)} {scaler.name} keeps {component} between {minimum} and {maximum}",
        value=f"{section}.minReplicas={minimum} and {section}.maxReplicas={maximum}",
    )


def _require_possible(snapshot: Snapshot, workload: Workload, wanted: int) -> None:
    """Raises UsageError."""
    component = workload.component
    _require_not_embedded(workload, wanted)
    copies = asked_copies(snapshot)
    if component in _CLUSTERED and workload.wanted == 1 and wanted > 1:
        raise UsageError(
            f"A server of {component} that was alone cannot become one of several without the loss of what it holds: "
            "docs/kubernetes.md#the-number-of-servers says what to do instead."
        )
    if component == "nats" and wanted < copies:
        raise UsageError(
            f"NATS keeps everything on {copies} servers, so there cannot be {wanted}: give its streams fewer copies "
            f"first (nats stream update --replicas). {_taken_away(workload, wanted)}"
        )
    if component in _HOLDS_DATA and wanted < workload.wanted:
        raise UsageError(
            f"The pods of {component} hold what is stored: {workload.wanted - wanted} of them less would take its part "
            f"away. Move it to the others first by that server's own means. {_taken_away(workload, wanted)}"
        )


def _taken_away(workload: Workload, wanted: int) -> str:
    return (
        f"Then kubectl scale statefulset/{workload.name} --replicas={wanted}, and "
        f"{value_name(workload.component)}.replicas={wanted} in the values."
    )


def _require_not_embedded(workload: Workload, wanted: int) -> None:
    if workload.component == "retriever" and workload.keeps_data and wanted > 1:
        raise UsageError(
            "This retriever keeps its indexes on a volume of its own, which one process can write: there can be one. "
            "For more, switch to qdrant and elasticsearch in the values (helm upgrade); the indexes are filled from "
            "the stored files."
        )


def _kind(scaler: Autoscaler) -> str:
    return "KEDA's ScaledObject" if scaler.is_keda else "HPA"
