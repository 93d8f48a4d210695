"""A snapshot as tables: for the terminal, and as JSON with the same names and exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.cluster.checks import findings
from cli.cluster.checks.finding import listed, shortened
from cli.cluster.checks.work import highest, summed
from cli.cluster.quantities import in_bytes, in_time
from cli.cluster.snapshot import Autoscaler, Pod, Snapshot, Workload
from ops.state import QUEUES, READING

Row = Mapping[str, Any]

_SAID_MAX = 120


@dataclass(frozen=True)
class Section:
    """One table. Its rows have the same keys; the first one's is what the table is about."""

    name: str
    rows: Sequence[Row]

    @property
    def columns(self) -> list[str]:
        return [_heading(key) for key in self.rows[0]]

    @property
    def cells(self) -> list[list[str]]:
        return [[_cell(key, value) for key, value in row.items()] for row in self.rows]


@dataclass(frozen=True)
class Overview:
    """All tables that have rows."""

    snapshot: Snapshot
    sections: Sequence[Section]
    is_whole: bool
    """Whether every component has the pods that it should have."""
    troubles: int

    def as_json(self) -> dict[str, Any]:
        return {
            "namespace": self.snapshot.namespace,
            "release": self.snapshot.release,
            "taken_at": self.snapshot.taken_at.isoformat(),
            "whole": self.is_whole,
            "troubles": self.troubles,
            "unseen": list(self.snapshot.unseen),
            **{section.name: [dict(row) for row in section.rows] for section in self.sections},
        }


def overview(snapshot: Snapshot) -> Overview:
    """What runs, what lags, what is degraded and why."""
    builders: Sequence[tuple[str, Callable[[Snapshot], Iterable[Row]]]] = (
        ("components", _components),
        ("queues", _queues),
        ("work", _work),
        ("nats", _nats),
        ("engines", _engines),
        ("models", _models),
        ("autoscalers", _autoscalers),
        ("budgets", _budgets),
        ("volumes", _volumes),
        ("backups", _backups),
    )
    sections = [Section(name, rows) for name, build in builders if (rows := list(build(snapshot)))]
    lost = snapshot.lost_nodes
    is_whole = all(each.ready >= each.wanted for each in snapshot.workloads) and not any(
        pod.node in lost for pod in snapshot.pods
    )
    return Overview(snapshot, sections, is_whole, len(findings(snapshot)))


def _components(snapshot: Snapshot) -> Iterable[Row]:
    for workload in snapshot.workloads:
        pods = snapshot.pods_of(workload.component)
        usages = [snapshot.usage[pod.name] for pod in pods if pod.name in snapshot.usage]
        yield {
            "component": workload.component,
            "ready": workload.ready,
            "wanted": workload.wanted,
            "version": workload.version,
            "restarts": sum(pod.restarts for pod in pods),
            "cpu_cores": round(sum(each.cpu_cores for each in usages), 3) if usages else None,
            "memory_bytes": sum(each.memory_bytes for each in usages) if usages else None,
            "nodes": sorted({pod.node for pod in pods if pod.node}),
            "state": _state(snapshot, workload, pods),
        }


def _state(snapshot: Snapshot, workload: Workload, pods: Sequence[Pod]) -> str:
    """Why it is not as it should be, in the words of whoever says so; `ok` when nobody does."""
    said: list[str] = []
    if workload.refused:
        said.append(workload.refused)
    for pod in pods:
        said += _pod_state(snapshot, pod)
    if workload.updated < workload.wanted and workload.kind == "Deployment":
        said.append("is being rolled out")
    return shortened("; ".join(dict.fromkeys(said)), _SAID_MAX) or "ok"


def _pod_state(snapshot: Snapshot, pod: Pod) -> Iterable[str]:
    if pod.node in snapshot.lost_nodes:
        yield f"{pod.name} is on {pod.node}, which does not answer"
        return
    if pod.is_leaving:
        yield f"{pod.name} is stopping"
        return
    if pod.unschedulable:
        yield f"{pod.name} waits for a node"
    for container in pod.containers:
        if container.waiting:
            yield f"{pod.name}: {container.waiting}"
    ops = snapshot.ops.get(pod.name)
    for trouble in ops.troubles if ops is not None else ():
        yield f"{trouble.part}: {trouble.message}"
    if not pod.ready and not pod.unschedulable and not (ops is not None and ops.troubles):
        yield f"{pod.name} is not ready"


def _queues(snapshot: Snapshot) -> Iterable[Row]:
    """As NATS tells them, or where it is no part of the release as our own services do."""
    queues = [stream for stream in snapshot.streams if stream.is_queue]
    for stream in queues:
        age = snapshot.taken_at - stream.oldest_at if stream.oldest_at else None
        yield {
            "queue": stream.name,
            "waiting": stream.messages - stream.in_hand,
            "in_hand": stream.in_hand,
            "oldest_s": round(age.total_seconds()) if age else None,
        }
    for name in [queue.name for queue in QUEUES] if not queues and snapshot.ops else ():
        metric = f"groundwork_{name.lower()}_queue"
        in_hand = summed(snapshot, "groundwork_queue_jobs_in_hand", queue=name)
        yield {
            "queue": name,
            "waiting": max(0, round(highest(snapshot, f"{metric}_depth") - in_hand)),
            "in_hand": round(in_hand),
            "oldest_s": round(highest(snapshot, f"{metric}_oldest_seconds")) or None,
        }
    if letters := round(highest(snapshot, "groundwork_ingest_dead_letters")):
        yield {"queue": "dead letters", "waiting": letters, "in_hand": 0, "oldest_s": None}


def _work(snapshot: Snapshot) -> Iterable[Row]:
    """What is under way now."""
    if not snapshot.ops:
        return
    yield {"under_way": "runs", "now": round(summed(snapshot, "groundwork_runs_in_hand"))}
    yield {"under_way": "runs that wait for a person", "now": round(highest(snapshot, "groundwork_runs_waiting"))}
    yield {"under_way": "runs that nobody works on", "now": round(highest(snapshot, "groundwork_runs_orphaned"))}
    documents = summed(snapshot, "groundwork_queue_jobs_in_hand", queue=READING.name)
    yield {"under_way": "documents that are ingested", "now": round(documents)}
    yield {"under_way": "event streams", "now": round(summed(snapshot, "groundwork_gateway_event_streams"))}


def _nats(snapshot: Snapshot) -> Iterable[Row]:
    leader = next((each for each in snapshot.nats if each.is_meta_leader), None)
    leads = [stream.leader for stream in snapshot.streams]
    for server in snapshot.nats:
        state = server.problem or server.health
        if not state and leader is not None and server.name in leader.behind:
            state = "has not caught up"
        yield {
            "nats_server": server.name or server.pod,
            "version": server.version,
            "leads": ("the cluster, " if server.is_meta_leader else "") + f"{leads.count(server.name)} streams",
            "storage_bytes": server.storage_bytes,
            "limit_bytes": server.storage_limit_bytes or None,
            "state": shortened(state, _SAID_MAX) or "ok",
        }


def _engines(snapshot: Snapshot) -> Iterable[Row]:
    for pod in snapshot.pods_of("retriever"):
        ops = snapshot.ops.get(pod.name)
        if ops is None or ops.problem:
            continue
        metrics = ops.metrics
        up = {each.labels.get("engine", ""): each.value for each in metrics.of("groundwork_retriever_engine_up")}
        missing = metrics.value("groundwork_retriever_missing_revisions")
        age = metrics.value("groundwork_retriever_pointer_age_seconds")
        yield {
            "retriever": pod.name,
            "engines": ", ".join(f"{name} {'up' if value else 'away'}" for name, value in sorted(up.items())),
            "missing_documents": None if missing is None else round(missing),
            "pointer_age_s": None if age is None else round(age, 1),
        }


def _models(snapshot: Snapshot) -> Iterable[Row]:
    """Pods with GPUs, and model servers without."""
    served = {each.pod: each for each in snapshot.served}
    allocatable = {node.name: node.gpus for node in snapshot.nodes}
    for pod in snapshot.pods:
        if pod.gpus or pod.name in served:
            model = served.get(pod.name)
            yield {
                "pod": pod.name,
                "model": ", ".join(model.models if model is not None else _loaded(snapshot, pod)),
                "gpus": pod.gpus,
                "gpus_of_node": allocatable.get(pod.node),
                "node": pod.node,
                "state": shortened(model.problem, _SAID_MAX) if model is not None and model.problem else "ok",
            }


def _loaded(snapshot: Snapshot, pod: Pod) -> list[str]:
    """The models that our model server has loaded."""
    ops = snapshot.ops.get(pod.name)
    samples = ops.metrics.of("groundwork_reranker_model_info") if ops is not None else ()
    return sorted({each.labels.get("model", "") for each in samples})


def _autoscalers(snapshot: Snapshot) -> Iterable[Row]:
    for scaler in snapshot.autoscalers:
        yield {
            "autoscaler_of": scaler.target,
            "by": "KEDA" if scaler.is_keda else "HPA",
            "pods": scaler.current,
            "minimum": scaler.minimum,
            "maximum": scaler.maximum,
            "measures": ", ".join(scaler.metrics),
            "state": shortened(_scaling(scaler), _SAID_MAX),
        }


def _scaling(scaler: Autoscaler) -> str:
    if not scaler.is_known:
        return "nobody acts on it"
    if scaler.trouble:
        return scaler.trouble
    if scaler.current and scaler.desired != scaler.current:
        return f"goes to {scaler.desired}"
    return scaler.limited or "ok"


def _budgets(snapshot: Snapshot) -> Iterable[Row]:
    for budget in snapshot.budgets:
        yield {
            "disruption_budget": budget.name,
            "healthy": budget.healthy,
            "of": budget.expected,
            "may_leave_now": budget.allowed,
        }


def _volumes(snapshot: Snapshot) -> Iterable[Row]:
    for claim in snapshot.claims:
        owners = listed(pod.name for pod in snapshot.pods if claim.name in pod.claims)
        share = claim.used_share
        yield {
            "volume": claim.name,
            "of": owners,
            "size_bytes": claim.size_bytes,
            "full_percent": None if share is None else round(100 * share),
            "left_bytes": claim.available_bytes,
            "only_on": claim.node,
            "state": claim.phase,
        }


def _backups(snapshot: Snapshot) -> Iterable[Row]:
    backups = snapshot.backups
    if backups is not None:
        last = backups.last_succeeded_at
        yield {
            "backup": backups.name,
            "schedule": backups.schedule,
            "last_success": last.isoformat() if last else None,
            "state": "suspended"
            if backups.suspended
            else f"{backups.failed_job} failed"
            if backups.failed_job
            else "ok",
        }


_UNITS = ("_bytes", "_s", "_cores", "_percent")


def _heading(key: str) -> str:
    for unit in _UNITS:
        key = key.removesuffix(unit)
    return key.replace("_", " ")


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return listed(value)
    if key.endswith("_bytes"):
        return in_bytes(value)
    if key.endswith("_percent"):
        return f"{value}%"
    return in_time(value) if key.endswith("_s") else str(value)
