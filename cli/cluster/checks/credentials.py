"""Secrets that are there and wrong, and certificates that end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

from cli.cluster.checks.finding import Finding, listed
from cli.cluster.quantities import in_time
from cli.cluster.snapshot import Snapshot

REFUSED = "refuses our user or password"
"""kit.jetstream.opening: what a process says while NATS does not let it in."""
SIGNING_KEY = "signing key"
"""kit.access.own_key: the part that a process names when its key is not among the public ones."""
_ENDS_SOON = timedelta(days=14)


def refused_passwords(snapshot: Snapshot) -> Iterable[Finding]:
    """Services that NATS does not let in."""
    refused = defaultdict(list)
    for pod in snapshot.pods:
        ops = snapshot.ops.get(pod.name)
        if ops is not None and any(REFUSED in each.message for each in ops.troubles):
            refused[pod.component].append(pod.name)
    nats = snapshot.workload_of("nats")
    restart = f" (kubectl rollout restart statefulset/{nats.name})" if nats else ""
    for component, pods in sorted(refused.items()):
        sentence = f"NATS refuses the user or password of {component} ({listed(pods)})"
        cure = (
            f"its Secret was changed after NATS had read it, so restart NATS{restart} and then {component}, or put "
            "back what it held"
        )
        yield Finding("NATS_REFUSES_PASSWORD", component, sentence, cure)


def unknown_signing_keys(snapshot: Snapshot) -> Iterable[Finding]:
    """Services whose calls all others refuse."""
    for component, message in _said(snapshot, SIGNING_KEY):
        cure = (
            "helm upgrade brings the public keys up to date, where the private one is a Secret of the chart's; else "
            "put the two together"
        )
        yield Finding("SIGNING_KEY_UNKNOWN", component, f"The signing key of {component} is not good: {message}", cure)


def ending_certificates(snapshot: Snapshot) -> Iterable[Finding]:
    """Of TLS Secrets in the namespace."""
    for each in snapshot.certificates:
        left = each.ends_at - snapshot.taken_at
        if left > _ENDS_SOON:
            continue
        is_over = left <= timedelta(0)
        what = f"has expired on {each.ends_at:%Y-%m-%d}" if is_over else f"expires in {in_time(left)}"
        cure = (
            "renew it (cert-manager: kubectl describe certificate says why it did not); running pods read the new one "
            "by themselves"
        )
        yield Finding(
            "CERTIFICATE_ENDS", f"secret {each.secret}", f"The certificate in Secret {each.secret} {what}", cure
        )


def _said(snapshot: Snapshot, part: str) -> Iterable[tuple[str, str]]:
    """Component and message, each once."""
    found = {
        (pod.component, trouble.message)
        for pod in snapshot.pods
        if (ops := snapshot.ops.get(pod.name)) is not None
        for trouble in ops.troubles
        if trouble.part == part
    }
    return sorted(found)
