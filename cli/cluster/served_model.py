"""Where the chart's vLLM has the name of the model that it serves, and how that is changed, in its Deployment or StatefulSet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cli.cluster.connection.api import Json
from cli.errors import UsageError

COMPONENT = "vllm"
ASKING = "orchestrator"
ASKED_NAME = "GROUNDWORK_LLM_MODEL"
"""The orchestrator's setting: under which name it asks."""
_SERVED_NAME = "--served-model-name"


@dataclass(frozen=True)
class Serving:
    """What a server serves, and under which names. The orchestrator asks for the first."""

    model: str
    names: Sequence[str]

    @property
    def asked(self) -> str:
        return self.names[0]

    @property
    def has_lasting_name(self) -> bool:
        """Whether it is asked under a name that is no model's: then nothing else changes when the model does."""
        return self.asked != self.model

    def exchanged(self, model: str) -> Serving:
        """Of another model, still under the name that it is asked for, and under its own."""
        return replace(self, model=model, names=tuple(dict.fromkeys((self.asked, model))))


def serving(arguments: Sequence[str]) -> Serving:
    """From the arguments of `vllm serve`. Raises UsageError for others than the chart's."""
    if not arguments or arguments[0].startswith("-"):
        raise UsageError(
            "The arguments of vLLM do not begin with its model, so they are not the chart's: change it by helm upgrade."
        )
    model = arguments[0]
    if _SERVED_NAME not in arguments:
        return Serving(model, (model,))
    behind = arguments[arguments.index(_SERVED_NAME) + 1 :]
    count = next((number for number, each in enumerate(behind) if each.startswith("-")), len(behind))
    return Serving(model, tuple(behind[:count]) or (model,))


def arguments_for(arguments: Sequence[str], wanted: Serving) -> list[str]:
    """The same arguments with another model and its names."""
    rest = list(arguments[1:])
    if _SERVED_NAME in rest:
        start = rest.index(_SERVED_NAME)
        end = next((number for number in range(start + 1, len(rest)) if rest[number].startswith("-")), len(rest))
        del rest[start:end]
    return [wanted.model, *rest, _SERVED_NAME, *wanted.names]


def arguments_of(workload: Json) -> list[str]:
    """Of its first container."""
    return [str(each) for each in workload["spec"]["template"]["spec"]["containers"][0].get("args") or ()]


def arguments_patch(workload: Json, arguments: Sequence[str]) -> Json:
    """A strategic merge patch that gives the container these arguments."""
    name = workload["spec"]["template"]["spec"]["containers"][0]["name"]
    return _of_container({"name": name, "args": list(arguments)})


def asked_name_patch(workload: Json, model: str) -> Json:
    """A strategic merge patch that has the orchestrator ask under another name."""
    name = workload["spec"]["template"]["spec"]["containers"][0]["name"]
    return _of_container({"name": name, "env": [{"name": ASKED_NAME, "value": model}]})


def _of_container(container: Json) -> Json:
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


def has_surge(workload: Json) -> bool:
    """Whether the new pod is begun before the old one ends."""
    rolling = (workload["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    return str(rolling.get("maxSurge", "0")) not in {"0", "0%"}
