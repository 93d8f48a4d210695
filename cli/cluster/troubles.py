"""What is wrong with an installation: a small function for each kind of trouble, which names it in a sentence with its cure.

Causes come first, and what follows from a cause is left out: pods of a lost node are not named a second time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from cli.cluster.connection.pods import Container, Pod, component_of, condition, moment, name_of
from cli.cluster.installation import Installation

_EX_CONFIG = 78
"""kit.process.configuration: a process refuses its settings."""
_MISSING_REASONS = {"CreateContainerConfigError"}
_PULL_REASONS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
_STARTS_WITHIN = timedelta(minutes=2)
"""A pod that is not ready for so long is not just starting."""
_BACKUP_IS_OLD = timedelta(days=2)
_FRAMES = re.compile(r"[\u2500-\u257f]")
"""What programs draw around their messages for a terminal."""
_COUNTED = re.compile(r"since \d+ s|for \d+ s")
_NAMED_MAX = 4


@dataclass(frozen=True)
class Trouble:
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


def find_troubles(installation: Installation) -> Sequence[Trouble]:
    """All that is wrong, each once."""
    return list(dict.fromkeys(found for check in CHECKS for found in check(installation)))


def lost_nodes(seen: Installation) -> Iterable[Trouble]:
    """Nodes that do not answer, with the pods that hang there; those first whose place no other pod takes meanwhile."""
    for node in sorted(_lost(seen)):
        pods = sorted((pod for pod in seen.pods if pod.node == node), key=lambda pod: (not pod.is_stateful, pod.name))
        if pods:
            sentence = f"Node {node} does not answer, and {_listed([pod.name for pod in pods])} hang there"
            cure = "bring it back, or delete the node (kubectl delete node) so that its pods start elsewhere"
            yield Trouble("NODE_LOST", f"node {node}", sentence, cure)


def failed_preparation(seen: Installation) -> Iterable[Trouble]:
    """The Job without which nothing is installed or upgraded."""
    pods = [pod for pod in seen.pods if pod.component == "prepare"]
    failed = [pod for pod in pods if pod.phase == "Failed"]
    if failed and not any(pod.phase == "Succeeded" for pod in pods):
        words = _last_words(seen, failed[-1])
        sentence = f"The Job that makes keys and passwords failed, so that nothing is installed or upgraded{words}"
        cure = "remove the cause and run the same helm command again; its image must be of the chart's version"
        yield Trouble("PREPARATION_FAILED", f"pod {failed[-1].name}", sentence, cure)


def missing_secrets(seen: Installation) -> Iterable[Trouble]:
    """Secrets and ConfigMaps that are not there, or lack a key."""
    needing: dict[str, set[str]] = defaultdict(set)
    living = {pod.name: pod for pod in _living(seen)}
    for pod in living.values():
        for each in pod.containers:
            if each.waiting in _MISSING_REASONS:
                needing[each.message].add(pod.component)
    for event in seen.warnings:
        mounting = living.get((event.get("involvedObject") or {}).get("name") or "")
        if event.get("reason") == "FailedMount" and mounting and not mounting.ready:
            needing[str(event.get("message"))].add(mounting.component)
    for message, components in sorted(needing.items()):
        sentence = f"{_names(components)} cannot start ({_shortened(message)})"
        cure = (
            "helm upgrade makes what is missing of our own; create what is yours, or name the right one in the values"
        )
        yield Trouble("SECRET_MISSING", _names(components), sentence, cure)


def unpullable_images(seen: Installation) -> Iterable[Trouble]:
    """Images that a node cannot get."""
    needing: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod, container in _containers(seen):
        if container.waiting in _PULL_REASONS:
            needing[container.image, container.message or container.waiting].add(pod.component)
    for (image, message), components in sorted(needing.items()):
        sentence = f"The image {image} of {_names(components)} cannot be pulled ({_shortened(message)})"
        cure = "push it there, put image.registry and image.tag right, or name credentials in image.pullSecrets"
        yield Trouble("IMAGE_NOT_PULLED", image, sentence, cure)


def crashing(seen: Installation) -> Iterable[Trouble]:
    """Containers that end again and again, with what they said last."""
    for pod, container in _containers(seen):
        is_crashing = container.waiting == "CrashLoopBackOff" or (container.has_failed and container.restarts)
        if not is_crashing or pod.is_of_job or container.end_reason == "OOMKilled":
            continue
        words, about = _last_words(seen, pod), f"pod {pod.name}"
        if container.exit_code == _EX_CONFIG:
            sentence = f"Pod {pod.name} refuses its settings{words}"
            cure = f"put the value right under {_value_name(pod.component)}.env or where the values set it, and helm upgrade"
            yield Trouble("SETTINGS_REFUSED", about, sentence, cure)
        else:
            sentence = f"Pod {pod.name} ends again and again (exit code {container.exit_code}){words}"
            cure = f"remove the cause; kubectl logs --previous {pod.name} shows more"
            yield Trouble("CRASH_LOOP", about, sentence, cure)


def killed_for_memory(seen: Installation) -> Iterable[Trouble]:
    """Containers that took more memory than they may and are not ready again."""
    for pod, container in _containers(seen):
        if container.end_reason == "OOMKilled" and not container.ready:
            sentence = f"Pod {pod.name} was killed since it took more memory than its limit"
            cure = f"raise {_value_name(pod.component)}.resources.limits.memory"
            yield Trouble("KILLED_FOR_MEMORY", f"pod {pod.name}", sentence, cure)


def unschedulable(seen: Installation) -> Iterable[Trouble]:
    """Pods that no node takes."""
    waiting: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pod in _living(seen):
        if pod.unschedulable:
            waiting[pod.component, pod.unschedulable].append(pod.name)
    for (component, words), names in sorted(waiting.items()):
        sentence = f"No node takes {_names(names)} ({_shortened(words)})"
        cure = f"add a node, or change {_value_name(component)}.resources, nodeSelector, tolerations or its volume"
        yield Trouble("UNSCHEDULABLE", component, sentence, cure)


def refused_pods(seen: Installation) -> Iterable[Trouble]:
    """Workloads whose pods are not admitted: a quota, Pod Security."""
    for each in seen.workloads:
        refused = condition(each, "ReplicaFailure")
        if refused.get("status") == "True":
            sentence = f"Pods of {name_of(each)} are not admitted ({_shortened(refused.get('message') or '')})"
            cure = "raise the quota, or allow them by the namespace's Pod Security level"
            yield Trouble("POD_REFUSED", name_of(each), sentence, cure)


def unbound_claims(seen: Installation) -> Iterable[Trouble]:
    """Volumes that were not made, or are lost. Only claims of the release's StatefulSets and jobs."""
    prefixes = tuple(f"-{name_of(each)}-" for each in seen.workloads)
    for claim in seen.claims:
        name, phase = name_of(claim), (claim.get("status") or {}).get("phase")
        if phase in {"Pending", "Lost"} and (component_of(claim) or any(each in name for each in prefixes)):
            sentence = f"The volume of claim {name} is {'lost' if phase == 'Lost' else 'not made'}"
            cure = f"kubectl describe pvc {name} says why; is there a storage class, and room in it?"
            yield Trouble(f"VOLUME_{'LOST' if phase == 'Lost' else 'NOT_MADE'}", f"claim {name}", sentence, cure)


def reported_troubles(seen: Installation) -> Iterable[Trouble]:
    """What the processes report on `/readyz`. Replicas that say the same are named once."""
    found: dict[tuple[str, str], str] = {}
    components = {pod.name: pod.component for pod in seen.pods}
    for pod, lines in seen.troubles.items():
        for line in lines:
            found.setdefault((components[pod], _COUNTED.sub("", line)), line)
    for (component, _), line in sorted(found.items()):
        part, _, message = line.partition(": ")
        sentence = f"{component} reports about {part}: {_shortened(message)}" if message else f"{component}: {part}"
        yield Trouble("SERVICE_IN_TROUBLE", component, sentence, _cure_of(part, component))


def _cure_of(part: str, component: str) -> str:
    if part.startswith("language model"):
        return "see that it runs and that llm.baseUrl, llm.model and its key are right (helm upgrade)"
    if part == "stored data":
        return "groundwork doctor says what to do about each; groundwork doctor --accept once it is done"
    if part == "signing key":
        return "groundwork cluster signing-keys rotate gives all services keys that the others know"
    if part == "message store":
        return "see that NATS runs; after a change of its Secrets restart it (kubectl rollout restart)"
    return (
        f"it goes on by itself once that is there; kubectl logs -l app.kubernetes.io/component={component} shows more"
    )


def not_ready(seen: Installation) -> Iterable[Trouble]:
    """Pods that run and are not ready, without a known cause."""
    for pod in _living(seen):
        is_starting = pod.created_at is not None and seen.read_at - pod.created_at < _STARTS_WITHIN
        is_explained = any(each.waiting or each.has_failed for each in pod.containers) or seen.troubles.get(pod.name)
        if pod.runs and not (pod.ready or pod.is_of_job or is_starting or is_explained):
            sentence = f"Pod {pod.name} runs but is not ready"
            yield Trouble("NOT_READY", f"pod {pod.name}", sentence, f"kubectl logs {pod.name} shows what it does")


def backups(seen: Installation) -> Iterable[Trouble]:
    """Backups that failed, are old or suspended."""
    for cron_job in seen.cron_jobs:
        if component_of(cron_job) != "backup":
            continue
        name, status = name_of(cron_job), cron_job.get("status") or {}
        again = f"kubectl create job --from=cronjob/{name} {name}-again makes one now"
        if cron_job["spec"].get("suspend"):
            cure = f'kubectl patch cronjob {name} -p \'{{"spec":{{"suspend":false}}}}\''
            yield Trouble("BACKUP_SUSPENDED", f"cronjob {name}", "Backups are suspended", cure)
            continue
        jobs = [each for each in seen.jobs if component_of(each) == "backup"]
        newest = max(jobs, key=lambda each: str(each["metadata"].get("creationTimestamp")), default=None)
        if newest is not None and condition(newest, "Failed").get("status") == "True":
            sentence = f"The last backup failed (kubectl logs job/{name_of(newest)} says why)"
            yield Trouble("BACKUP_FAILED", f"cronjob {name}", sentence, f"remove the cause; {again}")
            continue
        since = moment(status.get("lastSuccessfulTime") or cron_job["metadata"].get("creationTimestamp"))
        if since is not None and seen.read_at - since > _BACKUP_IS_OLD:
            sentence = f"No backup has succeeded since {since:%Y-%m-%d %H:%M} UTC"
            yield Trouble(
                "BACKUP_OLD", f"cronjob {name}", sentence, f"kubectl describe cronjob {name} says why; {again}"
            )


Check = Callable[[Installation], Iterable[Trouble]]
CHECKS: Sequence[Check] = (
    lost_nodes,
    failed_preparation,
    missing_secrets,
    unpullable_images,
    crashing,
    killed_for_memory,
    unschedulable,
    refused_pods,
    unbound_claims,
    reported_troubles,
    not_ready,
    backups,
)


def _lost(seen: Installation) -> set[str]:
    return {name_of(each) for each in seen.nodes if condition(each, "Ready").get("status") != "True"}


def _living(seen: Installation) -> Sequence[Pod]:
    """Pods that should run, on nodes that answer."""
    lost = _lost(seen)
    return [pod for pod in seen.pods if not pod.is_leaving and pod.node not in lost and pod.phase != "Succeeded"]


def _containers(seen: Installation) -> Iterable[tuple[Pod, Container]]:
    return ((pod, container) for pod in _living(seen) for container in pod.containers)


def _last_words(seen: Installation, pod: Pod) -> str:
    """Of a log's end what says why: our own errors stand alone on a line, of a traceback the last line does."""
    lines = [line for line in _FRAMES.sub(" ", seen.last_words.get(pod.name, "")).splitlines() if line.strip()]
    plain = [line for line in lines if not line.startswith(("{", " ", "Traceback"))]
    words = _shortened("; ".join(plain[-3:] or lines[-1:]))
    return f", its last words: {words}" if words else ""


def _value_name(component: str) -> str:
    """The component's section in the chart's values: `ingest-worker` has `ingestWorker`."""
    first, *others = component.split("-")
    return first + "".join(each.capitalize() for each in others)


def _names(names: Iterable[str]) -> str:
    """Each once, sorted."""
    return _listed(sorted(set(names)))


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`; of many the first and how many more."""
    if len(names) > _NAMED_MAX:
        return f"{', '.join(names[: _NAMED_MAX - 1])} and {len(names) - _NAMED_MAX + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _shortened(text: str, longest: int = 300) -> str:
    """On one line."""
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"
