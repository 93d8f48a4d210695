"""`groundwork cluster signing-keys`: the order in which a cluster gets new keys, with pods that take them over later."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cli.cluster.connection.port_forward import PortUnreachable
from cli.cluster.keys import taking_over
from kit.access.key_folder import KeyFolder
from kit.access.key_metrics import METRIC, fingerprint
from kit.access.keys import parse_public_keys, parse_signing_key
from ops.backup.archive import Manifest, write_archive
from ops.signers import SIGNERS
from tests.doubles.http_double import Recorded
from tests.doubles.kubernetes import NAMESPACE, KubernetesDouble
from tests.unit.cli.cluster.conftest import run

OF_NAMESPACE = f"/api/v1/namespaces/{NAMESPACE}"
PUBLIC_KEYS = f"{OF_NAMESPACE}/configmaps/groundwork-public-keys"
COMPONENTS = ("gateway", "orchestrator", "reranker")
"""Two that sign and one that only verifies."""


@dataclass
class Pods:
    """Each shows what the cluster had some questions ago, as a kubelet that is slow to renew files."""

    kubernetes: KubernetesDouble
    delay: int = 2
    stuck: set[str] = field(default_factory=set)
    starting: set[str] = field(default_factory=lambda: {"orchestrator"})
    known: dict[str, list[dict[str, int]]] = field(default_factory=dict)

    def shows(self, component: str) -> dict[str, int]:
        history = self.known.setdefault(component, [])
        history.append({"public": fingerprint(public_keys(self.kubernetes)), "signing": self.signing(component)})
        return history[0 if component in self.stuck else max(0, len(history) - 1 - self.delay)]

    def signing(self, component: str) -> int:
        return fingerprint([signing_key(self.kubernetes, component)]) if component in SIGNERS else 0

    async def fetch_page(self, _api: Any, _namespace: str, pod: str, _port: int, path: str) -> str:
        assert path == "/metrics"
        component = pod.removesuffix("-1")
        if component in self.starting:
            self.starting.remove(component)
            raise PortUnreachable("nobody listens there")
        lines = [f'{METRIC}{{keys="{kind}"}} {value}.0' for kind, value in self.shows(component).items()]
        return "\n".join([f"# TYPE {METRIC} gauge", *lines, ""])


def public_keys(kubernetes: KubernetesDouble) -> dict[str, frozenset[str]]:
    read = parse_public_keys(kubernetes.objects[PUBLIC_KEYS]["data"]["public.json"])
    return {kid: key.calls for kid, key in read.items()}


def signing_key(kubernetes: KubernetesDouble, signer: str) -> str:
    secret = kubernetes.secret(f"groundwork-signing-{signer}")
    assert secret is not None
    return parse_signing_key(secret["signing-key.json"]).kid


@pytest.fixture
async def pods(kubernetes: KubernetesDouble, monkeypatch: pytest.MonkeyPatch) -> Pods:
    """An installation that runs."""
    monkeypatch.setattr(taking_over, "_AGAIN_AFTER_S", 0.0)
    await run("prepare")
    for component in COMPONENTS:
        labels = {"name": "groundwork", "instance": "groundwork", "component": component}
        metadata = {"labels": {f"app.kubernetes.io/{key}": value for key, value in labels.items()}}
        pod = {"metadata": metadata, "spec": {"nodeName": "node2"}, "status": {"phase": "Running"}}
        kubernetes.put(f"{OF_NAMESPACE}/pods/{component}-1", pod)
    made = Pods(kubernetes)
    for component in COMPONENTS:
        made.shows(component)
    monkeypatch.setattr(taking_over, "fetch_page", made.fetch_page)
    return made


def at_each_new_private_key(kubernetes: KubernetesDouble, look: Callable[[str], None]) -> None:
    def act(request: Recorded) -> None:
        if request.method == "PATCH" and "/secrets/" in request.path:
            look(request.path.rpartition("-signing-")[2])

    kubernetes.before.append(act)


async def test_nothing_is_signed_with_a_key_that_a_pod_does_not_know(kubernetes: KubernetesDouble, pods: Pods) -> None:
    before = {signer: signing_key(kubernetes, signer) for signer in SIGNERS}
    unknown_to: list[tuple[str, int]] = []

    def look(signer: str) -> None:
        shown = [history[max(0, len(history) - 1 - pods.delay)]["public"] for history in pods.known.values()]
        unknown_to.append((signer, sum(each != fingerprint(public_keys(kubernetes)) for each in shown)))

    at_each_new_private_key(kubernetes, look)
    result = await run("signing-keys", "rotate")
    assert result.exit_code == 0, result.output
    assert unknown_to == [(signer, 0) for signer in SIGNERS]
    after = {signer: signing_key(kubernetes, signer) for signer in SIGNERS}
    assert not set(before.values()) & set(after.values())
    assert set(public_keys(kubernetes)) == {*before.values(), *after.values()}
    assert "3 of 3 pods have the public keys." in result.output
    assert "2 of 2 pods have their signing keys." in result.output


async def test_only_the_chosen_signers_get_new_keys(kubernetes: KubernetesDouble, pods: Pods) -> None:
    before = {signer: signing_key(kubernetes, signer) for signer in SIGNERS}
    assert (await run("signing-keys", "rotate", "gateway")).exit_code == 0
    changed = [signer for signer in SIGNERS if signing_key(kubernetes, signer) != before[signer]]
    assert changed == ["gateway"]


async def test_a_pod_that_does_not_take_the_public_keys_over_keeps_all_signing_as_before(
    kubernetes: KubernetesDouble, pods: Pods
) -> None:
    before = {signer: signing_key(kubernetes, signer) for signer in SIGNERS}
    pods.stuck.add("reranker")
    result = await run("signing-keys", "rotate", "--timeout", "1s")
    assert result.exit_code == 1
    assert "reranker-1 on node2" in result.output
    assert "gateway-1" not in result.output
    assert {signer: signing_key(kubernetes, signer) for signer in SIGNERS} == before
    assert set(before.values()) <= set(public_keys(kubernetes))


async def test_previous_keys_are_taken_away_once_nobody_signs_with_them(
    kubernetes: KubernetesDouble, pods: Pods
) -> None:
    await run("signing-keys", "rotate")
    assert len(public_keys(kubernetes)) == 2 * len(SIGNERS)
    pods.stuck.add("gateway")
    result = await run("signing-keys", "forget", "gateway", "--timeout", "1s")
    assert (result.exit_code, "gateway-1" in result.output) == (1, True), "it still signs with its previous key"
    pods.stuck.clear()
    assert (await run("signing-keys", "forget", "gateway")).exit_code == 0
    assert len(public_keys(kubernetes)) == 2 * len(SIGNERS) - 1
    assert signing_key(kubernetes, "gateway") in public_keys(kubernetes)


async def test_another_change_at_the_same_time_is_not_written_over(kubernetes: KubernetesDouble, pods: Pods) -> None:
    def somebody_else(request: Recorded) -> None:
        if request.method == "PATCH" and request.path == PUBLIC_KEYS:
            kubernetes.before.clear()
            kubernetes.put(PUBLIC_KEYS, {**kubernetes.objects[PUBLIC_KEYS], "immutable": False})

    kubernetes.before.append(somebody_else)
    before = signing_key(kubernetes, "gateway")
    result = await run("signing-keys", "rotate")
    assert (result.exit_code, "somebody else" in result.output) == (1, True)
    assert signing_key(kubernetes, "gateway") == before


async def test_what_is_not_installed_and_who_signs_nothing_is_named(kubernetes: KubernetesDouble) -> None:
    result = await run("signing-keys", "rotate")
    assert (result.exit_code, "groundwork-signing-gateway" in result.output) == (1, True)
    result = await run("signing-keys", "forget", "reranker")
    assert (result.exit_code, "reranker signs nothing" in result.output) == (2, True)


async def test_the_keys_of_a_backup_are_trusted_for_its_jobs_alone(
    kubernetes: KubernetesDouble, pods: Pods, tmp_path: Path
) -> None:
    others = KeyFolder(tmp_path / "keys")
    others.ensure(SIGNERS)
    with write_archive(tmp_path / "groundwork-20260101T000000Z.tar") as backup:
        backup.add_manifest(Manifest("2026-01-01", (), public_keys=tuple(others.public_keys())))
    result = await run("signing-keys", "trust", str(tmp_path))
    assert result.exit_code == 0, result.output
    trusted = set(parse_public_keys(json.dumps({"keys": others.public_keys()})))
    added = {kid: calls for kid, calls in public_keys(kubernetes).items() if kid in trusted}
    assert added
    assert all(call.startswith("jobs/") for calls in added.values() for call in calls)
    assert "Its keys are known." in (await run("signing-keys", "trust", str(tmp_path))).output
    assert (await run("prepare")).exit_code == 0
    assert set(added) <= set(public_keys(kubernetes)), "an upgrade keeps them"
    (tmp_path / "groundwork-20260101T000000Z.tar").write_text("no tar")
    assert "is not a backup" in (await run("signing-keys", "trust", str(tmp_path))).output
