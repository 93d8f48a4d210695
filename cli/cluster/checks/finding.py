"""One trouble, and words that the checks share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cli.cluster.snapshot import Pod, Snapshot

_NAMED_MAX = 4


@dataclass(frozen=True)
class Finding:
    """What is wrong and what to do about it. Neither text ends with a full stop."""

    kind: str
    """A constant: NODE_LOST, IMAGE_NOT_PULLED …"""
    about: str
    """The object or component."""
    sentence: str
    cure: str

    @property
    def text(self) -> str:
        """Both in one sentence."""
        return f"{self.sentence}: {self.cure}."


def listed(names: Iterable[str]) -> str:
    """`a, b and c`; of many the first and how many more."""
    all_ = sorted(set(names))
    if len(all_) > _NAMED_MAX:
        return f"{', '.join(all_[: _NAMED_MAX - 1])} and {len(all_) - _NAMED_MAX + 1} more"
    return " and ".join(filter(None, [", ".join(all_[:-1]), *all_[-1:]]))


def count(number: int, what: str) -> str:
    """`1 pod`, `3 pods`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def value_name(component: str) -> str:
    """The component's section in the chart's values: `ingest-worker` has `ingestWorker`."""
    first, *others = component.split("-")
    return first + "".join(each.capitalize() for each in others)


def living_pods(snapshot: Snapshot) -> Sequence[Pod]:
    """Pods that should run, on nodes that answer: what is wrong with the others is said of their node."""
    lost = snapshot.lost_nodes
    return [pod for pod in snapshot.pods if not pod.is_leaving and pod.node not in lost and pod.phase != "Succeeded"]


def shortened(text: str, longest: int = 300) -> str:
    """On one line."""
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"
