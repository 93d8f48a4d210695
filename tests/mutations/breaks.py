"""Changes of a rendering, each of which breaks a property: what test_properties.py tries the properties on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.chart.manifests import Body, Manifest, place, read

REMOVED = object()
POD = "spec.template.spec"
MAIN = f"{POD}.containers[0]"
MEMORY, GATEWAY, NATS = "Deployment/groundwork-memory", "Deployment/groundwork-gateway", "StatefulSet/groundwork-nats"
RETRIEVER, WORKER = "StatefulSet/groundwork-retriever", "Deployment/groundwork-ingest-worker"


@dataclass(frozen=True)
class Break:
    """`path` of `target` gets `value`; with no path the object goes, or `value` comes beside it."""

    breaks: str
    """The test of the property, without `test_`."""
    target: str
    path: str
    value: Any
    words: tuple[str, ...] = ()
    """Of the sentence, besides the target and the last part of the path."""
    case: str = "defaults"

    def apply(self, objects: Sequence[Body]) -> list[Body]:
        """The objects, changed. They are changed in place."""
        target = next(each for each in objects if str(Manifest(each)) == self.target)
        if self.path:
            _put(target, self.path, self.value)
            return list(objects)
        kept = [each for each in objects if each is not target]
        return kept if self.value is REMOVED else [*objects, self.value]


def _put(body: Any, path: str, value: Any) -> None:
    above, _, key = path.rpartition("[" if path.endswith("]") else ".")
    around = read(body, above) if above else body
    index: Any = place(around, key[:-1]) if path.endswith("]") else key
    if value is REMOVED:
        del around[index]
    else:
        around[index] = value


def env(name: str, value: Any) -> Body:
    """A variable as it stands in a container; a mapping says where its value comes from."""
    return {"name": name, **({"valueFrom": value} if isinstance(value, dict) else {"value": value})}
