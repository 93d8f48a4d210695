"""Rendering itself: every case is rendered, always to the same text, and by Helm 3 as by Helm 4."""

import os
from pathlib import Path

import pytest

from scripts.helm import Helm, HelmError
from tests.chart.case import KUBERNETES
from tests.chart.cases import CASES
from tests.chart.manifests import Body, parse
from tests.chart.release import Rendered


def test_every_case_is_rendered(rendered: Rendered) -> None:
    assert not {key: str(text) for key, text in rendered.items() if not isinstance(text, str)}


def test_rendering_again_makes_the_same_text(helm: Helm, rendered: Rendered, tmp_path: Path) -> None:
    """No random password, no time, no order of a map: else each upgrade would roll pods, and examples would drift."""
    for case in CASES:
        first, *others = (rendered[case.name, version] for version in KUBERNETES)
        if first not in others:  # else it has been rendered twice
            text = helm.template(case.release, case.namespace, case.options(tmp_path, KUBERNETES[0]))
            assert text == first, case.name


def test_an_older_kubernetes_than_the_oldest_that_is_checked_is_refused(helm: Helm) -> None:
    major, _, minor = KUBERNETES[0].partition(".")
    with pytest.raises(HelmError, match="kubeVersion"):
        helm.template(options=["--kube-version", f"{major}.{int(minor) - 1}"])


def test_helm_3_renders_the_same(rendered: Rendered, tmp_path: Path) -> None:
    """Many still have it: helm 4 came in November 2025."""
    program = os.environ.get("TEST_HELM3")
    if not program:
        pytest.skip("set TEST_HELM3 to a helm of version 3")
    helm = Helm(Path(program))
    assert helm.version().startswith("v3")
    for case in CASES:
        text = helm.template(case.release, case.namespace, case.options(tmp_path))
        assert _objects(text) == _objects(str(rendered[case.name, KUBERNETES[-1]])), case.name


def _objects(text: str) -> dict[str, Body]:
    return {str(each): each.body for each in parse(text)}
