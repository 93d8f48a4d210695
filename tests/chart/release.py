"""A rendering of the chart, what a test of it asks, and how a property is stated once for all renderings.

A property is a generator over one release that yields a sentence for each object that lacks it:

    @holds
    def test_no_pod_uses_the_hosts_network(release: Release) -> Iterator[str]:
        for pod in release.pods(): ...

`holds` makes it a test over all cases at once, whose failure lists each sentence with the cases that it is true of. PROPERTIES has
the generators, which test_properties.py tries on manifests that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from scripts.helm import HelmError
from tests.chart.case import KUBERNETES, Case
from tests.chart.manifests import Container, Manifest, Pod

Property = Callable[["Release"], Iterator[str]]
Properties = dict[str, Property]
Rendered = Mapping[tuple[str, str], str | HelmError]
PROPERTIES: Properties = {}
"""All of them, by the name of their test."""
_SHOWN_MAX = 20
_NAMED_MAX = 5


@dataclass(frozen=True, eq=False)
class Release:
    """The objects of one case."""

    case: Case
    objects: Sequence[Manifest]
    versions: Sequence[str] = KUBERNETES[-1:]
    """Of Kubernetes, for which it is the same."""

    def of_kind(self, *kinds: str) -> list[Manifest]:
        return [each for each in self.objects if each.kind in kinds]

    def find(self, kind: str, name: str) -> Manifest | None:
        return next((each for each in self.objects if (each.kind, each.name) == (kind, name)), None)

    def pods(self) -> list[Pod]:
        """Of workloads, jobs, hooks and tests."""
        return [pod for each in self.objects if (pod := each.pod()) is not None]

    def lasting_pods(self) -> list[Pod]:
        return [pod for pod in self.pods() if pod.lasts]

    def pods_of(self, component: str) -> list[Pod]:
        return [pod for pod in self.pods() if pod.component == component]

    def containers(self) -> list[Container]:
        return [container for pod in self.pods() for container in pod.containers()]

    @property
    def fullname(self) -> str:
        """What the names of all objects begin with."""
        (gateway,) = (pod.owner.name for pod in self.lasting_pods() if pod.component == "gateway")
        return gateway.removesuffix("-gateway")


def holds(check: Property) -> Callable[[Sequence[Release]], None]:
    """Makes a test of a property."""

    def test(releases: Sequence[Release]) -> None:
        found: dict[str, list[str]] = {}
        for release in releases:
            for sentence in check(release):
                # A sentence that is true of releases of several names is told once.
                found.setdefault(sentence.replace(release.fullname, "groundwork"), []).append(release.case.name)
        if found:
            lines = [f"{sentence}\n    in {_listed(names)}" for sentence, names in found.items()]
            pytest.fail("\n".join([*lines[:_SHOWN_MAX], f"{len(lines)} in all"]), pytrace=False)

    test.__name__ = test.__qualname__ = check.__name__
    test.__doc__ = check.__doc__
    test.__module__ = check.__module__
    PROPERTIES[check.__name__] = check
    return test


def _listed(names: list[str]) -> str:
    each = list(dict.fromkeys(names))
    return ", ".join(each[:_NAMED_MAX]) + (f" and {len(each) - _NAMED_MAX} more" if len(each) > _NAMED_MAX else "")
