"""`groundwork cluster prepare`: the Secrets and the ConfigMap that the chart's pods mount."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from kit.access.keys import parse_public_keys, parse_signing_key
from ops.nats_users import ADMINISTRATOR
from ops.signers import SIGNERS
from ops.state import USERS
from tests.doubles.http_double import Failure, Recorded
from tests.doubles.kubernetes import NAMESPACE, KubernetesDouble, refusal
from tests.unit.cli.cluster.conftest import run

OF_NAMESPACE = f"/api/v1/namespaces/{NAMESPACE}"
PUBLIC_KEYS = f"{OF_NAMESPACE}/configmaps/groundwork-public-keys"


def signing_key(kubernetes: KubernetesDouble, signer: str) -> str:
    secret = kubernetes.secret(f"groundwork-signing-{signer}")
    assert secret is not None
    return parse_signing_key(secret["signing-key.json"]).kid


def public_keys(kubernetes: KubernetesDouble) -> dict[str, frozenset[str]]:
    read = parse_public_keys(kubernetes.objects[PUBLIC_KEYS]["data"]["public.json"])
    return {kid: key.calls for kid, key in read.items()}


async def test_makes_everything_that_pods_mount(kubernetes: KubernetesDouble) -> None:
    result = await run("prepare")
    assert result.exit_code == 0, result.output
    keys = public_keys(kubernetes)
    assert keys == {signing_key(kubernetes, signer): frozenset(calls) for signer, calls in SIGNERS.items()}
    passwords = [kubernetes.secret(f"groundwork-nats-{user}") for user in (ADMINISTRATOR, "routes", *USERS)]
    texts = {secret["password"] for secret in passwords if secret}
    assert len(texts) == len(USERS) + 2
    assert all(text.isalnum() and text[0].isalpha() for text in texts)
    first_key = kubernetes.secret("groundwork-bootstrap-key")
    assert first_key is not None
    assert len(first_key["key"]) >= 40


async def test_objects_carry_the_names_and_labels_of_their_installation(kubernetes: KubernetesDouble) -> None:
    await run("prepare", "--name", "rag-groundwork", "--release", "rag")
    labels = kubernetes.objects[f"{OF_NAMESPACE}/secrets/rag-groundwork-signing-gateway"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/instance"] == "rag"
    assert labels["app.kubernetes.io/name"] == "groundwork"


async def test_a_second_run_changes_nothing(kubernetes: KubernetesDouble) -> None:
    await run("prepare")
    before = dict(kubernetes.objects)
    kubernetes.requests.clear()
    result = await run("prepare")
    assert result.exit_code == 0
    assert kubernetes.objects == before
    assert {request.method for request in kubernetes.requests} == {"GET"}
    assert "Made" not in result.output


async def test_what_is_there_already_is_kept(kubernetes: KubernetesDouble) -> None:
    kubernetes.put(f"{OF_NAMESPACE}/secrets/groundwork-nats-memory", {"stringData": {"password": "chosen1by2people"}})
    kubernetes.put(f"{OF_NAMESPACE}/secrets/groundwork-bootstrap-key", {"stringData": {"key": "chosen-by-people"}})
    await run("prepare")
    assert kubernetes.secret("groundwork-nats-memory") == {"password": "chosen1by2people"}
    assert kubernetes.secret("groundwork-bootstrap-key") == {"key": "chosen-by-people"}


async def test_without_a_bootstrap_key_none_is_made(kubernetes: KubernetesDouble) -> None:
    assert (await run("prepare", "--no-bootstrap-key")).exit_code == 0
    assert kubernetes.secret("groundwork-bootstrap-key") is None


async def test_qdrant_gets_a_key_where_the_chart_runs_it(kubernetes: KubernetesDouble) -> None:
    await run("prepare")
    assert kubernetes.secret("groundwork-qdrant") is None
    await run("prepare", "--qdrant-key")
    made = kubernetes.secret("groundwork-qdrant")
    assert made is not None
    assert len(made["api-key"]) >= 40


async def test_helm_may_take_the_bootstrap_key_over(kubernetes: KubernetesDouble) -> None:
    await run("prepare", "--name", "rag-groundwork", "--release", "rag")
    metadata = kubernetes.objects[f"{OF_NAMESPACE}/secrets/rag-groundwork-bootstrap-key"]["metadata"]
    assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    owner = {"meta.helm.sh/release-name": "rag", "meta.helm.sh/release-namespace": NAMESPACE}
    assert metadata["annotations"] == owner


async def test_two_at_once_end_with_the_same_keys(kubernetes: KubernetesDouble) -> None:
    results = await asyncio.gather(run_apart(kubernetes), run_apart(kubernetes), run_apart(kubernetes))
    assert [code for code, _ in results] == [0, 0, 0], results
    assert {signing_key(kubernetes, signer) for signer in SIGNERS} <= set(public_keys(kubernetes))
    made = [line for _, said in results for line in said.splitlines() if line.startswith("Made Secret")]
    assert len(made) == len(set(made)) == len(SIGNERS) + len(USERS) + 3


async def run_apart(kubernetes: KubernetesDouble) -> tuple[int, str]:
    """In a process of its own."""
    command = [sys.executable, "-m", "cli.main", "cluster", "prepare"]
    process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
    out, err = await process.communicate()
    return process.returncode or 0, (out + err).decode()


async def test_a_key_that_somebody_else_made_a_moment_before_is_the_right_one(kubernetes: KubernetesDouble) -> None:
    await run("prepare")
    others = kubernetes.objects.pop(f"{OF_NAMESPACE}/secrets/groundwork-signing-gateway")

    def make_it_first(request: Recorded) -> None:
        if request.method == "POST":
            kubernetes.before.clear()
            kubernetes.put(f"{OF_NAMESPACE}/secrets/groundwork-signing-gateway", others)

    kubernetes.before.append(make_it_first)
    result = await run("prepare")
    assert result.exit_code == 0, result.output
    assert "groundwork-signing-gateway" not in result.output
    assert signing_key(kubernetes, "gateway") in public_keys(kubernetes)


async def test_an_upgrade_brings_the_calls_up_to_date_and_keeps_previous_keys(kubernetes: KubernetesDouble) -> None:
    await run("prepare")
    published = json.loads(kubernetes.objects[PUBLIC_KEYS]["data"]["public.json"])["keys"]
    previous = {**published[0], "kid": "gateway-00000000"}
    outdated = [{**key, "calls": ["memory/GetThread"]} for key in published]
    kubernetes.put(PUBLIC_KEYS, {"data": {"public.json": json.dumps({"keys": [*outdated, previous]}), "more": "kept"}})
    result = await run("prepare")
    assert "Brought ConfigMap groundwork-public-keys up to date" in result.output
    keys = public_keys(kubernetes)
    assert keys[signing_key(kubernetes, "gateway")] == frozenset(SIGNERS["gateway"])
    assert keys["gateway-00000000"] == frozenset(SIGNERS["gateway"])
    assert kubernetes.objects[PUBLIC_KEYS]["data"]["more"] == "kept"


async def test_public_keys_that_were_lost_or_damaged_are_made_from_the_private_ones(
    kubernetes: KubernetesDouble,
) -> None:
    await run("prepare")
    before = public_keys(kubernetes)
    del kubernetes.objects[PUBLIC_KEYS]
    await run("prepare")
    assert public_keys(kubernetes) == before
    kubernetes.put(PUBLIC_KEYS, {"data": {"public.json": "{"}})
    await run("prepare")
    assert public_keys(kubernetes) == before


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("groundwork-signing-memory", {"signing-key.json": "{}"}, "groundwork-signing-memory holds no signing key"),
        ("groundwork-signing-memory", {"other": "x"}, "groundwork-signing-memory has no `signing-key.json`"),
        ("groundwork-nats-tools", {"password": "9lives9lives"}, "begin with a letter"),
        ("groundwork-nats-tools", {"password": "with:colon@"}, "letters and digits"),
    ],
)
async def test_a_secret_that_cannot_be_used_is_named_and_left_alone(
    kubernetes: KubernetesDouble, name: str, content: dict[str, str], said: str
) -> None:
    kubernetes.put(f"{OF_NAMESPACE}/secrets/{name}", {"stringData": content})
    result = await run("prepare")
    assert result.exit_code == 1
    assert said in result.output
    assert kubernetes.secret(name) == content


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "does not accept the credentials"),
        (403, "does not allow it: secrets is forbidden"),
        (500, "answered HTTP 500 (secrets is forbidden)"),
    ],
)
async def test_refusals_of_the_api_server_are_sentences(kubernetes: KubernetesDouble, status: int, said: str) -> None:
    kubernetes.failures.append(Failure("GET", status, refusal(status, "No", "secrets is forbidden")))
    result = await run("prepare")
    assert result.exit_code == 2
    assert said in result.output


async def test_an_api_server_that_is_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double = KubernetesDouble()
    double.url = "http://127.0.0.1:9"
    double.write_kubeconfig(tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    result = await run("prepare")
    assert result.exit_code == 2
    assert "http://127.0.0.1:9" in result.output


async def test_a_missing_kubeconfig_and_a_missing_client_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = await run("prepare")
    assert (result.exit_code, "cannot be used" in result.output) == (2, True)
    for module in ("kubernetes", "kubernetes.aio"):
        monkeypatch.setitem(sys.modules, module, None)
    result = await run("prepare")
    assert (result.exit_code, "pip install 'groundwork[cli,cluster]'" in result.output) == (2, True)


async def test_the_claim_of_backups_is_made_once(kubernetes: KubernetesDouble) -> None:
    result = await run("prepare", "--backup-claim", "50Gi", "--backup-storage-class", "slow")
    assert "Made claim groundwork-backup of 50Gi." in result.output
    made = kubernetes.objects[f"{OF_NAMESPACE}/persistentvolumeclaims/groundwork-backup"]
    assert made["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "50Gi"}},
        "storageClassName": "slow",
    }
    assert made["metadata"]["labels"]["app.kubernetes.io/instance"] == "groundwork"
    again = await run("prepare", "--backup-claim", "80Gi")
    assert (again.exit_code, "Made" in again.output) == (0, False)
    assert kubernetes.objects[f"{OF_NAMESPACE}/persistentvolumeclaims/groundwork-backup"] == made


async def test_no_claim_is_made_that_was_not_asked_for(kubernetes: KubernetesDouble) -> None:
    await run("prepare")
    assert not [path for path in kubernetes.objects if "persistentvolumeclaims" in path]
