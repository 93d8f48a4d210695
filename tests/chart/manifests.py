"""What helm rendered, as a reader of Kubernetes sees it: objects, the pods that they make, and the containers of these."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

COMPONENT = "app.kubernetes.io/component"
JOBS = ("Job", "CronJob")
_POD_PATHS = {
    "Pod": "",
    "Job": "spec.template",
    "CronJob": "spec.jobTemplate.spec.template",
    "Deployment": "spec.template",
    "StatefulSet": "spec.template",
    "DaemonSet": "spec.template",
}
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
"""As in Kubernetes: `$(NAME)` stands for a variable that was listed before, `$$` for a dollar."""

Body = dict[str, Any]
_SHOWN_MAX = 200


class _StrictLoader(yaml.CSafeLoader):
    """Refuses a key that is given twice, as the API server does: one of the two would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {str(key) for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"key given twice: {', '.join(twice)}", node.start_mark)
        return super().construct_mapping(node, deep)


def parse(text: str) -> list[Manifest]:
    """The objects of helm's output. Raises yaml.YAMLError."""
    documents = map(_document, re.split(r"^---$", text, flags=re.MULTILINE))
    return [Manifest(body) for body in documents if body]


@functools.cache
def _document(text: str) -> Body | None:
    """Cached, since most cases differ in a few objects. Nobody changes it."""
    body: Body | None = yaml.load(text, Loader=_StrictLoader)
    return body


def read(body: Any, path: str) -> Any:
    """The value at `spec.containers[0].env[NAME].value`, or None where there is none. Keys with dots are not reached."""
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(body, list):
            index = place(body, step)
            body = body[index] if index < len(body) else None
        else:
            body = body.get(step) if isinstance(body, dict) else None
    return body


def place(items: Sequence[Any], step: str) -> int:
    """Where in a list the numbered or named item is, or would be appended."""
    if step.isdigit():
        return int(step)
    return next((index for index, item in enumerate(items) if item.get("name") == step), len(items))


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector chooses an object with these labels. None chooses nothing, `{}` everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(expression, labels) for expression in selector.get("matchExpressions") or ())


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values", ())
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[expression["operator"]]


@dataclass(frozen=True, eq=False)
class Manifest:
    """One object."""

    body: Body

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def metadata(self) -> Body:
        return dict(self.body["metadata"])

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def component(self) -> str:
        return self.labels.get(COMPONENT, "")

    @property
    def hooks(self) -> set[str]:
        """When helm applies the object, where that is not with all others: `pre-install`, `test` …"""
        return {hook.strip() for hook in self.annotations.get("helm.sh/hook", "").split(",") if hook}

    @property
    def spec(self) -> Body:
        return self.body.get("spec") or {}

    def get(self, path: str) -> Any:
        return read(self.body, path)

    def pod(self) -> Pod | None:
        """The pods that this object makes, if it makes any."""
        path = _POD_PATHS.get(self.kind)
        return None if path is None else Pod(self, path)

    def problem(self, field: str, expected: str) -> str:
        """A sentence that names the object, the field, what it says and what it should."""
        return f"{self}: {field} is {_short(self.get(field))}; {expected}"

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, eq=False)
class Pod:
    """The pods of a workload, of a job or of a test."""

    owner: Manifest
    path: str

    @property
    def body(self) -> Body:
        return dict(self.owner.get(self.path)) if self.path else self.owner.body

    @property
    def spec(self) -> Body:
        return dict(self.body["spec"])

    @property
    def labels(self) -> dict[str, str]:
        return self.body["metadata"].get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.body["metadata"].get("annotations") or {}

    @property
    def component(self) -> str:
        return self.labels.get(COMPONENT, "")

    @property
    def lasts(self) -> bool:
        """Whether it runs until it is told to end: not a job, nor a test."""
        return self.owner.kind in {"Deployment", "StatefulSet", "DaemonSet"}

    @property
    def replicas(self) -> int:
        return int(self.owner.spec.get("replicas", 1))

    def containers(self) -> Iterator[Container]:
        """Init containers first, as they run."""
        for group in ("initContainers", "containers"):
            for index in range(len(self.spec.get(group) or ())):
                yield Container(self, f"{group}[{index}]")

    def main(self) -> Container:
        """The container that does the component's work: the first one."""
        return Container(self, "containers[0]")

    def volumes(self) -> dict[str, Body]:
        return {volume["name"]: volume for volume in self.spec.get("volumes") or ()}

    def field(self, path: str) -> str:
        """The path of a field of the pod within its owner."""
        return ".".join(part for part in (self.path, path) if part)

    def problem(self, field: str, expected: str) -> str:
        return self.owner.problem(self.field(field), expected)

    def __str__(self) -> str:
        return str(self.owner)


@dataclass(frozen=True, eq=False)
class Container:
    """One container of a pod."""

    pod: Pod
    path: str

    @property
    def body(self) -> Body:
        return dict(read(self.pod.spec, self.path))

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def is_init(self) -> bool:
        return self.path.startswith("init")

    def get(self, path: str) -> Any:
        return read(self.body, path)

    def ports(self) -> dict[str, int]:
        return {port["name"]: port["containerPort"] for port in self.body.get("ports") or ()}

    def mounts(self) -> list[Body]:
        return list(self.body.get("volumeMounts") or ())

    def environment(self, known: Mapping[str, str] | None = None) -> dict[str, str]:
        """What the container's variables are, with `$(NAME)` filled in; `known` are those that come from Secrets and fields."""
        variables: dict[str, str] = {}
        for entry in self.body.get("env") or ():
            text = entry.get("value", "") if "valueFrom" not in entry else (known or {}).get(entry["name"], "")
            variables[entry["name"]] = _REFERENCE.sub(lambda found: _filled_in(found, variables), text)
        return variables

    def problem(self, field: str, expected: str) -> str:
        return self.pod.problem(f"spec.{self.path}.{field}", f"{expected} (container {self.name})")

    def variable_problem(self, name: str, expected: str) -> str:
        """The same of a variable."""
        entry = next((each for each in self.body.get("env") or () if each["name"] == name), {})
        return f"{self}: {name} is {_short(entry.get('value', entry.get('valueFrom')))}; {expected}"

    def __str__(self) -> str:
        return f"{self.pod} {self.pod.field(f'spec.{self.path}')} ({self.name})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _filled_in(found: re.Match[str], variables: Mapping[str, str]) -> str:
    if found[1] is None:
        return "$"
    return variables.get(found[1], found[0])  # Kubernetes leaves a name that it does not know as it is
