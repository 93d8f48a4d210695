"""What our own processes say about themselves."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from cli.cluster.checks.credentials import REFUSED, SIGNING_KEY
from cli.cluster.checks.finding import Finding, listed, living_pods, shortened
from cli.cluster.checks.message_store import has_majority
from cli.cluster.snapshot import Snapshot, Trouble

MODEL = "language model"
"""What the orchestrator calls a provider of models, with its name behind."""
MESSAGE_STORE = "message store"
STORED_DATA = "stored data"
_COUNTED = re.compile(r"since \d+ s|for \d+ s")


def unreachable_models(snapshot: Snapshot) -> Iterable[Finding]:
    """Language models that do not answer, or not as they should."""
    for component, trouble in _troubles(snapshot):
        if trouble.part.startswith(MODEL):
            cure = "see that it runs and that llm.baseUrl, llm.model and its key are right (helm upgrade)"
            if snapshot.workload_of("vllm") is not None:
                cure += "; groundwork cluster logs vllm shows whether it loads"
            sentence = f"{trouble.part[:1].upper()}{trouble.part[1:]} of {component} does not serve: {trouble.message}"
            yield Finding("MODEL_UNREACHABLE", trouble.part, sentence, cure)


def services_in_trouble(snapshot: Snapshot) -> Iterable[Finding]:
    """All other troubles, in the words of those who have them. That the message store is away is said once, of NATS."""
    for component, trouble in _troubles(snapshot):
        if trouble.part.startswith(MODEL) or trouble.part == SIGNING_KEY or REFUSED in trouble.message:
            continue
        if trouble.part == MESSAGE_STORE and not has_majority(snapshot):
            continue
        sentence = f"{component} says of {trouble.part or 'itself'}: {shortened(trouble.message)}"
        yield Finding("SERVICE_IN_TROUBLE", component, sentence, _cure(component, trouble))


def _cure(component: str, trouble: Trouble) -> str:
    if trouble.part == MESSAGE_STORE:
        return "NATS has a majority, so look at network policies and DNS between the two, and at GROUNDWORK_NATS_URL"
    if trouble.part == STORED_DATA:
        return "groundwork doctor says what to do about each; groundwork doctor --accept once it is done"
    if component == "retriever":
        return "see that the search engine runs and is reached; what an index lacks is filled again by itself"
    return f"it goes on by itself once that is there; groundwork cluster logs {component} shows more"


def silent_ports(snapshot: Snapshot) -> Iterable[Finding]:
    """Pods that are ready, and whose operations port does not answer us."""
    silent = defaultdict(list)
    for pod in living_pods(snapshot):
        ops = snapshot.ops.get(pod.name)
        if ops is not None and ops.problem and pod.ready:
            silent[pod.component].append(pod.name)
    for component, pods in sorted(silent.items()):
        sentence = f"The operations port of {listed(pods)} does not answer through the API server"
        cure = (
            "has its node just been lost? If not, ask for the right to create pods/portforward, and look at the kubelet"
        )
        yield Finding("OPERATIONS_PORT_SILENT", component, sentence, cure)


def _troubles(snapshot: Snapshot) -> list[tuple[str, Trouble]]:
    """By component, each once: replicas that say the same differ in how long."""
    found: dict[tuple[str, str, str], Trouble] = {}
    for pod in snapshot.pods:
        ops = snapshot.ops.get(pod.name)
        for trouble in ops.troubles if ops is not None else ():
            found.setdefault((pod.component, trouble.part, _COUNTED.sub("", trouble.message)), trouble)
    return [(component, trouble) for (component, _, _), trouble in sorted(found.items(), key=lambda each: each[0])]
