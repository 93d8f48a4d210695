"""`groundwork cluster` as an operator uses it: what it shows of an installation that is well, and that it names each of these with
its cure: a wrong secret, a language model that does not answer, a full volume, a node without power."""

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Json, command
from tests.cluster.faults import PowerSwitch
from tests.cluster.release import Release
from tests.cluster.settings import ClusterSettings
from tests.integration.system import groundwork_command

pytestmark = pytest.mark.timeout(900)
FOUND_WITHIN_S = 120.0
ANSWER_WITHIN_S = 120.0
SMALL_BYTES = 96 * 1024 * 1024
"""Of the volume that is filled. It is in memory."""
OURS = {"gateway", "ingest", "ingest-worker", "memory", "nats", "orchestrator", "reranker", "retriever", "tools"}


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    exit_code: int
    out: str
    err: str


@dataclass(frozen=True)
class Commands:
    """`groundwork cluster` in one namespace."""

    namespace: str
    environment: dict[str, str] | None = None

    def __call__(self, *words: str) -> Done:
        done = subprocess.run(
            [groundwork_command(), "cluster", *words, "-n", self.namespace],
            capture_output=True,
            text=True,
            timeout=ANSWER_WITHIN_S,
            check=False,
            env=self.environment,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def findings(self) -> dict[str, str]:
        """What the doctor says, by kind."""
        done = self("doctor", "--json")
        found: list[Json] = json.loads(done.out)["findings"]
        assert done.exit_code == int(bool(found))
        return {each["kind"]: each["text"] for each in found}

    def until_found(self, kind: str, *words: str, meanwhile: Callable[[], object] = lambda: None) -> str:
        """The doctor's sentence, once it has one of that kind with these words. Raises AssertionError."""
        deadline = time.monotonic() + FOUND_WITHIN_S
        while True:
            meanwhile()
            found = self.findings()
            if all(word in found.get(kind, "") for word in words) and kind in found:
                return found[kind]
            assert time.monotonic() < deadline, f"{kind} with {words} was not found: {found}"

    def until_well(self) -> None:
        deadline = time.monotonic() + FOUND_WITHIN_S
        while found := self.findings():
            assert time.monotonic() < deadline, found


@pytest.fixture
def groundwork(release: Release) -> Commands:
    """The commands, for an installation that is well."""
    release.cluster.until_rolled_out()
    commands = Commands(release.cluster.namespace)
    commands.until_well()
    return commands


def test_status_shows_what_runs(groundwork: Commands) -> None:
    done = groundwork("status", "--json")
    assert done.exit_code == 0, done.err
    shown = json.loads(done.out)
    components = {each["component"]: each for each in shown["components"]}
    assert components.keys() >= OURS
    assert all(each["ready"] == each["wanted"] and each["state"] == "ok" for each in components.values())
    assert {each["queue"] for each in shown["queues"]} == {"INGEST", "FORGET", "MEMORY"}
    assert len(shown["nats"]) == 3
    assert sum("the cluster" in each["leads"] for each in shown["nats"]) == 1
    (retriever,) = shown["engines"]
    assert retriever["engines"] == "dense up, lexical up"
    assert all(each["full_percent"] is not None for each in shown["volumes"])
    text = groundwork("status").out
    assert "gateway" in text
    assert "disruption budget" in text


def test_doctor_finds_nothing_wrong_with_what_is_well(groundwork: Commands) -> None:
    done = groundwork("doctor")
    assert (done.exit_code, done.out.startswith("Nothing is wrong")) == (0, True), done.out


def test_logs_of_a_trace_are_found_in_all_pods(groundwork: Commands, release: Release, operator_key: str) -> None:
    with release.api(operator_key) as api:
        answer = api.http.post("/v1/keys", json={"name": "logged", "subject": "logged", "scopes": ["query"]})
        answer.raise_for_status()
    trace = answer.headers["x-trace-id"]
    lines = [json.loads(line) for line in groundwork("logs", "--trace", trace, "--json").out.splitlines()]
    assert any(line["component"] == "gateway" and line["event"] == "audit" for line in lines)
    assert all(line["trace_id"] == trace for line in lines)
    assert groundwork("logs", "no-such-component").exit_code == 2


def test_followed_logs_have_those_of_a_new_pod(groundwork: Commands, release: Release) -> None:
    words = [
        groundwork_command(),
        "cluster",
        "logs",
        "tools",
        "-f",
        "--since",
        "1s",
        "--json",
        "-n",
        groundwork.namespace,
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as following:
        try:
            before = {pod.name for pod in release.cluster.pods("tools")}
            release.cluster.kubectl("rollout", "restart", "deployment/groundwork-tools")
            assert following.stdout is not None
            new = next(each for line in following.stdout if (each := json.loads(line))["pod"] not in before)
            assert new["component"] == "tools"
        finally:
            following.kill()


def test_scaling_waits_for_the_pods_and_refuses_what_cannot_be(groundwork: Commands, release: Release) -> None:
    done = groundwork("scale", "tools=3")
    assert done.exit_code == 0, done.err
    assert sum(pod.is_ready for pod in release.cluster.pods("tools")) == 3
    assert "tools.replicas=3" in done.out
    assert groundwork("scale", "tools=2").exit_code == 0
    for words, said in ((["retriever=2"], "one process can write"), (["nats=1"], "keeps everything on 3 servers")):
        refused = groundwork("scale", *words)
        assert (refused.exit_code, said in refused.err) == (2, True), refused


def test_a_model_cannot_be_exchanged_where_none_is_served(groundwork: Commands) -> None:
    done = groundwork("model", "org/large")
    assert (done.exit_code, "runs no vllm" in done.err) == (2, True)


def test_a_wrong_password_is_named(groundwork: Commands, release: Release) -> None:
    with changed_password(release.cluster, "memory"):
        sentence = groundwork.until_found("NATS_REFUSES_PASSWORD", "memory", "restart NATS")
        assert sentence.count("\n") == 0
    release.cluster.until_rolled_out()


def test_a_missing_secret_is_named(groundwork: Commands, release: Release) -> None:
    cluster = release.cluster
    kept = cluster.get("secret", "groundwork-nats-memory")
    cluster.kubectl("delete", "secret", "groundwork-nats-memory")
    try:
        restart(cluster, "memory")
        groundwork.until_found("SECRET_MISSING", "groundwork-nats-memory is not there", "helm upgrade")
    finally:
        put_back(cluster, kept)
    cluster.until_rolled_out()


def test_a_language_model_that_does_not_answer_is_named(groundwork: Commands, release: Release) -> None:
    values = dict.fromkeys(("llm.baseUrl", "llm.model"), "")
    release.upgrade({"llm.baseUrl": "http://groundwork-nowhere:8000/v1", "llm.model": "nothing"})
    try:
        groundwork.until_found("MODEL_UNREACHABLE", "groundwork-nowhere:8000 cannot be reached", "llm.baseUrl")
        assert "groundwork-nowhere" in groundwork("status").out
    finally:
        release.upgrade(values)
    groundwork.until_well()


def test_who_may_see_little_is_shown_that_and_told_the_rest(
    groundwork: Commands, release: Release, tmp_path: Path
) -> None:
    with limited_user(release.cluster, tmp_path) as kubeconfig:
        limited = Commands(groundwork.namespace, {**os.environ, "KUBECONFIG": str(kubeconfig)})
        done = limited("status")
        assert done.exit_code == 0, done.err
        assert "gateway" in done.out
        assert "Not looked at: nodes" in done.err
        assert "Not looked at: what the pods say of themselves" in done.err
        refused = limited("scale", "tools=3")
        assert (refused.exit_code, "does not allow it" in refused.err) == (2, True)


def test_a_full_volume_is_named(
    groundwork: Commands, release: Release, operator_key: str, settings: ClusterSettings
) -> None:
    if settings.switch is None or os.geteuid() != 0:
        pytest.skip("no small volume: the nodes must be on this machine (GROUNDWORK_TEST_CLUSTER_TOOL), and we root")
    with small_volume(release.cluster, "groundwork-nats-1") as folder:
        fill(folder)

        def write() -> None:
            with release.api(operator_key) as api:
                api.http.post("/v1/collections", json={"id": f"written-{uuid.uuid4().hex[:8]}", "name": "written"})

        told = ("data-groundwork-nats-1 of groundwork-nats-1 is full", "kubectl delete pod groundwork-nats-1")
        groundwork.until_found("VOLUME_FULL", *told, meanwhile=write)
    release.cluster.until_rolled_out()
    groundwork.until_well()


def test_a_node_without_power_is_named_with_what_hangs_there(
    groundwork: Commands, release: Release, switch: PowerSwitch
) -> None:
    (retriever,) = release.cluster.pods("retriever")
    switch.off(retriever.node)
    try:
        switch.until_noticed(retriever.node)
        found = groundwork.until_found("NODE_LOST", f"Node {retriever.node} does not answer", "bring it back")
        assert "data-groundwork-retriever-0" in found
        assert "groundwork-retriever-0" in found
        assert groundwork("status").exit_code == 1
    finally:
        switch.on(retriever.node)
        switch.until_back(retriever.node)
    release.cluster.until_rolled_out(timeout_s=600)
    groundwork.until_well()


@contextmanager
def changed_password(cluster: Cluster, user: str) -> Iterator[None]:
    """The Secret of a user of NATS holds another password than NATS knows, and the user's pods have it."""
    kept = cluster.get("secret", f"groundwork-nats-{user}")
    wrong = json.dumps({"stringData": {"password": "anotherPassword"}})
    cluster.kubectl("patch", "secret", f"groundwork-nats-{user}", "--patch", wrong)
    try:
        restart(cluster, user)
        yield
    finally:
        put_back(cluster, kept)
        restart(cluster, user)


def restart(cluster: Cluster, component: str) -> None:
    cluster.kubectl("rollout", "restart", f"deployment/groundwork-{component}")


def put_back(cluster: Cluster, secret: Json) -> None:
    kept = {key: value for key, value in secret["metadata"].items() if key in {"name", "labels", "annotations"}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({**secret, "metadata": kept}))


@contextmanager
def limited_user(cluster: Cluster, folder: Path) -> Iterator[Path]:
    """The kubeconfig of somebody who may look at pods and workloads of the namespace, and at nothing else."""
    rules = ("--verb=get,list,watch", "--resource=pods,services,events,deployments.apps,statefulsets.apps")
    cluster.kubectl("create", "serviceaccount", "looker")
    cluster.kubectl("create", "role", "looker", *rules)
    account = f"--serviceaccount={cluster.namespace}:looker"
    cluster.kubectl("create", "rolebinding", "looker", "--role=looker", account)
    try:
        token = cluster.kubectl("create", "token", "looker").strip()
        config = json.loads(command("kubectl", "config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
        config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": {"token": token}}]
        file = folder / "kubeconfig"
        file.write_text(json.dumps(config), "utf-8")
        yield file
    finally:
        cluster.kubectl("delete", "rolebinding/looker", "role/looker", "serviceaccount/looker")


@contextmanager
def small_volume(cluster: Cluster, pod: str) -> Iterator[Path]:
    """Gives a pod of NATS a volume of SMALL_BYTES on this machine, which it fills from the other servers, and afterwards one of the
    usual kind."""
    claim, name = f"data-{pod}", f"{cluster.namespace}-small"
    node = next(each.node for each in cluster.pods("nats") if each.name == pod)
    folder = Path("/var/tmp") / name
    folder.mkdir()
    command("mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(folder))
    kind = cluster.get("pvc", claim)["spec"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": kind["resources"]["requests"],
            "accessModes": kind["accessModes"],
            "storageClassName": kind["storageClassName"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": cluster.namespace, "name": claim},
            "local": {"path": str(folder)},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
                    ]
                }
            },
        },
    }
    try:
        command("kubectl", "apply", "-f", "-", stdin=json.dumps(volume))
        make_anew(cluster, pod, claim)
        yield folder
    finally:
        for path in folder.glob("filler"):
            path.unlink()
        make_anew(cluster, pod, claim)
        command("kubectl", "delete", "pv", name, "--ignore-not-found")
        command("umount", "--lazy", str(folder))
        folder.rmdir()


def make_anew(cluster: Cluster, pod: str, claim: str) -> None:
    """A pod of a StatefulSet and its volume, which begins empty."""
    before = next(each.uid for each in cluster.pods() if each.name == pod)
    cluster.kubectl("delete", "pvc", claim, "--wait=false")
    cluster.kubectl("delete", "pod", pod)
    cluster.until_pods(
        lambda pods: any(each.name == pod and each.uid != before and each.is_ready for each in pods),
        f"{pod} is ready again",
        component="nats",
    )


def fill(folder: Path) -> None:
    """Up to the last byte."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 65536):
                pass
        except OSError:
            return
