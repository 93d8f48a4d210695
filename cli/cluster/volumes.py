"""How full volumes are: the kubelet of their node says it, and where that may not be asked, `df` in the pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cli.cluster.api import Api, Json
from cli.cluster.concurrency import gathered
from cli.cluster.snapshot import Claim, Snapshot
from cli.errors import CliError

_Room = tuple[int, int]
"""Used and available bytes."""


async def with_usage(api: Api, snapshot: Snapshot, claims: Sequence[Claim], unseen: list[str]) -> list[Claim]:
    """The claims with their used and available bytes, as far as somebody says so; else that is noted in `unseen`."""
    nodes = {pod.node for pod in snapshot.pods if pod.claims and pod.node} - snapshot.lost_nodes
    found: dict[str, _Room] = {}
    for room in await gathered([_of_node(api, snapshot.namespace, node, unseen) for node in sorted(nodes)]):
        found |= room
    return [
        replace(each, used_bytes=found[each.name][0], available_bytes=found[each.name][1])
        if each.name in found
        else each
        for each in claims
    ]


async def _of_node(api: Api, namespace: str, node: str, unseen: list[str]) -> dict[str, _Room]:
    """By claim. `usedBytes` of a volume that is a folder of a larger disk is the folder's alone: what counts is what is left of the
    disk, so that used is capacity less available."""
    try:
        summary = await api.get(f"/api/v1/nodes/{node}/proxy/stats/summary")
    except CliError as error:
        unseen.append(f"how full the volumes on {node} are ({str(error).partition('. ')[0]})")
        return {}
    return {
        volume["pvcRef"]["name"]: _room(volume)
        for pod in summary.get("pods") or ()
        for volume in pod.get("volume") or ()
        if (volume.get("pvcRef") or {}).get("namespace") == namespace and volume.get("capacityBytes")
    }


def _room(volume: Json) -> _Room:
    available = int(volume.get("availableBytes") or 0)
    return int(volume["capacityBytes"]) - available, available
