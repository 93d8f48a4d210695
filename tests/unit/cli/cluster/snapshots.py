"""Snapshots of installations: a healthy one, and what tests change of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cli.cluster.metrics import Metrics
from cli.cluster.snapshot import (
    Budget,
    Claim,
    Container,
    NatsServer,
    Node,
    Ops,
    Pod,
    Snapshot,
    Stream,
    StreamPeer,
    Trouble,
    Workload,
)

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)
GIB = 2**30
_OPS = {"grpc": 7000, "metrics": 9000}


def pod(component: str, number: int = 0, **changes: Any) -> Pod:
    """A pod that runs on its node, ready since a day."""
    made = Pod(
        name=f"groundwork-{component}-{number}",
        component=component,
        workload=f"groundwork-{component}",
        node=f"node{number + 1}",
        created_at=LONG_AGO,
        containers=(Container(component, image=f"localhost/groundwork-{component}:dev", ready=True),),
        claims=(f"data-groundwork-{component}-{number}",) if component in {"nats", "retriever"} else (),
        ports={} if component == "nats" else _OPS,
    )
    return replace(made, **changes)


def container(**changes: Any) -> Container:
    """Of a pod that does not start."""
    return replace(Container("main", image="localhost/groundwork-memory:dev"), **changes)


def workload(component: str, wanted: int, **changes: Any) -> Workload:
    made = Workload(
        kind="StatefulSet" if component in {"nats", "retriever"} else "Deployment",
        name=f"groundwork-{component}",
        component=component,
        wanted=wanted,
        ready=wanted,
        updated=wanted,
        image=f"localhost/groundwork-{component}:dev",
        environment={} if component == "nats" else {"GROUNDWORK_NATS_REPLICAS": "3"},
        keeps_data=component in {"nats", "retriever"},
    )
    return replace(made, **changes)


def stream(name: str, **changes: Any) -> Stream:
    """One that three servers keep."""
    peers = (StreamPeer("nats-1", current=True), StreamPeer("nats-2", current=True))
    return replace(Stream(name, replicas=3, leader="nats-0", peers=peers), **changes)


def server(number: int, **changes: Any) -> NatsServer:
    made = NatsServer(
        pod=f"groundwork-nats-{number}",
        name=f"nats-{number}",
        version="2.15.1",
        is_meta_leader=number == 0,
        meta_leader="nats-0",
        cluster_size=3,
        storage_bytes=GIB,
        storage_limit_bytes=4 * GIB,
    )
    return replace(made, **changes)


def claim(name: str, number: int, **changes: Any) -> Claim:
    made = Claim(name, size_bytes=5 * GIB, used_bytes=GIB, available_bytes=4 * GIB, node=f"node{number + 1}")
    return replace(made, **changes)


def ops(*troubles: tuple[str, str], ready: bool = True, metrics: str = "", problem: str = "") -> Ops:
    return Ops(ready, tuple(Trouble(*each) for each in troubles), Metrics.parse(metrics), problem)


def healthy(**changes: Any) -> Snapshot:
    """Three nodes, three NATS servers, a retriever with its own indexes, two of everything else."""
    components = {"gateway": 2, "ingest-worker": 2, "memory": 2, "nats": 3, "orchestrator": 2, "retriever": 1}
    pods = [pod(component, number) for component, wanted in components.items() for number in range(wanted)]
    made = Snapshot(
        namespace="rag",
        release="groundwork",
        taken_at=NOW,
        workloads=[workload(component, wanted) for component, wanted in components.items()],
        pods=pods,
        nodes=[Node(f"node{number}") for number in (1, 2, 3)],
        claims=[claim(each.claims[0], int(each.name[-1])) for each in pods if each.claims],
        budgets=[
            Budget("groundwork-nats", {"app.kubernetes.io/component": "nats"}, "2", expected=3, healthy=3, allowed=1)
        ],
        ops={each.name: ops() for each in pods if each.component != "nats"},
        nats=[server(number) for number in range(3)],
        streams=[stream("KV_DOCUMENTS"), stream("INGEST", is_queue=True)],
    )
    return replace(made, **changes)


def with_pod(snapshot: Snapshot, component: str, number: int = 0, **changes: Any) -> Snapshot:
    """With one pod changed; it is no longer ready unless it is said to be, and its workload lacks it."""
    name = f"groundwork-{component}-{number}"
    pods = [replace(each, **{"ready": False, **changes}) if each.name == name else each for each in snapshot.pods]
    is_ready = changes.get("ready", False)
    workloads = [
        replace(each, ready=each.ready - (not is_ready)) if each.component == component else each
        for each in snapshot.workloads
    ]
    return replace(snapshot, pods=pods, workloads=workloads)


def with_ops(snapshot: Snapshot, component: str, said: Ops) -> Snapshot:
    """With all pods of a component saying the same."""
    changed = {each.name: said for each in snapshot.pods if each.component == component}
    return replace(snapshot, ops={**snapshot.ops, **changed})
