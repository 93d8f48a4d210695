"""Who may connect to whom, worked out from NetworkPolicies as Kubernetes does.

A connection needs the leave of both ends. An end that no policy selects in that direction allows everything; one that is selected
allows what any of its policies allows.

https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from tests.chart.manifests import Body, matches

NAMESPACE_NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class End:
    """A pod, or with an address only what lies outside the cluster."""

    name: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    port_names: Mapping[str, int] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_pod(self) -> bool:
        return bool(self.namespace)

    def labels_of_namespace(self) -> dict[str, str]:
        return {NAMESPACE_NAME: self.namespace, **self.namespace_labels}


class Network:
    """The policies of one namespace."""

    def __init__(self, policies: Sequence[Body], namespace: str) -> None:
        self._policies = [policy["spec"] for policy in policies]
        self._namespace = namespace

    def allows(self, source: End, target: End, port: int, protocol: str = "TCP") -> bool:
        """Whether both ends allow the connection."""
        leaves = self._allows("Egress", source, target, target, port, protocol)
        return leaves and self._allows("Ingress", target, source, target, port, protocol)

    def _allows(self, direction: str, end: End, peer: End, target: End, port: int, protocol: str) -> bool:
        rules = self._rules(direction, end)
        if rules is None:
            return True
        peers = "to" if direction == "Egress" else "from"
        return any(
            self._is_peer(rule.get(peers), peer) and _is_port(rule.get("ports"), target, port, protocol)
            for rule in rules
        )

    def _rules(self, direction: str, end: End) -> list[Body] | None:
        """None where no policy selects the end in that direction."""
        if end.namespace != self._namespace:
            return None  # the policies of other namespaces are not ours
        selecting = [
            policy
            for policy in self._policies
            if direction in _types(policy) and matches(policy["podSelector"], end.labels)
        ]
        return [rule for policy in selecting for rule in policy.get(direction.lower()) or ()] if selecting else None

    def _is_peer(self, peers: Sequence[Body] | None, end: End) -> bool:
        return not peers or any(self._is_one(peer, end) for peer in peers)

    def _is_one(self, peer: Body, end: End) -> bool:
        if "ipBlock" in peer:
            return bool(end.address) and _is_within(peer["ipBlock"], end.address)
        if not end.is_pod:
            return False
        if "namespaceSelector" in peer:
            in_namespace = matches(peer["namespaceSelector"] or {}, end.labels_of_namespace())
        else:
            in_namespace = end.namespace == self._namespace
        return in_namespace and matches(peer.get("podSelector") or {}, end.labels)


def _types(policy: Body) -> Iterator[str]:
    """Where they are left out, Ingress is meant, and Egress where there are rules for it."""
    yield from policy.get("policyTypes") or (["Ingress", "Egress"] if policy.get("egress") else ["Ingress"])


def _is_port(ports: Sequence[Body] | None, target: End, port: int, protocol: str) -> bool:
    return not ports or any(_is_one_port(each, target, port, protocol) for each in ports)


def _is_one_port(rule: Body, target: End, port: int, protocol: str) -> bool:
    if rule.get("protocol", "TCP") != protocol:
        return False
    first: Any = rule.get("port")
    if first is None:
        return True
    if isinstance(first, str):
        return target.port_names.get(first) == port
    return bool(first <= port <= rule.get("endPort", first))


def _is_within(block: Body, address: str) -> bool:
    there = ip_address(address)
    inside = there.version == ip_network(block["cidr"]).version and there in ip_network(block["cidr"])
    return inside and not any(there in ip_network(each) for each in block.get("except") or ())
