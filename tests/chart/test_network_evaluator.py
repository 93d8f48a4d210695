"""The evaluator of network policies that the tests of the chart rely on, against the documented meaning of each rule."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.chart.network import End, Network

A = End("a", "here", {"app": "a"}, port_names={"web": 80})
B = End("b", "here", {"app": "b"}, port_names={"web": 8080})
ELSEWHERE = End("elsewhere", "there", {"app": "a"}, namespace_labels={"team": "x"})
OUTSIDE = End("outside", address="203.0.113.7")
INSIDE = End("inside", address="10.0.0.7")
OF_A: dict[str, Any] = {"podSelector": {"matchLabels": {"app": "a"}}}
EVERYBODY: dict[str, Any] = {"podSelector": {}}


@dataclass(frozen=True)
class Rule:
    name: str
    specs: tuple[dict[str, Any], ...]
    source: End
    target: End
    allowed: bool
    port: int = 80
    protocol: str = "TCP"


def ingress(*peers: dict[str, Any], ports: list[Any] | None = None, of: dict[str, Any] = OF_A) -> dict[str, Any]:
    rule: dict[str, Any] = {"from": list(peers)} if peers else {}
    return {**of, "policyTypes": ["Ingress"], "ingress": [{**rule, **({"ports": ports} if ports else {})}]}


def egress(*peers: dict[str, Any], ports: list[Any] | None = None, of: dict[str, Any] = OF_A) -> dict[str, Any]:
    rule: dict[str, Any] = {"to": list(peers)} if peers else {}
    return {**of, "policyTypes": ["Egress"], "egress": [{**rule, **({"ports": ports} if ports else {})}]}


POD_B: dict[str, Any] = {"podSelector": {"matchLabels": {"app": "b"}}}
POD_A: dict[str, Any] = {"podSelector": {"matchLabels": {"app": "a"}}}
TEAM_X: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
RULES = (
    Rule("without policies everything is allowed", (), A, B, allowed=True),
    Rule("an empty policy denies what comes in", ({**OF_A, "policyTypes": ["Ingress"]},), B, A, allowed=False),
    Rule("and lets out what it does not mention", ({**OF_A, "policyTypes": ["Ingress"]},), A, B, allowed=True),
    Rule("an empty policy of egress denies what goes out", ({**OF_A, "policyTypes": ["Egress"]},), A, B, allowed=False),
    Rule("without types a policy is about what comes in", (dict(OF_A),), B, A, allowed=False),
    Rule(
        "without types rules of egress count",
        ({**OF_A, "egress": [{}]}, {**EVERYBODY, "policyTypes": ["Egress"]}),
        A,
        B,
        allowed=True,
    ),
    Rule("policies of pods add up", ({**EVERYBODY, "policyTypes": ["Ingress"]}, ingress(POD_B)), B, A, allowed=True),
    Rule("both ends must allow", (ingress(POD_B), {**EVERYBODY, "policyTypes": ["Egress"]}), B, A, allowed=False),
    Rule("a pod selector means this namespace", (ingress(POD_A),), ELSEWHERE, A, allowed=False),
    Rule("a namespace selector means that one", (ingress(TEAM_X),), ELSEWHERE, A, allowed=True),
    Rule("a namespace selector is not for others", (ingress(TEAM_X),), B, A, allowed=False),
    Rule("both in one peer must hold", (ingress({**TEAM_X, **POD_B}),), ELSEWHERE, A, allowed=False),
    Rule("of two peers one must", (ingress(TEAM_X, POD_B),), ELSEWHERE, A, allowed=True),
    Rule("an empty namespace selector is all", (ingress({"namespaceSelector": {}}),), ELSEWHERE, A, allowed=True),
    Rule("no pod selector is from outside", (ingress({"namespaceSelector": {}}),), OUTSIDE, A, allowed=False),
    Rule("an address block is for outside", (egress({"ipBlock": {"cidr": "0.0.0.0/0"}}),), A, OUTSIDE, allowed=True),
    Rule(
        "less what it excepts",
        (egress({"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}),),
        A,
        INSIDE,
        allowed=False,
    ),
    Rule("a port is allowed", (ingress(ports=[{"port": 80}]),), B, A, allowed=True),
    Rule("another is not", (ingress(ports=[{"port": 81}]),), B, A, allowed=False),
    Rule("a range is", (ingress(ports=[{"port": 70, "endPort": 90}]),), B, A, allowed=True),
    Rule("a name is the target's port", (egress(ports=[{"port": "web"}]),), A, B, allowed=True, port=8080),
    Rule("and not the source's", (egress(ports=[{"port": "web"}]),), A, B, allowed=False, port=80),
    Rule("a protocol is TCP unless named", (ingress(ports=[{"port": 80}]),), B, A, allowed=False, protocol="UDP"),
    Rule("an empty list of peers is everybody", (ingress(),), OUTSIDE, A, allowed=True),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_means_what_kubernetes_says(rule: Rule) -> None:
    network = Network([{"spec": spec} for spec in rule.specs], "here")
    assert network.allows(rule.source, rule.target, rule.port, rule.protocol) is rule.allowed
