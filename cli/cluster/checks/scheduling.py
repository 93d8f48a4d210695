"""The scheduler's reasons in plain words."""

from __future__ import annotations

import re

from cli.cluster.checks.finding import value_name
from cli.cluster.snapshot import Pod, Snapshot

_REASONS: tuple[tuple[str, str, str], ...] = (
    (
        r"Insufficient nvidia.com/gpu",
        "no node has a free GPU",
        "free or add one, or ask for fewer under {value}.resources",
    ),
    (
        r"Insufficient cpu",
        "no node has enough processor time left to reserve",
        "add a node, or lower {value}.resources.requests.cpu",
    ),
    (
        r"Insufficient memory",
        "no node has enough memory left to reserve",
        "add a node, or lower {value}.resources.requests.memory",
    ),
    (
        r"Insufficient ephemeral-storage",
        "no node has enough disk left to reserve",
        "add a node, or remove files and images there",
    ),
    (r"Insufficient (\S+)", "no node has enough {0} left", "add a node, or lower {value}.resources.requests"),
    (r"Too many pods", "every node has as many pods as it may", "add a node"),
    (
        r"volume node affinity conflict",
        "its volume is on a node that cannot take it",
        "make that node available (kubectl get pv shows which)",
    ),
    (
        r"unbound immediate PersistentVolumeClaims|didn't find available persistent volumes",
        "there is no volume for it",
        "make one, or name a StorageClass that does (kubectl get storageclass)",
    ),
    (
        r'persistentvolumeclaim "([^"]+)" not found',
        "its claim {0} is not there",
        "create it, or name another in the values",
    ),
    (
        r"didn't match pod topology spread constraints|didn't match pod anti-affinity",
        "it must not share a node with another of its kind",
        "add a node, or run fewer",
    ),
    (
        r"didn't match Pod's node affinity/selector",
        "no node has the labels that it asks for",
        "label a node, or change {value}.nodeSelector and {value}.affinity",
    ),
    (r"node\(s\) were unschedulable", "nodes are cordoned", "kubectl uncordon NODE lets pods onto them again"),
    (
        r"had untolerated taint\(?s?\)? ?\{([^:}]*)",
        "nodes have the taint {0}",
        "remove it there, or tolerate it under {value}.tolerations",
    ),
)
"""Pattern in the scheduler's words, what it means, what to do."""
_LOST_NODE_TAINTS = re.compile(r"node\.kubernetes\.io/(unreachable|not-ready)")


def in_plain_words(pod: Pod) -> tuple[str, str]:
    """Why no node takes the pod, and what to do: the reasons of all nodes, and the cure of the first that can be cured."""
    words: list[str] = []
    cures: list[str] = []
    for pattern, meaning, cure in _REASONS:
        found = re.search(pattern, pod.unschedulable)
        if found is None or any(meaning.split("{")[0] in each for each in words) or _is_repeated(pattern, words):
            continue
        if "taint" in pattern and _LOST_NODE_TAINTS.search(found[0]):
            continue  # said of the node
        words.append(meaning.format(*found.groups()))
        cures.append(cure.format(*found.groups(), value=value_name(pod.component)))
    if not words:
        return f"the scheduler says {pod.unschedulable!r}", "kubectl describe pod shows more"
    return " and ".join(words), cures[0]


def _is_repeated(pattern: str, words: list[str]) -> bool:
    """The general pattern for resources also finds those that have one of their own."""
    return pattern == r"Insufficient (\S+)" and any("no node has" in each for each in words)


def is_explained(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether it only waits for a node that is lost, where its volume is."""
    lost = snapshot.lost_nodes
    return any(claim.node in lost for claim in snapshot.claims if claim.node and claim.name in pod.claims)
