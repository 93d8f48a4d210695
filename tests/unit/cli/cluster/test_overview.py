"""What status shows of a snapshot."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cli.cluster.overview import overview
from cli.cluster.quantities import in_bytes, in_time, quantity
from cli.cluster.snapshot import Autoscaler, BackupRuns, Node, ServedModel, Snapshot, Usage
from tests.unit.cli.cluster.snapshots import NOW, container, healthy, ops, pod, stream, with_ops, with_pod, workload


def rows(snapshot: Snapshot, section: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(json.dumps(overview(snapshot).as_json())).get(section, [])
    return found


def row(snapshot: Snapshot, section: str, first: str) -> dict[str, Any]:
    return next(each for each in rows(snapshot, section) if next(iter(each.values())) == first)


def test_a_component_that_is_well_is_ok() -> None:
    usage = {f"groundwork-gateway-{number}": Usage(0.25, 2**20) for number in (0, 1)}
    assert row(healthy(usage=usage), "components", "gateway") == {
        "component": "gateway",
        "ready": 2,
        "wanted": 2,
        "version": "dev",
        "restarts": 0,
        "cpu_cores": 0.5,
        "memory_bytes": 2 * 2**20,
        "nodes": ["node1", "node2"],
        "state": "ok",
    }
    assert overview(healthy()).is_whole


@pytest.mark.parametrize(
    ("snapshot", "component", "said"),
    [
        (
            with_pod(healthy(), "memory", containers=(container(waiting="ImagePullBackOff"),)),
            "memory",
            "ImagePullBackOff",
        ),
        (with_pod(healthy(), "memory", unschedulable="no room"), "memory", "waits for a node"),
        (with_pod(healthy(), "memory", is_leaving=True), "memory", "is stopping"),
        (with_pod(healthy(), "memory"), "memory", "is not ready"),
        (with_ops(healthy(), "retriever", ops(("dense", "does not answer"))), "retriever", "dense: does not answer"),
        (
            healthy(nodes=[Node("node1", ready=False), Node("node2"), Node("node3")]),
            "retriever",
            "node1, which does not answer",
        ),
        (healthy(workloads=[workload("memory", 2, updated=1)]), "memory", "is being rolled out"),
        (healthy(workloads=[workload("memory", 2, refused="quota")]), "memory", "quota"),
    ],
)
def test_a_component_that_is_not_well_says_why(snapshot: Snapshot, component: str, said: str) -> None:
    assert said in row(snapshot, "components", component)["state"]


def test_queues_are_told_by_nats() -> None:
    queue = stream("INGEST", is_queue=True, messages=7, in_hand=2, oldest_at=NOW.replace(hour=11))
    assert row(healthy(streams=[queue]), "queues", "INGEST") == {
        "queue": "INGEST",
        "waiting": 5,
        "in_hand": 2,
        "oldest_s": 3600,
    }


def test_queues_of_a_message_store_elsewhere_are_told_by_our_services() -> None:
    metrics = """groundwork_ingest_queue_depth 5.0
groundwork_ingest_queue_oldest_seconds 90.0
groundwork_queue_jobs_in_hand{queue="INGEST"} 2.0
groundwork_ingest_dead_letters 1.0
"""
    elsewhere = replace(with_ops(healthy(), "ingest-worker", ops()), streams=[], nats=[])
    told = replace(elsewhere, ops={**elsewhere.ops, "groundwork-ingest-worker-0": ops(metrics=metrics)})
    assert row(told, "queues", "INGEST") == {"queue": "INGEST", "waiting": 3, "in_hand": 2, "oldest_s": 90}
    assert row(told, "queues", "dead letters")["waiting"] == 1
    assert row(told, "work", "documents that are ingested")["now"] == 2


def test_runs_of_all_orchestrators_are_counted() -> None:
    said = ops(metrics="groundwork_runs_in_hand 3.0\ngroundwork_runs_waiting 4.0\n")
    snapshot = with_ops(healthy(), "orchestrator", said)
    assert row(snapshot, "work", "runs")["now"] == 6
    assert row(snapshot, "work", "runs that wait for a person")["now"] == 4


def test_gpus_are_told_with_the_models_on_them() -> None:
    on_gpu = [pod("vllm", gpus=2), pod("reranker", gpus=1)]
    snapshot = healthy(
        pods=on_gpu,
        nodes=[Node("node1", gpus=4)],
        served=[ServedModel("groundwork-vllm-0", ("chat", "org/large"))],
        ops={"groundwork-reranker-0": ops(metrics='groundwork_reranker_model_info{model="bge",task="rerank"} 1.0\n')},
    )
    vllm, reranker = rows(snapshot, "models")
    assert (vllm["model"], vllm["gpus"], vllm["gpus_of_node"]) == ("chat, org/large", 2, 4)
    assert (reranker["model"], reranker["gpus"]) == ("bge", 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "ok"),
        ({"current": 2, "desired": 4}, "goes to 4"),
        ({"trouble": "no metrics"}, "no metrics"),
        ({"limited": "the desired replica count is more than the maximum"}, "more than the maximum"),
        ({"is_known": False}, "nobody acts on it"),
    ],
)
def test_an_autoscaler_says_why_it_does_not_scale(changes: dict[str, Any], said: str) -> None:
    made = Autoscaler("a", "groundwork-gateway", minimum=2, maximum=6, current=2, desired=2, metrics=("cpu 9% of 70%",))
    (shown,) = rows(healthy(autoscalers=[replace(made, **changes)]), "autoscalers")
    assert said in shown["state"]
    assert shown["measures"] == "cpu 9% of 70%"


def test_backups_are_told_with_their_last_success() -> None:
    (shown,) = rows(healthy(backups=BackupRuns("b", "0 3 * * *", last_succeeded_at=NOW)), "backups")
    assert (shown["last_success"], shown["state"]) == ("2026-11-23T12:00:00+00:00", "ok")


def test_every_cell_of_the_tables_is_text_for_people() -> None:
    for section in overview(healthy()).sections:
        assert all(len(cells) == len(section.columns) for cells in section.cells)
        assert all(isinstance(cell, str) for cells in section.cells for cell in cells)


@pytest.mark.parametrize(
    ("text", "number"), [("250m", 0.25), ("1Gi", 2**30), ("2", 2), ("1e3", 1000), ("100n", 1e-7), ("", 0), ("?", 0)]
)
def test_quantities(text: str, number: float) -> None:
    assert quantity(text) == pytest.approx(number)


def test_sizes_and_spans_are_short() -> None:
    assert [in_bytes(size) for size in (0, 1536, 20 * 2**30)] == ["0 B", "1.5 KiB", "20 GiB"]
    assert [in_time(span) for span in (0, 119, 600, 7200, 200_000)] == ["0 s", "119 s", "10 min", "2 h", "2 d"]
