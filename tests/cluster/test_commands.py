"""`groundwork cluster` as an operator uses it: what it shows of an installation that is well, and that it names each of these with
its cure: a wrong secret, a language model that does not answer, a full volume, a node without power."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Json, command
from tests.cluster.faults import PowerSwitch
from tests.cluster.release import Release
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


def test_doctor_finds_nothing_wrong_with_what_is_well(groundwork: Commands) -> None:
    done = groundwork("doctor")
    assert (done.exit_code, done.out.startswith("Nothing is wrong")) == (0, True), done.out


def test_a_model_cannot_be_exchanged_where_none_is_served(groundwork: Commands) -> None:
    done = groundwork("model", "org/large")
    assert (done.exit_code, "runs no vllm" in done.err) == (2, True)


def test_a_wrong_password_is_named(groundwork: Commands, release: Release) -> None:
    with changed_password(release.cluster, "memory"):
        sentence = groundwork.until_found("SERVICE_IN_TROUBLE", "memory", "message store")
        assert sentence.count("\n") == 0
    release.cluster.until_rolled_out()


def test_a_missing_secret_is_named(groundwork: Commands, release: Release) -> None:
    cluster = release.cluster
    kept = cluster.get("secret", "groundwork-nats-memory")
    cluster.kubectl("delete", "secret", "groundwork-nats-memory")
    try:
        restart(cluster, "memory")
        groundwork.until_found("SECRET_MISSING", "groundwork-nats-memory", "helm upgrade")
    finally:
        put_back(cluster, kept)
    cluster.until_rolled_out()


def test_a_language_model_that_does_not_answer_is_named(groundwork: Commands, release: Release) -> None:
    values = dict.fromkeys(("llm.baseUrl", "llm.model"), "")
    release.upgrade({"llm.baseUrl": "http://groundwork-nowhere:8000/v1", "llm.model": "nothing"})
    try:
        groundwork.until_found("SERVICE_IN_TROUBLE", "groundwork-nowhere:8000 cannot be reached", "llm.baseUrl")
    finally:
        release.upgrade(values)
    groundwork.until_well()


def test_who_may_see_little_is_shown_that_and_told_the_rest(
    groundwork: Commands, release: Release, tmp_path: Path
) -> None:
    with limited_user(release.cluster, tmp_path) as kubeconfig:
        limited = Commands(groundwork.namespace, {**os.environ, "KUBECONFIG": str(kubeconfig)})
        done = limited("doctor")
        assert done.exit_code == 0, done.err
        assert "Not looked at: nodes" in done.err
        assert "Not looked at: what the pods say of themselves" in done.err
        refused = limited("model", "org/large")
        assert refused.exit_code == 2, refused


def test_a_node_without_power_is_named_with_what_hangs_there(
    groundwork: Commands, release: Release, switch: PowerSwitch
) -> None:
    (retriever,) = release.cluster.pods("retriever")
    switch.off(retriever.node)
    try:
        switch.until_noticed(retriever.node)
        found = groundwork.until_found("NODE_LOST", f"Node {retriever.node} does not answer", "bring it back")
        assert "groundwork-retriever-0" in found
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
