"""One namespace of a Kubernetes cluster, by kubectl and helm, as a person at a terminal works with it."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
NAMESPACE_LABELS = {"pod-security.kubernetes.io/enforce": "restricted"}
COMPONENT = "app.kubernetes.io/component"
TIMEOUT_S = 300.0
RECORDED_S = 3600.0
WATCHED_S = 10.0
"""Then everything is listed anew: what goes between a list and the watch after it is told by neither."""


class CommandFailed(AssertionError):
    """kubectl or helm did not end, or with another code than 0; the message is what it said."""


@dataclass(frozen=True)
class Pod:
    """A pod as the API server shows it."""

    raw: Json

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])

    @property
    def component(self) -> str:
        return str(self.raw["metadata"]["labels"].get(COMPONENT, ""))

    @property
    def node(self) -> str:
        return str(self.raw["spec"].get("nodeName", ""))

    @property
    def ip(self) -> str:
        return str(self.raw["status"].get("podIP", ""))

    @property
    def is_ending(self) -> bool:
        return "deletionTimestamp" in self.raw["metadata"]

    @property
    def comes_to_an_end(self) -> bool:
        """A pod of a Job, or of `helm test`, whose pod stays there when it has ended."""
        owners = self.raw["metadata"].get("ownerReferences", [])
        return "helm.sh/hook" in self.raw["metadata"].get("annotations", {}) or any(
            each["kind"] == "Job" for each in owners
        )

    @property
    def is_ready(self) -> bool:
        conditions = self.raw["status"].get("conditions", [])
        return not self.is_ending and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    @property
    def restarts(self) -> int:
        return sum(int(each["restartCount"]) for each in self.raw["status"].get("containerStatuses", []))

    @property
    def container_ids(self) -> list[str]:
        """Of the containers that run, as the runtime names them."""
        states = self.raw["status"].get("containerStatuses", [])
        return [str(each["containerID"]).rpartition("/")[2] for each in states if "running" in each.get("state", {})]

    @property
    def ports(self) -> list[int]:
        """That its containers say they serve."""
        containers = self.raw["spec"]["containers"]
        return sorted({int(port["containerPort"]) for each in containers for port in each.get("ports", [])})

    @property
    def state(self) -> str:
        """A line for messages."""
        states = [each.get("state", {}) for each in self.raw["status"].get("containerStatuses", [])]
        return f"{self.name} on {self.node or 'no node'}: ready {self.is_ready}, {self.restarts} restarts, {states}"


@dataclass(frozen=True)
class Cluster:
    """kubectl and helm in one namespace."""

    namespace: str

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_s: float = TIMEOUT_S) -> str:
        """What it printed. Raises CommandFailed."""
        return command("kubectl", "-n", self.namespace, *arguments, stdin=stdin, timeout_s=timeout_s)

    def helm(self, *arguments: str, timeout_s: float = TIMEOUT_S) -> str:
        """What it printed. Raises CommandFailed."""
        return command("helm", "-n", self.namespace, *arguments, timeout_s=timeout_s)

    def exists(self) -> bool:
        """Whether there is such a namespace."""
        return bool(command("kubectl", "get", "namespace", self.namespace, "--ignore-not-found", "-o", "name"))

    def get(self, kind: str, name: str) -> Json:
        found: Json = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return found

    def objects(self, kind: str, selector: str = "") -> list[Json]:
        items: list[Json] = json.loads(self.kubectl("get", kind, "-o", "json", *_selected(selector)))["items"]
        return items

    def pods(self, component: str = "") -> list[Pod]:
        """Those of the component, or of all that keep running: not of jobs and hooks."""
        selector = f"{COMPONENT}={component}" if component else COMPONENT
        pods = [Pod(each) for each in self.objects("pods", selector)]
        return sorted((pod for pod in pods if not pod.comes_to_an_end), key=lambda pod: pod.name)

    def secret(self, name: str, key: str) -> str:
        """A value of a Secret."""
        return self.kubectl(
            "get", "secret", name, "-o", f"go-template={{{{index .data {json.dumps(key)} | base64decode}}}}"
        )

    def until(
        self,
        kind: str,
        condition: Callable[[list[Json]], bool],
        what: str,
        *,
        selector: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Until the objects of that kind fulfil the condition, which is asked after each change of one. Raises AssertionError."""
        deadline = time.monotonic() + timeout_s
        while not self._watched(kind, condition, selector, deadline):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {timeout_s:.0f} s: {what}\n{self.describe()}")

    def until_pods(
        self, condition: Callable[[list[Pod]], bool], what: str, *, component: str = "", timeout_s: float = TIMEOUT_S
    ) -> None:
        """The same of pods that keep running."""
        selector = f"{COMPONENT}={component}" if component else COMPONENT

        def fulfilled(objects: list[Json]) -> bool:
            return condition([pod for pod in map(Pod, objects) if not pod.comes_to_an_end])

        self.until("pods", fulfilled, what, selector=selector, timeout_s=timeout_s)

    @contextmanager
    def recorded(self, kind: str) -> Iterator[list[Json]]:
        """Every form that the objects of that kind have while the block lasts."""
        seen: list[Json] = []
        words = ["get", kind, "-o", "json", "--watch", "--output-watch-events"]
        with _running("kubectl", "-n", self.namespace, *words, until=time.monotonic() + RECORDED_S) as process:
            reader = threading.Thread(
                target=lambda: seen.extend(each for _, each in _events(process)), name=f"watch of {kind}"
            )
            reader.start()
            try:
                yield seen
            finally:
                process.kill()
                reader.join()

    @contextmanager
    def forwarded(self, pod: str, port: int) -> Iterator[str]:
        """A port of a pod, at an address of this machine, for the block. Raises CommandFailed."""
        words = ["-n", self.namespace, "port-forward", f"pod/{pod}", f":{port}"]
        with _running("kubectl", *words, until=time.monotonic() + TIMEOUT_S) as process:
            assert process.stdout is not None
            said = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
            if said is None:
                raise CommandFailed(f"port {port} of {pod} was not forwarded")
            yield f"http://{said[0]}"

    def until_rolled_out(self, timeout_s: float = TIMEOUT_S) -> None:
        """Until every Deployment and StatefulSet has all its pods, of its newest form, ready, and none else."""
        deadline = time.monotonic() + timeout_s
        for workload in self.objects("deployments,statefulsets"):
            name = f"{workload['kind'].lower()}/{workload['metadata']['name']}"
            left_s = max(1, int(deadline - time.monotonic()))
            try:
                self.kubectl("rollout", "status", name, f"--timeout={left_s}s", timeout_s=left_s + 30)
            except CommandFailed as error:
                raise AssertionError(f"{error}\n{self.describe()}") from error
        self.until_pods(lambda pods: all(pod.is_ready for pod in pods), "all pods are ready", timeout_s=timeout_s)

    def _watched(self, kind: str, condition: Callable[[list[Json]], bool], selector: str, deadline: float) -> bool:
        objects = {each["metadata"]["uid"]: each for each in self.objects(kind, selector)}
        if condition(list(objects.values())):
            return True
        words = ["get", kind, "-o", "json", "--watch", "--output-watch-events", *_selected(selector)]
        until = min(deadline, time.monotonic() + WATCHED_S)
        with _running("kubectl", "-n", self.namespace, *words, until=until) as process:
            for change, changed in _events(process):
                objects[changed["metadata"]["uid"]] = changed
                if change == "DELETED":
                    del objects[changed["metadata"]["uid"]]
                if condition(list(objects.values())):
                    return True
        return False

    def describe(self) -> str:
        """The state of all pods, and the last events: for the message of a test that failed."""
        pods = "\n".join(Pod(each).state for each in self.objects("pods"))
        events = command("kubectl", "-n", self.namespace, "get", "events", "--sort-by=.lastTimestamp", may_fail=True)
        return f"{pods}\n{chr(10).join(events.splitlines()[-15:])}"


def _selected(selector: str) -> Sequence[str]:
    return ("-l", selector) if selector else ()


def command(
    *words: str,
    stdin: str | None = None,
    timeout_s: float = TIMEOUT_S,
    may_fail: bool = False,
) -> str:
    """What a program printed. Raises CommandFailed, unless it may fail."""
    try:
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{' '.join(words)[:500]} did not end within {timeout_s:.0f} s") from error
    if done.returncode and not may_fail:
        raise CommandFailed(
            f"{' '.join(words)[:500]} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout


@contextmanager
def _running(*words: str, until: float) -> Iterator["subprocess.Popen[str]"]:
    """A program that prints while the block lasts; it is ended with the block, and at `until`."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        timer = threading.Timer(max(0.0, until - time.monotonic()), process.kill)
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            process.kill()


def _events(process: "subprocess.Popen[str]") -> Iterator[tuple[str, Json]]:
    """kubectl prints each event as JSON, in one line or indented, whose last line then is a brace of its own."""
    assert process.stdout is not None
    gathered: list[str] = []
    for line in process.stdout:
        gathered.append(line)
        if line[0] in "{}" and line.rstrip().endswith("}"):
            event = json.loads("".join(gathered))
            gathered.clear()
            yield event["type"], event["object"]
