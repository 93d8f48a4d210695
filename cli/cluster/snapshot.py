"""An installation as it was at one moment: what the API server, the pods' operations ports and the NATS servers said. Read by
`reading`, judged by `checks`, shown by `status`; nothing here asks anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cli.cluster.metrics import Metrics


@dataclass(frozen=True)
class Ended:
    """How a container ended."""

    reason: str
    """`Error`, `OOMKilled`, `Completed` …"""
    exit_code: int
    message: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class Container:
    """A container of a pod, as it is now."""

    name: str
    image: str = ""
    ready: bool = False
    restarts: int = 0
    waiting: str = ""
    """Why it does not run: `ImagePullBackOff`, `CrashLoopBackOff` …; empty when it runs or has ended."""
    message: str = ""
    ended: Ended | None = None
    """How it ended, or ended the last time before it was started again."""
    memory_limit_bytes: int = 0
    last_words: str = ""
    """The end of the log of the run that failed."""


@dataclass(frozen=True)
class Pod:
    """A pod of the release."""

    name: str
    component: str
    workload: str = ""
    """Name of the Deployment, StatefulSet or Job that made it."""
    node: str = ""
    phase: str = "Running"
    reason: str = ""
    message: str = ""
    ready: bool = True
    created_at: datetime | None = None
    is_leaving: bool = False
    """Told to end."""
    unschedulable: str = ""
    """The scheduler's words for why no node takes it; empty once one does."""
    containers: Sequence[Container] = ()
    claims: Sequence[str] = ()
    ports: Mapping[str, int] = field(default_factory=dict)
    gpus: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    is_of_job: bool = False

    @property
    def restarts(self) -> int:
        return sum(each.restarts for each in self.containers)

    @property
    def runs(self) -> bool:
        return self.phase == "Running" and not self.is_leaving


@dataclass(frozen=True)
class Workload:
    """A Deployment or StatefulSet."""

    kind: str
    name: str
    component: str
    wanted: int
    ready: int
    updated: int = 0
    image: str = ""
    refused: str = ""
    """Why no pod could be made (ReplicaFailure, FailedCreate): quota, Pod Security."""
    is_stuck: bool = False
    """Its roll-out made no progress within its deadline."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables with plain values."""
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    keeps_data: bool = False
    """Its pods have volumes of their own."""

    @property
    def version(self) -> str:
        """The image's tag."""
        _, colon, tag = self.image.rpartition("/")[2].partition(":")
        return tag if colon else "latest"


@dataclass(frozen=True)
class Node:
    """A machine of the cluster."""

    name: str
    ready: bool = True
    reason: str = ""
    pressures: Sequence[str] = ()
    """`DiskPressure`, `MemoryPressure`, `PIDPressure`."""
    unschedulable: bool = False
    gpus: int = 0
    """Allocatable ones."""


@dataclass(frozen=True)
class Claim:
    """A volume that a pod asks for."""

    name: str
    phase: str = "Bound"
    size_bytes: int = 0
    used_bytes: int | None = None
    available_bytes: int | None = None
    node: str = ""
    """The only node that can mount it, where that is so."""
    storage_class: str = ""

    @property
    def used_share(self) -> float | None:
        """From 0 to 1; None when nobody knows."""
        if self.used_bytes is None or self.available_bytes is None:
            return None
        whole = self.used_bytes + self.available_bytes
        return self.used_bytes / whole if whole else None


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget and the pods that it is about."""

    name: str
    selector: Mapping[str, str]
    min_available: str = ""
    max_unavailable: str = ""
    expected: int = 0
    healthy: int = 0
    allowed: int = 0


@dataclass(frozen=True)
class Autoscaler:
    """An HPA, or KEDA's ScaledObject with the HPA that it makes."""

    name: str
    target: str
    """Name of the Deployment or StatefulSet."""
    kind: str = "HorizontalPodAutoscaler"
    minimum: int = 1
    maximum: int = 1
    current: int = 0
    desired: int = 0
    metrics: Sequence[str] = ()
    """As `cpu 35% of 70%`."""
    trouble: str = ""
    """Why it cannot scale, in the controller's words."""
    limited: str = ""
    """That it would go further than it may."""
    is_known: bool = True
    """Whether a controller has looked at it."""

    @property
    def is_keda(self) -> bool:
        return self.kind == "ScaledObject"


@dataclass(frozen=True)
class Warned:
    """An event of the cluster that warns, of the last hour."""

    kind: str
    name: str
    reason: str
    message: str
    at: datetime | None = None


@dataclass(frozen=True)
class Certificate:
    """A certificate in a Secret."""

    secret: str
    ends_at: datetime


@dataclass(frozen=True)
class BackupRuns:
    """The CronJob of backups."""

    name: str
    schedule: str
    suspended: bool = False
    created_at: datetime | None = None
    last_started_at: datetime | None = None
    last_succeeded_at: datetime | None = None
    failed_job: str = ""
    """The newest Job, if it failed."""
    last_words: str = ""


@dataclass(frozen=True)
class Trouble:
    """What a process says about itself on its /readyz."""

    part: str
    message: str


@dataclass(frozen=True)
class Ops:
    """What a pod's operations port said."""

    ready: bool = True
    troubles: Sequence[Trouble] = ()
    metrics: Metrics = field(default_factory=Metrics)
    problem: str = ""
    """Why it could not be asked."""


@dataclass(frozen=True)
class StreamPeer:
    """A server that keeps a stream besides its leader."""

    name: str
    current: bool
    offline: bool = False


@dataclass(frozen=True)
class Stream:
    """A JetStream stream, as its leader tells."""

    name: str
    replicas: int = 1
    leader: str = ""
    peers: Sequence[StreamPeer] = ()
    messages: int = 0
    size_bytes: int = 0
    is_queue: bool = False
    in_hand: int = 0
    """Messages of a work queue that somebody has taken and not yet acknowledged."""
    oldest_at: datetime | None = None


@dataclass(frozen=True)
class NatsServer:
    """A NATS server, as it tells of itself."""

    pod: str
    name: str = ""
    version: str = ""
    healthy: bool = True
    health: str = ""
    """What /healthz says is wrong."""
    is_meta_leader: bool = False
    meta_leader: str = ""
    cluster_size: int = 1
    offline: Sequence[str] = ()
    """Servers that the cluster's leader misses."""
    behind: Sequence[str] = ()
    """Servers that have not caught up with it."""
    storage_bytes: int = 0
    storage_limit_bytes: int = 0
    disk_full: str = ""
    """A line of its log that says that a write failed for lack of room."""
    problem: str = ""
    """Why it could not be asked."""


@dataclass(frozen=True)
class ServedModel:
    """A vLLM pod and the model that it serves; empty while it loads one."""

    pod: str
    models: Sequence[str] = ()
    problem: str = ""


@dataclass(frozen=True)
class Usage:
    """What a pod takes now, from metrics.k8s.io."""

    cpu_cores: float
    memory_bytes: int


@dataclass(frozen=True)
class Snapshot:
    """All of it."""

    namespace: str
    release: str
    taken_at: datetime
    workloads: Sequence[Workload] = ()
    pods: Sequence[Pod] = ()
    nodes: Sequence[Node] = ()
    claims: Sequence[Claim] = ()
    budgets: Sequence[Budget] = ()
    autoscalers: Sequence[Autoscaler] = ()
    warnings: Sequence[Warned] = ()
    certificates: Sequence[Certificate] = ()
    backups: BackupRuns | None = None
    ops: Mapping[str, Ops] = field(default_factory=dict)
    """By pod."""
    nats: Sequence[NatsServer] = ()
    streams: Sequence[Stream] = ()
    served: Sequence[ServedModel] = ()
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """By pod; empty without metrics.k8s.io."""
    unseen: Sequence[str] = ()
    """What could not be looked at, each with the reason."""

    def pods_of(self, component: str) -> list[Pod]:
        return [pod for pod in self.pods if pod.component == component]

    def workload_of(self, component: str) -> Workload | None:
        return next((each for each in self.workloads if each.component == component), None)

    @property
    def lost_nodes(self) -> frozenset[str]:
        """Nodes that do not answer, and those that pods or volumes name and that are not there."""
        if not self.nodes:
            return frozenset()  # nobody knows
        there = {node.name for node in self.nodes if node.ready}
        named = {pod.node for pod in self.pods if pod.node} | {claim.node for claim in self.claims if claim.node}
        return frozenset({node.name for node in self.nodes if not node.ready} | (named - there))
