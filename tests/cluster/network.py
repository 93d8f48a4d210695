"""What a pod finds when it tries to connect to others."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chart.services import SETTINGS
from tests.cluster.cluster import Cluster, CommandFailed, Pod, command

COMPONENTS = frozenset({*SETTINGS, "nats"})
"""Of the small values."""

_PROBE = """
import concurrent.futures, json, socket, sys
def connects(target):
    for _ in range(2):  # a connection that is allowed may lose its first packet on a busy machine
        try:
            socket.create_connection(tuple(target), timeout=%s).close()
            return True
        except ConnectionRefusedError:
            return None
        except OSError:
            pass
    return False
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    print(json.dumps(list(pool.map(connects, json.loads(sys.argv[1])))))
"""
_WAIT_S = 2.0


@dataclass(frozen=True)
class Target:
    """A port of a pod."""

    component: str
    address: str
    port: int


def targets_of(pods: Sequence[Pod]) -> list[Target]:
    """Every port of every pod."""
    return [Target(pod.component, pod.ip, port) for pod in pods for port in pod.ports]


def reached_from(cluster: Cluster, pod: Pod, targets: Sequence[Target], image: str) -> list[bool]:
    """Whether the pod can connect to each target. Tried by its own Python, or, where it has none, by that of a container which
    joins it: the network is the pod's."""
    asked = json.dumps([(target.address, target.port) for target in targets])
    program = _PROBE % _WAIT_S
    try:
        said = cluster.kubectl("exec", pod.name, "--", "python", "-c", program, asked)
    except CommandFailed:
        said = _by_debugging(cluster, pod, image, program, asked)
    found: list[bool | None] = json.loads(said.strip().splitlines()[-1])
    closed = [target for target, each in zip(targets, found, strict=True) if each is None]
    assert not closed, f"allowed, but nobody listens there: {closed}"
    return [bool(each) for each in found]


def _by_debugging(cluster: Cluster, pod: Pod, image: str, program: str, asked: str) -> str:
    words = ["debug", pod.name, "--profile=restricted", f"--image={image}", "--image-pull-policy=IfNotPresent"]
    name = f"probe-{abs(hash(asked)) % 10**8}"
    cluster.kubectl(*words, f"--container={name}", "--", "/opt/groundwork/bin/python", "-c", program, asked)

    def has_ended(pods: list[Pod]) -> bool:
        states = [each for one in pods for each in one.raw["status"].get("ephemeralContainerStatuses", [])]
        return any(each["name"] == name and "terminated" in each["state"] for each in states)

    cluster.until_pods(has_ended, f"{name} in {pod.name} has ended", component=pod.component)
    return command("kubectl", "-n", cluster.namespace, "logs", pod.name, "-c", name)
