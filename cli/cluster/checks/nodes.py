"""Machines of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from cli.cluster.checks.finding import Finding, listed
from cli.cluster.snapshot import Snapshot

_PRESSURES = {
    "DiskPressure": (
        "has hardly any disk left",
        "remove images and files that are not needed, or give it a larger disk",
    ),
    "MemoryPressure": ("has hardly any memory left", "move pods away from it, or lower their memory limits"),
    "PIDPressure": ("has hardly any process numbers left", "find the pod that starts so many processes"),
}


def lost_nodes(snapshot: Snapshot) -> Iterable[Finding]:
    """Machines that are switched off, cut off or removed, with what hangs there."""
    there = {node.name: node for node in snapshot.nodes}
    for name in sorted(snapshot.lost_nodes):
        said = there[name].reason if name in there else ""
        what = f"does not answer ({said.rstrip('.')})" if name in there else "is no part of the cluster any more"
        pods = [pod.name for pod in snapshot.pods if pod.node == name]
        claims = [claim.name for claim in snapshot.claims if claim.node == name]
        hanging = f", pods {listed(pods)} hang there" if pods else ""
        bound = f", and the data of {listed(claims)} is on its disk" if claims else ""
        yield Finding("NODE_LOST", f"node {name}", f"Node {name} {what}{hanging}{bound}", _cure(name, claims))


def _cure(name: str, claims: list[str]) -> str:
    back = "bring it back (power, network, kubelet)"
    if not claims:
        return f"{back}; until then its pods are made anew elsewhere by themselves, where there is room"
    gone = " ".join(sorted(claims))
    return (
        f"{back}, whoever needs that data waits for it; if it is gone for good, kubectl delete node {name} and kubectl "
        f"delete pvc {gone} with their pods let them begin anew: an index is filled again from the stored files, a "
        "NATS server from the others"
    )


def nodes_under_pressure(snapshot: Snapshot) -> Iterable[Finding]:
    """The kubelet throws pods off such a node, and lets no new ones in."""
    ours = {pod.node for pod in snapshot.pods}
    for node in snapshot.nodes:
        for pressure in node.pressures if node.name in ours else ():
            what, cure = _PRESSURES.get(pressure, (f"is under {pressure}", "look at kubectl describe node"))
            sentence = f"Node {node.name} {what}, so that pods are thrown off it"
            yield Finding("NODE_PRESSURE", f"node {node.name}", sentence, cure)
