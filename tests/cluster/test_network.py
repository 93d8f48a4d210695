"""From a pod of each component to every port of every other: exactly the arrows of the architecture connect."""

from collections.abc import Sequence

import pytest

from tests.chart.arrows import ARROWS, Arrow
from tests.cluster.cluster import Pod
from tests.cluster.network import COMPONENTS, reached_from, targets_of
from tests.cluster.release import Release

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def pods(release: Release) -> Sequence[Pod]:
    return [pod for pod in release.cluster.pods() if pod.is_ready]


def test_every_component_is_tried(pods: Sequence[Pod]) -> None:
    assert {pod.component for pod in pods} == COMPONENTS


@pytest.mark.parametrize("component", sorted(COMPONENTS))
def test_exactly_the_arrows_connect_from(component: str, release: Release, pods: Sequence[Pod]) -> None:
    source = next(pod for pod in pods if pod.component == component)
    targets = targets_of([pod for pod in pods if pod.uid != source.uid])
    reached = reached_from(release.cluster, source, targets, release.settings.images.name("cli"))
    arrows = [Arrow(component, target.component, target.port) for target in targets]
    wrong = [
        f"{arrow} at {target.address} {'connects' if is_reached else 'does not connect'}"
        for arrow, target, is_reached in zip(arrows, targets, reached, strict=True)
        if is_reached != (arrow in ARROWS)
    ]
    assert not wrong, "\n".join(wrong)
    assert any(reached) or ARROWS.isdisjoint(arrows)
