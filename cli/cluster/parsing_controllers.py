"""Objects that act on workloads by themselves: autoscalers and the CronJob of backups."""

from __future__ import annotations

from collections.abc import Sequence

from cli.cluster.api import Json
from cli.cluster.parsing import moment, name_of
from cli.cluster.quantities import quantity
from cli.cluster.snapshot import Autoscaler, BackupRuns


def autoscalers(hpas: Sequence[Json], scaled_objects: Sequence[Json]) -> list[Autoscaler]:
    """One for each workload that is scaled: of KEDA's and the HPA that it made the former, with what the latter says."""
    by_name = {name_of(each): each for each in hpas}
    found = []
    for thing in scaled_objects:
        made = (thing.get("status") or {}).get("hpaName") or f"keda-hpa-{name_of(thing)}"
        found.append(_scaled_object(thing, by_name.pop(made, None)))
    return [*found, *map(_hpa, by_name.values())]


def _hpa(thing: Json) -> Autoscaler:
    spec, status = thing["spec"], thing.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    failing = [each for kind in ("AbleToScale", "ScalingActive") if (each := conditions.get(kind))]
    limited = conditions.get("ScalingLimited") or {}
    return Autoscaler(
        name=name_of(thing),
        target=spec["scaleTargetRef"]["name"],
        minimum=int(spec.get("minReplicas") or 1),
        maximum=int(spec["maxReplicas"]),
        current=int(status.get("currentReplicas") or 0),
        desired=int(status.get("desiredReplicas") or 0),
        metrics=_metrics(spec, status),
        trouble=next((_said(each) for each in failing if _has_failed(each)), ""),
        limited=limited.get("message") or "" if limited.get("reason") == "TooManyReplicas" else "",
        is_known=bool(conditions),
    )


def _scaled_object(thing: Json, hpa: Json | None) -> Autoscaler:
    spec, status = thing["spec"], thing.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    made = _hpa(hpa) if hpa else None
    trouble = "" if ready.get("status") == "True" else _said(ready) if ready else ""
    return Autoscaler(
        name=name_of(thing),
        target=spec["scaleTargetRef"]["name"],
        kind="ScaledObject",
        minimum=int(spec.get("minReplicaCount") or 0),
        maximum=int(spec.get("maxReplicaCount") or 100),
        current=made.current if made else 0,
        desired=made.desired if made else 0,
        metrics=made.metrics if made else (),
        trouble=trouble or (made.trouble if made else ""),
        limited=made.limited if made else "",
        is_known=bool(ready),
    )


def _has_failed(condition: Json) -> bool:
    # Scaled to nothing is a state, not a failure.
    return condition.get("status") == "False" and condition.get("reason") != "ScalingDisabled"


def _said(condition: Json) -> str:
    return str(condition.get("message") or condition.get("reason") or "")


def _metrics(spec: Json, status: Json) -> tuple[str, ...]:
    """`cpu 35% of 70%`, in the order of the specification."""
    currents = status.get("currentMetrics") or []
    shown = []
    for number, metric in enumerate(spec.get("metrics") or ()):
        kind = metric["type"][:1].lower() + metric["type"][1:]
        wanted = metric.get(kind) or {}
        current = (currents[number].get(kind) or {}) if number < len(currents) and currents[number] else {}
        name = wanted.get("name") or (wanted.get("metric") or {}).get("name") or kind
        shown.append(f"{_metric_name(name)} {_value(current.get('current'))} of {_value(wanted.get('target'))}")
    return tuple(shown)


def _metric_name(name: str) -> str:
    """KEDA numbers its metrics: `s0-nats-jetstream`."""
    first, _, rest = name.partition("-")
    return rest if rest and first[:1] == "s" and first[1:].isdigit() else name


def _value(value: Json | None) -> str:
    if not value:
        return "?"
    if (share := value.get("averageUtilization")) is not None:
        return f"{share}%"
    return f"{quantity(value.get('averageValue') or value.get('value')):g}"


def backup_runs(cron_jobs: Sequence[Json], jobs: Sequence[Json]) -> BackupRuns | None:
    """The CronJob of backups with its newest Job; None where the release has none."""
    if not cron_jobs:
        return None
    thing = cron_jobs[0]
    spec, status = thing["spec"], thing.get("status") or {}
    own = [each for each in jobs if _is_owned(each, name_of(thing))]
    newest = max(own, key=lambda each: str(each["metadata"].get("creationTimestamp") or ""), default=None)
    return BackupRuns(
        name=name_of(thing),
        schedule=str(spec.get("schedule") or ""),
        suspended=bool(spec.get("suspend")),
        created_at=moment(thing["metadata"].get("creationTimestamp")),
        last_started_at=moment(status.get("lastScheduleTime")),
        last_succeeded_at=moment(status.get("lastSuccessfulTime")),
        failed_job=name_of(newest) if newest is not None and _failed(newest) else "",
    )


def _is_owned(thing: Json, owner: str) -> bool:
    return any(each.get("name") == owner for each in thing["metadata"].get("ownerReferences") or ())


def _failed(job: Json) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Failed" and each["status"] == "True" for each in conditions)
