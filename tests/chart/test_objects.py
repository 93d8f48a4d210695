"""Every object is one that the API server takes, under a name that is the release's own."""

import re
from collections.abc import Iterator, Sequence

import pytest

from tests.chart.manifests import Manifest
from tests.chart.release import Release, holds
from tests.chart.schemas import schema_problems

CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "Namespace",
    "PriorityClass",
    "StorageClass",
    "CustomResourceDefinition",
}
NAME_CHARACTERS_MAX = 63
"""Of a DNS label, and of the value of a label."""
SUFFIX_CHARACTERS = {"StatefulSet": 11, "CronJob": 11}
"""What Kubernetes appends: the revision's hash in a label of the pods, the time in the names of jobs."""
DNS_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?")


@holds
def test_every_object_is_valid_for_its_version_of_kubernetes(release: Release) -> Iterator[str]:
    for each in release.objects:
        for version in release.versions:
            yield from schema_problems(each, version)


@holds
def test_no_object_is_there_twice(release: Release) -> Iterator[str]:
    names = [str(each) for each in release.objects]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name}: is there {names.count(name)} times; helm would keep one"


@holds
def test_every_object_is_in_the_namespace_of_the_release(release: Release) -> Iterator[str]:
    for each in release.objects:
        if each.metadata.get("namespace") not in {None, release.case.namespace}:
            yield each.problem("metadata.namespace", f"should be {release.case.namespace}")
        if each.kind in CLUSTER_WIDE:
            yield f"{each}: belongs to the whole cluster, where a second release has one of the same name"


@holds
def test_every_name_begins_with_the_releases(release: Release) -> Iterator[str]:
    for each in release.objects:
        is_given = (each.kind, each.name) in release.case.given_names
        if not is_given and not each.name.startswith(release.fullname):
            yield each.problem("metadata.name", f"should begin with {release.fullname}")


@holds
def test_every_name_and_label_fits(release: Release) -> Iterator[str]:
    for each in release.objects:
        if not DNS_LABEL.fullmatch(each.name):
            yield each.problem("metadata.name", "should be a DNS label")
        room = NAME_CHARACTERS_MAX - SUFFIX_CHARACTERS.get(each.kind, 0)
        if len(each.name) > room:
            yield each.problem("metadata.name", f"has {len(each.name)} characters; there is room for {room}")
        for label, value in _labels(each):
            if len(value) > NAME_CHARACTERS_MAX or not LABEL_VALUE.fullmatch(value):
                yield f"{each}: label {label}={value!r} is not one that Kubernetes takes"


@pytest.mark.parametrize(
    ("first", "second"), [("one of two releases", "the other of two releases"), ("a long name", "another long name")]
)
def test_two_releases_in_one_namespace_have_nothing_in_common(
    first: str, second: str, releases: Sequence[Release]
) -> None:
    one, other = _named(releases, first), _named(releases, second)
    assert one.case.namespace == other.case.namespace
    assert not {str(each) for each in one.objects} & {str(each) for each in other.objects}


def test_no_selector_of_a_release_selects_pods_of_another(releases: Sequence[Release]) -> None:
    one, other = _named(releases, "one of two releases"), _named(releases, "the other of two releases")
    pods = [pod.labels.items() for pod in other.pods()]
    selectors = [selector for each in one.objects for selector in _selectors(each.body)]
    assert len(selectors) > 20
    assert not [selector for selector in selectors if any(selector.items() <= labels for labels in pods)]


def _named(releases: Sequence[Release], name: str) -> Release:
    return next(release for release in releases if release.case.name == name)


def _labels(manifest: Manifest) -> Iterator[tuple[str, str]]:
    pod = manifest.pod()
    yield from manifest.labels.items()
    yield from pod.labels.items() if pod else ()


def _selectors(body: object) -> Iterator[dict[str, str]]:
    """Every set of labels that chooses pods, wherever it stands; an empty one chooses all."""
    if isinstance(body, dict):
        for key, value in body.items():
            if key == "matchLabels" or (key == "selector" and isinstance(value, dict) and "matchLabels" not in value):
                yield value
            elif key == "podSelector" and not value:
                yield {}
            else:
                yield from _selectors(value)
    elif isinstance(body, list):
        for each in body:
            yield from _selectors(each)
