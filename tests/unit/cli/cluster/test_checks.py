"""Each trouble is found, once, and named in a sentence with its cure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from cli.cluster.checks import Finding, findings
from cli.cluster.snapshot import (
    Autoscaler,
    BackupRuns,
    Budget,
    Certificate,
    Ended,
    Node,
    Snapshot,
    StreamPeer,
    Warned,
)
from tests.unit.cli.cluster.snapshots import (
    GIB,
    LONG_AGO,
    NOW,
    claim,
    container,
    healthy,
    ops,
    pod,
    server,
    stream,
    with_ops,
    with_pod,
    workload,
)

MINUTE = timedelta(minutes=1)
ROOT = Path(__file__).resolve().parents[4]


@dataclass(frozen=True)
class Case:
    """What is wrong, and the words in which it must be told; `cure`: words of what to do."""

    id: str
    snapshot: Callable[[], Snapshot]
    kind: str
    words: tuple[str, ...]
    cure: str


def lost_node() -> Snapshot:
    """node1 has been switched off: its pods count as not ready, and its NATS server as offline."""
    nodes = [Node("node1", ready=False, reason="Kubelet stopped posting node status."), Node("node2"), Node("node3")]
    snapshot = healthy(nodes=nodes)
    for each in healthy().pods:
        if each.node == "node1":
            snapshot = with_pod(snapshot, each.component, 0)
    away = (StreamPeer("nats-0", current=False, offline=True), StreamPeer("nats-2", current=True))
    return replace(
        snapshot,
        ops={name: said for name, said in snapshot.ops.items() if not name.endswith("-0")},
        nats=[server(1, is_meta_leader=True, offline=("nats-0",)), server(2)],
        streams=[stream("KV_DOCUMENTS", leader="nats-1", peers=away)],
    )


def crash(exit_code: int, words: str = "", reason: str = "Error") -> Snapshot:
    ended = Ended(reason, exit_code, at=NOW - MINUTE)
    failed = container(
        waiting="CrashLoopBackOff", restarts=4, ended=ended, last_words=words, memory_limit_bytes=512 * 2**20
    )
    return with_pod(healthy(), "memory", containers=(failed,))


def waits(reason: str, message: str) -> Snapshot:
    return with_pod(healthy(), "memory", containers=(container(waiting=reason, message=message),))


def unplaced(message: str, component: str = "memory") -> Snapshot:
    return with_pod(healthy(), component, node="", phase="Pending", unschedulable=message, containers=())


def full_nats_volume(**changes: object) -> Snapshot:
    snapshot = healthy()
    full = claim("data-groundwork-nats-1", 1, used_bytes=5 * GIB - 1, available_bytes=1)
    claims = [full if each.name == full.name else each for each in snapshot.claims]
    return replace(snapshot, claims=claims, **changes)


def scaled(**changes: object) -> Snapshot:
    made = Autoscaler("groundwork-gateway", "groundwork-gateway", minimum=2, maximum=6, current=2, desired=2)
    return healthy(autoscalers=[replace(made, **changes)])


def backed_up(**changes: object) -> Snapshot:
    made = BackupRuns("groundwork-backup", "0 3 * * *", created_at=LONG_AGO, last_started_at=NOW - MINUTE)
    return healthy(backups=replace(made, last_succeeded_at=NOW - MINUTE, **changes))


def with_workload(component: str, **changes: object) -> Snapshot:
    snapshot = healthy()
    workloads = [replace(each, **changes) if each.component == component else each for each in snapshot.workloads]
    return replace(snapshot, workloads=workloads)


CASES = (
    Case(
        "a node is lost",
        lost_node,
        "NODE_LOST",
        ("Node node1 does not answer", "groundwork-retriever-0", "data-groundwork-nats-0"),
        "bring it back",
    ),
    Case(
        "a node is short of disk",
        lambda: healthy(nodes=[Node("node1", pressures=("DiskPressure",)), Node("node2"), Node("node3")]),
        "NODE_PRESSURE",
        ("Node node1", "hardly any disk"),
        "remove images",
    ),
    Case(
        "the preparing Job failed",
        lambda: healthy(
            pods=[
                *healthy().pods,
                pod(
                    "prepare",
                    phase="Failed",
                    ready=False,
                    is_of_job=True,
                    containers=(container(last_words="No such command"),),
                ),
            ]
        ),
        "PREPARATION_FAILED",
        ("nothing is installed", "its last words: No such command"),
        "run the same helm command again",
    ),
    Case(
        "a secret is missing",
        lambda: waits("CreateContainerConfigError", 'secret "groundwork-nats-memory" not found'),
        "SECRET_MISSING",
        ("Secret groundwork-nats-memory is not there", "memory cannot start"),
        "helm upgrade makes what is missing",
    ),
    Case(
        "a secret of the user lacks a key",
        lambda: waits("CreateContainerConfigError", "couldn't find key api-key in Secret rag/openai"),
        "SECRET_MISSING",
        ("Secret openai has no key 'api-key'",),
        "--from-literal=api-key=",
    ),
    Case(
        "a secret cannot be mounted",
        lambda: replace(
            with_pod(healthy(), "gateway", phase="Pending", containers=(container(waiting="ContainerCreating"),)),
            warnings=[
                Warned(
                    "Pod",
                    "groundwork-gateway-0",
                    "FailedMount",
                    'MountVolume.SetUp failed for volume "signing-key" : secret "groundwork-signing-gateway" not found',
                )
            ],
        ),
        "SECRET_MISSING",
        ("Secret groundwork-signing-gateway is not there", "gateway"),
        "helm upgrade",
    ),
    Case(
        "an image is not there",
        lambda: waits("ImagePullBackOff", "failed to resolve reference: localhost/groundwork-memory:dev: not found"),
        "IMAGE_NOT_PULLED",
        ("localhost/groundwork-memory:dev of memory", "has no such image"),
        "image.tag",
    ),
    Case(
        "a registry asks for credentials",
        lambda: waits("ErrImagePull", "pull access denied, authorization failed: 401 Unauthorized"),
        "IMAGE_NOT_PULLED",
        ("the registry asks for credentials",),
        "image.pullSecrets",
    ),
    Case(
        "settings are refused",
        lambda: crash(78, "GROUNDWORK_LOG_LEVEL=LOUD is not valid: it must be one of DEBUG, INFO"),
        "SETTINGS_REFUSED",
        ("refuses its settings", "GROUNDWORK_LOG_LEVEL=LOUD is not valid"),
        "helm upgrade",
    ),
    Case(
        "a process ends with an error of ours",
        lambda: crash(1, '{"event": "service_started"}\nBAD_KEYS: the file holds no usable key'),
        "CRASH_LOOP",
        ("exit code 1, 4 restarts", "its last words: BAD_KEYS: the file holds no usable key"),
        "groundwork cluster logs memory --previous",
    ),
    Case(
        "a process takes too much memory",
        lambda: crash(137, reason="OOMKilled"),
        "KILLED_FOR_MEMORY",
        ("its limit of 512 MiB",),
        "memory.resources.limits.memory",
    ),
    Case(
        "no node has room",
        lambda: unplaced("0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory. preemption: …"),
        "UNSCHEDULABLE",
        ("1 pod of memory", "enough processor time left", "enough memory left"),
        "memory.resources.requests.cpu",
    ),
    Case(
        "no GPU is free",
        lambda: unplaced("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
        "UNSCHEDULABLE",
        ("no node has a free GPU",),
        "add one",
    ),
    Case(
        "nodes have a taint",
        lambda: unplaced("0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: batch}."),
        "UNSCHEDULABLE",
        ("nodes have the taint dedicated",),
        "memory.tolerations",
    ),
    Case(
        "a pod was thrown off its node",
        lambda: with_pod(
            healthy(), "memory", phase="Failed", reason="Evicted", message="The node was low on resource: memory"
        ),
        "EVICTED",
        ("groundwork-memory-0 was thrown off node1", "low on resource"),
        "kubectl delete pod groundwork-memory-0",
    ),
    Case(
        "Pod Security refuses pods",
        lambda: with_workload(
            "memory",
            ready=0,
            refused='pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
        ),
        "POD_REFUSED",
        ("violate the Pod Security standard restricted:latest", "runAsNonRoot"),
        "security settings",
    ),
    Case(
        "a quota is spent",
        lambda: with_workload(
            "memory", ready=1, refused='pods "x" is forbidden: exceeded quota: team, requested: pods=1'
        ),
        "POD_REFUSED",
        ("beyond the namespace's quota",),
        "raise the quota",
    ),
    Case(
        "NATS refuses a password",
        lambda: with_ops(
            healthy(),
            "memory",
            ops(
                (
                    "message store",
                    "waits for it since 12 s: NATS at n:4222 cannot be used: it refuses our user or password (GROUNDWORK_NATS_URL)",
                ),
                ready=False,
            ),
        ),
        "NATS_REFUSES_PASSWORD",
        ("NATS refuses the user or password of memory",),
        "restart NATS",
    ),
    Case(
        "a signing key is unknown",
        lambda: with_ops(healthy(), "gateway", ops(("signing key", "gateway-1 is not among the public keys"))),
        "SIGNING_KEY_UNKNOWN",
        ("The signing key of gateway", "is not among the public keys"),
        "helm upgrade",
    ),
    Case(
        "a certificate ends soon",
        lambda: healthy(certificates=[Certificate("groundwork-tls", NOW + timedelta(days=3))]),
        "CERTIFICATE_ENDS",
        ("Secret groundwork-tls expires in 3 d",),
        "renew it",
    ),
    Case(
        "a certificate has ended",
        lambda: healthy(certificates=[Certificate("groundwork-tls", NOW - timedelta(days=1))]),
        "CERTIFICATE_ENDS",
        ("has expired on 2026-11-22",),
        "renew it",
    ),
    Case(
        "a volume is full, and NATS had no room",
        lambda: full_nats_volume(nats=[server(0), server(1, disk_full="write: no space left on device"), server(2)]),
        "VOLUME_FULL",
        ("data-groundwork-nats-1 of groundwork-nats-1 is full", "NATS refuses writes"),
        "kubectl delete pod groundwork-nats-1",
    ),
    Case(
        "NATS could not write",
        lambda: healthy(
            nats=[
                server(0),
                server(1, healthy=False, health="'KV_RUNS' is not current: stream write error: …"),
                server(2),
            ]
        ),
        "NATS_WRITE_ERROR",
        ("groundwork-nats-1 could not write", "KV_RUNS"),
        "kubectl delete pod groundwork-nats-1",
    ),
    Case(
        "NATS had no room, and has it again",
        lambda: healthy(nats=[server(0), server(1, disk_full="no space left on device", healthy=False), server(2)]),
        "NATS_DISK_FULL",
        ("groundwork-nats-1 had no room",),
        "kubectl delete pod groundwork-nats-1",
    ),
    Case(
        "NATS is near its limit",
        lambda: healthy(nats=[server(0, storage_bytes=4 * GIB), server(1), server(2)]),
        "NATS_STORAGE_LIMIT",
        ("keeps 4.0 GiB of the 4.0 GiB",),
        "nats.persistence.size",
    ),
    Case(
        "a claim waits for a volume",
        lambda: healthy(claims=[claim("data-groundwork-retriever-0", 0, phase="Pending", used_bytes=None)]),
        "VOLUME_NOT_MADE",
        ("data-groundwork-retriever-0 waits for a volume",),
        "StorageClass",
    ),
    Case(
        "NATS has lost its majority",
        lambda: healthy(nats=[server(0, is_meta_leader=False)]),
        "NATS_WITHOUT_MAJORITY",
        ("1 of 3 servers answer",),
        "bring its other pods back",
    ),
    Case(
        "there are fewer NATS servers than copies",
        lambda: replace(with_workload("nats", wanted=1, ready=1), nats=[server(0, cluster_size=1)], streams=[]),
        "NATS_SERVERS_MISSING",
        ("ask for 3 copies", "1 NATS server"),
        "nats.replicas to 3",
    ),
    Case(
        "a stream has too few copies",
        lambda: healthy(streams=[stream("INGEST", replicas=1, peers=())]),
        "STREAM_COPIES_MISSING",
        ("1 stream of NATS (INGEST) is kept on fewer than 3 servers",),
        "restart the services",
    ),
    Case(
        "a copy is behind",
        lambda: healthy(streams=[stream("INGEST", peers=(StreamPeer("nats-1", current=False),))]),
        "STREAM_BEHIND",
        ("INGEST",),
        "restart no other NATS server",
    ),
    Case(
        "a language model does not answer",
        lambda: with_ops(
            healthy(),
            "orchestrator",
            ops(("language model default", "vllm:8000 cannot be reached (ConnectError) (since 9 s)")),
        ),
        "MODEL_UNREACHABLE",
        ("Language model default of orchestrator does not serve", "vllm:8000 cannot be reached"),
        "llm.baseUrl",
    ),
    Case(
        "a search engine is away",
        lambda: with_ops(healthy(), "retriever", ops(("lexical", "does not answer since 4 s (ENGINE_UNAVAILABLE)"))),
        "SERVICE_IN_TROUBLE",
        ("retriever says of lexical",),
        "search engine",
    ),
    Case(
        "stored data is damaged",
        lambda: with_ops(healthy(), "ingest-worker", ops(("stored data", "damaged: 2 files (groundwork doctor)"))),
        "SERVICE_IN_TROUBLE",
        ("damaged: 2 files",),
        "groundwork doctor --accept",
    ),
    Case(
        "a pod is not ready, and nobody says why",
        lambda: with_pod(healthy(), "memory"),
        "NOT_READY",
        ("groundwork-memory-0 runs but is not ready",),
        "groundwork cluster logs memory",
    ),
    Case(
        "an operations port is silent",
        lambda: with_ops(healthy(), "memory", ops(problem="port 9000 did not answer", ready=False)),
        "OPERATIONS_PORT_SILENT",
        ("groundwork-memory-0 and groundwork-memory-1",),
        "pods/portforward",
    ),
    Case(
        "an HPA gets no measurements",
        lambda: scaled(trouble="failed to get cpu utilization: unable to fetch metrics from resource metrics API"),
        "AUTOSCALER_BLIND",
        ("The autoscaler of groundwork-gateway cannot scale",),
        "metrics-server",
    ),
    Case(
        "KEDA does not run",
        lambda: scaled(kind="ScaledObject", is_known=False),
        "KEDA_MISSING",
        ("KEDA does not run",),
        "install it",
    ),
    Case(
        "a budget forbids every drain",
        lambda: healthy(
            budgets=[Budget("b", {"app.kubernetes.io/component": "ingest-worker"}, "2", expected=2, healthy=2)]
        ),
        "DRAIN_FORBIDDEN",
        ("minAvailable 2 of 2", "never ends"),
        "pdb section of ingestWorker",
    ),
    Case(
        "documents were given up",
        lambda: with_ops(healthy(), "ingest-worker", ops(metrics="groundwork_ingest_dead_letters 2.0\n")),
        "DEAD_LETTERS",
        ("2 documents",),
        "groundwork jobs dead",
    ),
    Case(
        "records disagree",
        lambda: with_ops(
            healthy(),
            "ingest-worker",
            ops(metrics='groundwork_ingest_disagreements{kind="files_missing"} 3.0\n'),
        ),
        "STORED_DATA_DAMAGED",
        ("files_missing",),
        "groundwork doctor",
    ),
    Case(
        "records cannot be read",
        lambda: with_ops(
            healthy(), "ingest-worker", ops(metrics='groundwork_ingest_unreadable_records{kind="document"} 1.0\n')
        ),
        "STORED_DATA_DAMAGED",
        ("1 stored records", "cannot be read", "document"),
        "groundwork doctor",
    ),
    Case(
        "a backup failed",
        lambda: backed_up(failed_job="groundwork-backup-7", last_words="…\nThe disk is full."),
        "BACKUP_FAILED",
        ("groundwork-backup-7", "The disk is full."),
        "kubectl create job",
    ),
    Case(
        "backups are suspended",
        lambda: backed_up(suspended=True),
        "BACKUP_SUSPENDED",
        ("Backups are suspended",),
        "kubectl patch cronjob",
    ),
    Case(
        "no backup has succeeded for long",
        lambda: healthy(
            backups=BackupRuns("groundwork-backup", "0 3 * * *", created_at=NOW - timedelta(days=9)),
        ),
        "BACKUP_OLD",
        ("there is none yet",),
        "kubectl describe cronjob",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_each_trouble_is_named_once_with_its_cure(case: Case) -> None:
    found = findings(case.snapshot())
    assert [each.kind for each in found] == [case.kind], [each.text for each in found]
    (finding,) = found
    for words in case.words:
        assert words in finding.sentence
    assert case.cure in finding.cure


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_finding_is_one_sentence(case: Case) -> None:
    for finding in findings(case.snapshot()):
        assert "\n" not in finding.text
        assert finding.text.endswith(".")
        assert not finding.text.endswith("..")
        assert ". " not in finding.sentence.replace("its last words: ", "")


def test_nothing_is_wrong_with_a_healthy_installation() -> None:
    assert findings(healthy()) == []


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(with_pod(healthy(), "memory", created_at=NOW - MINUTE), id="a pod is starting"),
        pytest.param(with_pod(healthy(), "memory", is_leaving=True), id="a pod is stopping"),
        pytest.param(
            with_pod(
                healthy(),
                "memory",
                ready=True,
                containers=(container(ready=True, restarts=1, ended=Ended("OOMKilled", 137, at=LONG_AGO)),),
            ),
            id="it was killed for memory long ago",
        ),
        pytest.param(
            scaled(trouble="failed to get cpu utilization: did not receive metrics")
            and replace(
                scaled(trouble="failed to get cpu utilization"),
                pods=[*healthy().pods, pod("gateway", 2, created_at=NOW - MINUTE)],
            ),
            id="a new pod is not measured yet",
        ),
        pytest.param(
            healthy(budgets=[Budget("b", {}, "2", expected=3, healthy=2, allowed=0)]), id="a budget waits for a pod"
        ),
        pytest.param(
            healthy(claims=[claim("c", 0, size_bytes=5 * GIB, used_bytes=900 * GIB, available_bytes=50 * GIB)]),
            id="a volume is a folder of a larger disk with room",
        ),
        pytest.param(healthy(nodes=[]), id="nodes may not be looked at"),
        pytest.param(healthy(ops={}, nats=[], streams=[]), id="ports may not be forwarded"),
        pytest.param(backed_up(), id="the last backup has succeeded"),
        pytest.param(
            with_ops(
                healthy(), "ingest-worker", ops(metrics='groundwork_ingest_disagreements{kind="not_searchable"} 3.0\n')
            ),
            id="ingestion puts it right by itself",
        ),
    ],
)
def test_what_passes_by_itself_is_not_told(snapshot: Snapshot) -> None:
    assert [each.text for each in findings(snapshot)] == []


def test_services_that_wait_for_a_message_store_without_majority_are_not_told() -> None:
    away = healthy(nats=[server(0), server(1, problem="gone"), server(2, problem="gone")])
    told = findings(with_ops(away, "memory", ops(("message store", "does not answer since 40 s"), ready=False)))
    assert "NATS_WITHOUT_MAJORITY" in kinds(told)
    assert "SERVICE_IN_TROUBLE" not in kinds(told)


def test_a_pod_that_waits_for_its_volume_on_a_lost_node_is_not_told() -> None:
    waiting = {"node": "", "phase": "Pending", "unschedulable": "1 node(s) had volume node affinity conflict"}
    snapshot = with_pod(lost_node(), "retriever", **waiting)
    assert kinds(findings(snapshot)) == {"NODE_LOST"}


def test_replicas_that_say_the_same_are_told_once() -> None:
    snapshot = healthy()
    said = {
        each.name: ops(("lexical", f"does not answer since {number} s (X)"))
        for number, each in enumerate(snapshot.pods)
        if each.component == "gateway"
    }
    assert len(findings(replace(snapshot, ops={**snapshot.ops, **said}))) == 1


def test_a_workload_that_is_no_part_of_the_release_is_not_missed() -> None:
    only_gateway = healthy(workloads=[workload("gateway", 2)], pods=[pod("gateway")], nats=[], streams=[], claims=[])
    assert findings(only_gateway) == []


def test_every_metric_that_is_read_is_one_that_services_have() -> None:
    """Of one that there is not, nothing would ever be found."""
    listed = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE))
    code = "".join(path.read_text() for path in (ROOT / "cli" / "cluster").rglob("*.py"))
    read = set(re.findall(r'"((?:[a-z]+_)*(?:ingest|retriever|runs|queue|gateway|reranker)_[a-z_]+)"', code))
    assert len(read) > 5
    assert read <= listed


def kinds(found: list[Finding]) -> set[str]:
    return {each.kind for each in found}
