"""What is done to a cluster on purpose."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cluster import Cluster, Json, Pod, command

NOTICED_WITHIN_S = 120.0


def kill_processes(cluster: Cluster, pod: Pod) -> str:
    """SIGKILL to the first process of each of the pod's containers, which ends the others with it; the kubelet starts them again.
    Where the nodes are not on this machine, the pod is removed without notice instead, and another takes its place. Returns what
    was done."""
    processes = [pid for container_id in pod.container_ids for pid in _first_process(container_id)]
    if not processes:
        cluster.kubectl("delete", "pod", pod.name, "--grace-period=0", "--force", "--wait=false")
        return f"removed {pod.name}"
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return f"killed {pod.name}"


def _first_process(container_id: str) -> list[int]:
    """The process of this machine that is number 1 in the container; none where there is no such container here."""
    if os.geteuid() != 0:
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if container_id in (entry / "cgroup").read_text() and _number_inside(entry) == 1:
                    found.append(int(entry.name))
    return found


def _number_inside(entry: Path) -> int:
    """The process's number in its own namespace of processes."""
    for line in (entry / "status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return 0


@dataclass(frozen=True)
class PowerSwitch:
    """The power of the cluster's nodes."""

    program: Path
    cluster: Cluster

    def off(self, node: str) -> None:
        command(str(self.program), "stop", _number(node))

    def on(self, node: str) -> None:
        command(str(self.program), "start", _number(node))

    def until_noticed(self, node: str) -> None:
        """Until the control plane takes the node for lost."""
        self.cluster.until(
            "nodes",
            lambda nodes: not is_node_ready(_named(nodes, node)),
            f"{node} is noticed to be away",
            timeout_s=NOTICED_WITHIN_S,
        )

    def until_back(self, node: str) -> None:
        self.cluster.until(
            "nodes", lambda nodes: is_node_ready(_named(nodes, node)), f"{node} is back", timeout_s=NOTICED_WITHIN_S
        )


def is_node_ready(node: Json) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


def _named(nodes: list[Json], name: str) -> Json:
    return next(node for node in nodes if node["metadata"]["name"] == name)


def _number(node: str) -> str:
    """node2 → 2."""
    return node[len(node.rstrip("0123456789")) :]
