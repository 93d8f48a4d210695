"""Pods that do not start, do not stay, or are not ready."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

from cli.cluster.checks.finding import Finding, count, listed, living_pods, shortened, value_name
from cli.cluster.checks.scheduling import in_plain_words, is_explained
from cli.cluster.quantities import in_bytes
from cli.cluster.snapshot import Container, Pod, Snapshot

_PREPARE = "prepare"
_EX_CONFIG = 78
"""kit.process.configuration: a process refuses its settings."""
_MISSING = re.compile(
    r'(?P<kind>secret|configmap) "(?P<name>[^"]+)" not found'
    r"|couldn't find key (?P<key>\S+) in (?P<kind2>Secret|ConfigMap) \S+?/(?P<name2>[^\s\"]+)"
    r"|references non-existent (?P<kind3>secret|config) key: (?P<key3>\S+)",
    re.IGNORECASE,
)
_FRAMES = re.compile(r"[\u2500-\u257f]")
"""What programs draw around their messages for a terminal."""
_PULL_REASONS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
_UNAUTHORIZED = re.compile(r"unauthori[sz]ed|denied|authentication required|403|401", re.IGNORECASE)
_NOT_THERE = re.compile(r"not found|404|manifest unknown|no such", re.IGNORECASE)
_STARTS_WITHIN = timedelta(minutes=2)
"""A pod that is not ready for so long is not just starting."""
_RECENT = timedelta(hours=1)


def missing_secrets(snapshot: Snapshot) -> Iterable[Finding]:
    """Secrets and ConfigMaps that are not there, or lack a key. One finding for each, with the components that need it."""
    needing: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    names = {pod.name: pod for pod in living_pods(snapshot)}
    for pod in names.values():
        for container in pod.containers:
            if container.waiting == "CreateContainerConfigError" and (missing := _missing(container.message)):
                needing[missing].add(pod.component)
    for warned in snapshot.warnings:
        pod_ = names.get(warned.name)
        if warned.reason == "FailedMount" and pod_ and not pod_.ready and (missing := _missing(warned.message)):
            needing[missing].add(pod_.component)
    for (kind, name, key), components in sorted(needing.items()):
        what = f"has no key {key!r}" if key else "is not there"
        sentence = f"{kind} {name} {what}, so that {listed(components)} cannot start"
        yield Finding("SECRET_MISSING", f"{kind.lower()} {name}", sentence, _secret_cure(name, key, snapshot))


def _missing(message: str) -> tuple[str, str, str] | None:
    """Kind, name and key of what a message says is missing; the key is empty where all of it is."""
    found = _MISSING.search(message)
    if found is None:
        return None
    kind = (found["kind"] or found["kind2"] or found["kind3"] or "").lower()
    name = found["name"] or found["name2"] or "that it mounts"
    return "Secret" if kind == "secret" else "ConfigMap", name, found["key"] or found["key3"] or ""


def _secret_cure(name: str, key: str, snapshot: Snapshot) -> str:
    if not re.search(r"-(signing|nats|public-keys|bootstrap-key)\b", name):
        value = f"--from-literal={key or 'KEY'}=…"
        return f"create it (kubectl create secret generic {name} {value}) or name the right one in the values"
    cure = "helm upgrade makes what is missing of our own"
    nats = snapshot.workload_of("nats")
    if "-nats-" in name and nats is not None:
        cure += f"; then kubectl rollout restart statefulset/{nats.name}, since NATS reads passwords when it starts"
    return cure


def unpullable_images(snapshot: Snapshot) -> Iterable[Finding]:
    """Images that a node cannot get."""
    needing: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in living_pods(snapshot):
        for container in pod.containers:
            if container.waiting in _PULL_REASONS:
                needing[container.image, _why_not_pulled(container)].add(pod.component)
    for (image, why), components in sorted(needing.items()):
        sentence = f"The image {image} of {listed(components)} cannot be pulled, since {why}"
        cure = "push it there, or put image.registry and image.tag right (helm upgrade)"
        if "credentials" in why:
            cure = "name a Secret with credentials in image.pullSecrets (kubectl create secret docker-registry)"
        yield Finding("IMAGE_NOT_PULLED", image, sentence, cure)


def _why_not_pulled(container: Container) -> str:
    if container.waiting == "InvalidImageName":
        return "that is no name of an image"
    if container.waiting == "ErrImageNeverPull":
        return "it is not on the node and image.pullPolicy is Never"
    if _UNAUTHORIZED.search(container.message):
        return "the registry asks for credentials"
    if _NOT_THERE.search(container.message):
        return "the registry has no such image or does not exist"
    return (
        f"the registry does not answer as it should ({shortened(container.message, 160)})"
        if container.message
        else "it is not there"
    )


def crashing(snapshot: Snapshot) -> Iterable[Finding]:
    """Containers that end again and again, with what they said last."""
    for pod in living_pods(snapshot):
        for container in pod.containers:
            ended = container.ended
            is_crashing = container.waiting == "CrashLoopBackOff" or (
                ended is not None and ended.exit_code and not container.ready and container.restarts
            )
            if not is_crashing or ended is None or ended.reason == "OOMKilled" or pod.is_of_job:
                continue
            yield _crash(pod, container, ended.exit_code)


def _crash(pod: Pod, container: Container, exit_code: int) -> Finding:
    words = shortened(_telling(container.last_words))
    about = f"pod {pod.name}"
    if exit_code == _EX_CONFIG:
        sentence = f"Pod {pod.name} refuses its settings ({words or 'see its log'})"
        cure = f"put the value right under {value_name(pod.component)}.env or where the values set it, and helm upgrade"
        return Finding("SETTINGS_REFUSED", about, sentence, cure)
    said = f", its last words: {words}" if words else ""
    sentence = (
        f"Pod {pod.name} ends again and again (exit code {exit_code}, {count(container.restarts, 'restart')}){said}"
    )
    return Finding(
        "CRASH_LOOP",
        about,
        sentence,
        f"remove the cause; groundwork cluster logs {pod.component} --previous shows more",
    )


def _telling(words: str) -> str:
    """Of a log's end what says why: our own errors stand alone on a line, `REASON: message`; of a traceback the last line does."""
    lines = [line for line in _FRAMES.sub(" ", words).splitlines() if line.strip()]
    plain = [line for line in lines if not line.startswith(("{", " ", "Traceback"))]
    return "; ".join(plain[-3:]) if plain else (lines[-1] if lines else "")


def failed_preparation(snapshot: Snapshot) -> Iterable[Finding]:
    """The Job without which nothing is installed or upgraded."""
    failed = [pod for pod in snapshot.pods if pod.component == _PREPARE and pod.phase == "Failed"]
    if not failed or any(pod.phase == "Succeeded" for pod in snapshot.pods_of(_PREPARE)):
        return
    newest = max(failed, key=lambda pod: pod.created_at or snapshot.taken_at)
    words = shortened(_telling("\n".join(each.last_words for each in newest.containers)))
    said = f", its last words: {words}" if words else ""
    sentence = f"The Job that makes keys and passwords failed, so that nothing is installed or upgraded{said}"
    cure = "remove the cause and run the same helm command again; its image must be of the same version as the chart"
    yield Finding("PREPARATION_FAILED", f"pod {newest.name}", sentence, cure)


def killed_for_memory(snapshot: Snapshot) -> Iterable[Finding]:
    """Containers that took more memory than they may, in the last hour or for good."""
    for pod in living_pods(snapshot):
        for container in pod.containers:
            ended = container.ended
            if ended is None or ended.reason != "OOMKilled":
                continue
            is_over = container.ready and ended.at is not None and snapshot.taken_at - ended.at > _RECENT
            if is_over:
                continue
            limit = f" of {in_bytes(container.memory_limit_bytes)}" if container.memory_limit_bytes else ""
            sentence = (
                f"Pod {pod.name} was killed since it took more memory than its limit{limit} "
                f"({count(container.restarts, 'restart')})"
            )
            cure = f"raise {value_name(pod.component)}.resources.limits.memory"
            if pod.component == "ingest-worker":
                cure += ", or lower GROUNDWORK_INGEST_CONCURRENCY; a document that kills several workers becomes a dead letter"
            yield Finding("KILLED_FOR_MEMORY", f"pod {pod.name}", sentence, cure)


def unschedulable(snapshot: Snapshot) -> Iterable[Finding]:
    """Pods that no node takes."""
    waiting: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for pod in snapshot.pods:
        if pod.unschedulable and not pod.is_leaving and not is_explained(snapshot, pod):
            words, cure = in_plain_words(pod)
            waiting[pod.component, words, cure].append(pod.name)
    for (component, words, cure), pods in sorted(waiting.items()):
        sentence = f"{count(len(pods), 'pod')} of {component} ({listed(pods)}) cannot be placed, since {words}"
        yield Finding("UNSCHEDULABLE", component, sentence, cure)


def evicted(snapshot: Snapshot) -> Iterable[Finding]:
    """Pods that a node has thrown off."""
    for pod in living_pods(snapshot):
        if pod.phase == "Failed" and pod.reason == "Evicted":
            sentence = f"Pod {pod.name} was thrown off {pod.node or 'its node'} ({shortened(pod.message, 160)})"
            cure = (
                f"make room there, or raise {value_name(pod.component)}.resources; kubectl delete pod {pod.name} "
                "clears it away"
            )
            yield Finding("EVICTED", f"pod {pod.name}", sentence, cure)


def not_ready(snapshot: Snapshot) -> Iterable[Finding]:
    """Pods that run, are not ready, and of which nothing else has said why."""
    for pod in living_pods(snapshot):
        ops = snapshot.ops.get(pod.name)
        if pod.ready or not pod.runs or pod.is_of_job or (ops is not None and ops.troubles):
            continue
        is_starting = pod.created_at is not None and snapshot.taken_at - pod.created_at < _STARTS_WITHIN
        if is_starting or any(each.waiting or (each.ended and not each.ready) for each in pod.containers):
            continue
        said = next(
            (each.message for each in snapshot.warnings if each.name == pod.name and each.reason == "Unhealthy"), ""
        )
        why = f" ({shortened(said, 160)})" if said else ""
        sentence = f"Pod {pod.name} runs but is not ready{why}"
        yield Finding(
            "NOT_READY", f"pod {pod.name}", sentence, f"groundwork cluster logs {pod.component} shows what it does"
        )
