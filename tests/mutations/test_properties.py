"""The properties themselves: each notices what breaks it, and names the object and the field."""

import copy
import importlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import chart
from tests.chart.manifests import Manifest
from tests.chart.release import PROPERTIES, Release
from tests.mutations import breaks_of_choices, breaks_of_pods, breaks_of_wiring
from tests.mutations.breaks import Break

BREAKS = (*breaks_of_pods.BREAKS, *breaks_of_wiring.BREAKS, *breaks_of_choices.BREAKS)


@pytest.fixture(scope="module", autouse=True)
def _all_properties_are_known() -> None:
    for path in Path(*chart.__path__).glob("test_*.py"):
        importlib.import_module(f"{chart.__name__}.{path.stem}")


@pytest.mark.parametrize(
    "each", BREAKS, ids=lambda each: f"{each.breaks}-{each.path.rpartition('.')[2] or each.target}"
)
def test_a_broken_property_is_noticed_and_named(each: Break, releases: Sequence[Release]) -> None:
    release = next(release for release in releases if release.case.name == each.case)
    objects = [copy.deepcopy(manifest.body) for manifest in release.objects]
    broken = Release(release.case, [Manifest(body) for body in each.apply(objects)], release.versions)
    check = PROPERTIES[f"test_{each.breaks}"]
    sentences = set(check(broken)) - set(check(release))
    words = each.words or (each.target, each.path.rpartition(".")[2])
    assert any(all(word in sentence for word in words) for sentence in sentences), sentences


def test_every_property_is_tried() -> None:
    assert not set(PROPERTIES) - {f"test_{each.breaks}" for each in BREAKS}
