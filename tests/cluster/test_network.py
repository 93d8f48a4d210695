"""From a pod of each component to every port of every other: exactly the arrows of the architecture connect."""

from collections.abc import Sequence

import pytest

from tests.cluster.cluster import Pod
from tests.cluster.network import ARROWS, Target, reached_from, targets_of
from tests.cluster.release import Release

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def pods(release: Release) -> Sequence[Pod]:
    return [pod for pod in release.cluster.pods() if pod.is_ready]


def test_every_component_has_an_arrow_or_none_on_purpose(pods: Sequence[Pod]) -> None:
    assert {pod.component for pod in pods} == set(ARROWS)


@pytest.mark.parametrize("component", sorted(ARROWS))
def test_exactly_the_arrows_connect_from(component: str, release: Release, pods: Sequence[Pod]) -> None:
    source = next(pod for pod in pods if pod.component == component)
    targets = targets_of([pod for pod in pods if pod.uid != source.uid])
    reached = reached_from(release.cluster, source, targets, release.settings.images.name("cli"))
    wrong = [
        f"{component} {'reaches' if is_reached else 'does not reach'} {target.component}:{target.port} at {target.address}"
        for target, is_reached in zip(targets, reached, strict=True)
        if is_reached != _is_allowed(component, target)
    ]
    assert not wrong, "\n".join(wrong)
    assert any(reached) or not ARROWS[component]


def _is_allowed(component: str, target: Target) -> bool:
    return target.port in ARROWS[component].get(target.component, set())
