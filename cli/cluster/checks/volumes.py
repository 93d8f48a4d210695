"""Volumes that are full or not there."""

from __future__ import annotations

from collections.abc import Iterable

from cli.cluster.checks.finding import Finding, listed, shortened
from cli.cluster.quantities import in_bytes
from cli.cluster.snapshot import Claim, Snapshot

_FULL_SHARE, _NEARLY_FULL_SHARE = 0.95, 0.85
_FULL_LEFT, _NEARLY_FULL_LEFT = 0.05, 0.2
"""Of what was asked for. A volume that is a folder of a larger disk may have more room than that on a disk that is nearly full."""
_ROOM_BYTES = 128 * 1024 * 1024
"""A volume with less room than one large upload takes is full, whatever its share."""


_MEANINGS = {
    "nats": ", so that NATS refuses writes and uploads get 503",
    "retriever": ", so that documents wait in the queue until the index has room",
}


def is_full(claim: Claim) -> bool:
    """So that writes fail, or soon will."""
    return _has_little_left(claim, _FULL_SHARE, _FULL_LEFT) or (
        claim.used_share is not None and (claim.available_bytes or 0) < _ROOM_BYTES
    )


def _has_little_left(claim: Claim, share: float, left: float) -> bool:
    used = claim.used_share
    return used is not None and used >= share and (claim.available_bytes or 0) <= left * claim.size_bytes


def full_volumes(snapshot: Snapshot) -> Iterable[Finding]:
    """With what that means for whose data it is."""
    for claim in snapshot.claims:
        if not is_full(claim) and not _has_little_left(claim, _NEARLY_FULL_SHARE, _NEARLY_FULL_LEFT):
            continue
        pods = [pod for pod in snapshot.pods if claim.name in pod.claims]
        owner = listed(pod.name for pod in pods) or "nobody"
        room = f"{claim.used_share:.0%}, {in_bytes(claim.available_bytes or 0)} left"
        what = "is full" if is_full(claim) else "is nearly full"
        meaning = _MEANINGS.get(pods[0].component, "") if pods else ""
        sentence = f"Volume {claim.name} of {owner} {what} ({room}){meaning}"
        yield Finding("VOLUME_FULL", f"volume {claim.name}", sentence, _cure(claim, snapshot))


def _cure(claim: Claim, snapshot: Snapshot) -> str:
    grow = f"make room there, or enlarge it (kubectl edit pvc {claim.name}, where its StorageClass allows that)"
    stopped = [
        server.pod
        for server in snapshot.nats
        if server.disk_full and any(pod.name == server.pod and claim.name in pod.claims for pod in snapshot.pods)
    ]
    if not stopped:
        return grow
    return (
        f"{grow}, and then kubectl delete pod {' '.join(stopped)}: after a write that failed NATS writes again only "
        "when it is restarted"
    )


def unbound_claims(snapshot: Snapshot) -> Iterable[Finding]:
    """Claims that no volume was made for, of pods of which the scheduler has not said so."""
    unplaced = {name for pod in snapshot.pods if pod.unschedulable for name in pod.claims}
    for claim in snapshot.claims:
        if claim.phase == "Lost":
            sentence = f"The volume of claim {claim.name} has been removed"
            cure = (
                f"kubectl delete pvc {claim.name} and its pod: it begins with an empty one; restore a backup if it was "
                "NATS's last"
            )
            yield Finding("VOLUME_LOST", f"volume {claim.name}", sentence, cure)
        elif claim.phase == "Pending" and claim.name not in unplaced:
            said = [
                each.message
                for each in snapshot.warnings
                if each.kind == "PersistentVolumeClaim" and each.name == claim.name
            ]
            why = f" ({shortened(said[-1], 160)})" if said else ""
            kind = (
                f"StorageClass {claim.storage_class}" if claim.storage_class else "the cluster's default StorageClass"
            )
            sentence = f"Claim {claim.name} waits for a volume{why}"
            yield Finding(
                "VOLUME_NOT_MADE", f"volume {claim.name}", sentence, f"see that {kind} is there and makes volumes"
            )
