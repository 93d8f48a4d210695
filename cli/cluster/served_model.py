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
    """What a server serves, and under which names. The chart's readiness probe asks for the first."""

    model: str
    names: Sequence[str]

    @property
    def asked(self) -> str:
        return self.names[0]

    def exchanged(self, model: str, asked: str) -> Serving:
        """Of another model: still under the first name, under that which the orchestrators ask for, and under its own."""
        kept = [name for name in self.names if name in (self.asked, asked)]
        return replace(self, model=model, names=tuple(dict.fromkeys((*kept, model))))


def serving(arguments: Sequence[str]) -> Serving:
    """From the arguments of `vllm serve`. Raises UsageError for others than the chart's."""
    if not arguments or arguments[0].startswith("-"):
        raise UsageError(
            "The arguments of vLLM do not begin with its model, so they are not the chart's: change it by helm upgrade."
        )
    model = arguments[0]
    return Serving(model, tuple(arguments[_served_names(arguments)][1:]) or (model,))


def arguments_for(arguments: Sequence[str], wanted: Serving) -> list[str]:
    """The same arguments with another model and its names."""
    rest = list(arguments)
    del rest[_served_names(rest)]
    return [wanted.model, *rest[1:], _SERVED_NAME, *wanted.names]


def _served_names(arguments: Sequence[str]) -> slice:
    """Where the option and its names stand; empty where it is not given."""
    if _SERVED_NAME not in arguments:
        return slice(0, 0)
    start = arguments.index(_SERVED_NAME)
    behind = range(start + 1, len(arguments))
    return slice(start, next((number for number in behind if arguments[number].startswith("-")), len(arguments)))


def arguments_of(workload: Json) -> list[str]:
    """Of its first container."""
    return [str(each) for each in workload["spec"]["template"]["spec"]["containers"][0].get("args") or ()]


def container_patch(workload: Json, changed: Json) -> Json:
    """A strategic merge patch that changes these fields of its first container, or these variables of its environment."""
    name = workload["spec"]["template"]["spec"]["containers"][0]["name"]
    return {"spec": {"template": {"spec": {"containers": [{"name": name, **changed}]}}}}


def has_surge(workload: Json) -> bool:
    """Whether the new pod is begun before the old one ends."""
    rolling = (workload["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    return str(rolling.get("maxSurge", "0")) not in {"0", "0%"}
