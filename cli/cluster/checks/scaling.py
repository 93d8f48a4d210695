"""What acts on the number of pods: budgets, autoscalers, and admission."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

from cli.cluster.checks.finding import Finding, shortened, value_name
from cli.cluster.snapshot import Autoscaler, Budget, Snapshot, Workload

_POD_SECURITY = re.compile(r'violates PodSecurity "([^"]+)": (.*)', re.DOTALL)
_QUOTA = re.compile(r"exceeded quota: (.*)", re.DOTALL)
_SETTLES_WITHIN = timedelta(minutes=3)
"""New pods have no measurements for a minute or two."""


def budgets_that_forbid_drains(snapshot: Snapshot) -> Iterable[Finding]:
    """Budgets that no pod may be taken from although all are well: a drain of their node waits for ever."""
    for budget in snapshot.budgets:
        if not budget.expected or budget.allowed or budget.healthy < budget.expected:
            continue
        rule = (
            f"minAvailable {budget.min_available}"
            if budget.min_available
            else f"maxUnavailable {budget.max_unavailable}"
        )
        sentence = (
            f"Disruption budget {budget.name} ({rule} of {budget.expected}) lets no pod be moved, so that a drain of "
            "its node never ends"
        )
        cure = f"run one more, or allow one to be away (the pdb section of {_component_of(budget)} in the values)"
        yield Finding("DRAIN_FORBIDDEN", f"budget {budget.name}", sentence, cure)


def _component_of(budget: Budget) -> str:
    return value_name(budget.selector.get("app.kubernetes.io/component", "its component"))


def blind_autoscalers(snapshot: Snapshot) -> Iterable[Finding]:
    """Autoscalers that cannot do their work."""
    for scaler in snapshot.autoscalers:
        if not scaler.trouble or _is_settling(scaler, snapshot):
            continue
        sentence = f"The autoscaler of {scaler.target} cannot scale ({shortened(scaler.trouble, 200)})"
        yield Finding("AUTOSCALER_BLIND", f"autoscaler {scaler.name}", sentence, _autoscaler_cure(scaler))


def _autoscaler_cure(scaler: Autoscaler) -> str:
    if "missing request" in scaler.trouble:
        return "give its pods resources.requests of what it measures"
    if scaler.is_keda:
        return (
            "see that KEDA may reach the operations ports of the workers (keda.namespace) and that its operator is well"
        )
    return "see that metrics-server is installed and well: kubectl top pods must answer"


def _is_settling(scaler: Autoscaler, snapshot: Snapshot) -> bool:
    """Whether its pods are so new, or so few are there, that nothing could be measured yet."""
    pods = [pod for pod in snapshot.pods if pod.workload == scaler.target and not pod.is_leaving]
    return not pods or any(
        not pod.ready or (pod.created_at is not None and snapshot.taken_at - pod.created_at < _SETTLES_WITHIN)
        for pod in pods
    )


def no_keda(snapshot: Snapshot) -> Iterable[Finding]:
    """ScaledObjects that nobody looks at."""
    for scaler in snapshot.autoscalers:
        if scaler.is_keda and not scaler.is_known:
            sentence = (
                f"Nobody acts on ScaledObject {scaler.name}, so that {scaler.target} is not scaled: KEDA does not run"
            )
            cure = "install it, or start its operator (kubectl get pods -n keda)"
            yield Finding("KEDA_MISSING", f"autoscaler {scaler.name}", sentence, cure)


def refused_pods(snapshot: Snapshot) -> Iterable[Finding]:
    """Pods that the API server does not let be made: Pod Security, quotas."""
    for workload in snapshot.workloads:
        said = workload.refused or _last_refusal(workload, snapshot)
        if workload.ready >= workload.wanted or not said:
            continue
        sentence, cure = _refusal(workload, said)
        yield Finding("POD_REFUSED", f"{workload.kind} {workload.name}", sentence, cure)


def _last_refusal(workload: Workload, snapshot: Snapshot) -> str:
    found = [
        each.message
        for each in snapshot.warnings
        if each.reason == "FailedCreate" and each.kind == "StatefulSet" and each.name == workload.name
    ]
    return found[-1] if found else ""


def _refusal(workload: Workload, said: str) -> tuple[str, str]:
    if found := _POD_SECURITY.search(said):
        sentence = (
            f"Pods of {workload.component} violate the Pod Security standard {found[1]} of the namespace "
            f"({shortened(found[2], 200)})"
        )
        return (
            sentence,
            "take back what the values change in its security settings, or label the namespace with a weaker standard",
        )
    if found := _QUOTA.search(said):
        sentence = f"Pods of {workload.component} are beyond the namespace's quota ({shortened(found[1], 200)})"
        return sentence, f"raise the quota, or lower {value_name(workload.component)}.replicas and its resources"
    sentence = f"Pods of {workload.component} cannot be made ({shortened(said, 200)})"
    return sentence, f"kubectl describe {workload.kind.lower()} {workload.name} shows more"
