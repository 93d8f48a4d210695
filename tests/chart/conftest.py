"""Each case is rendered and read once for all tests of the chart, those in other processes of the same run among them."""

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scripts.helm import NO_HELM, Helm, HelmError, find_helm
from tests.chart.case import KUBERNETES, Case
from tests.chart.cases import CASES
from tests.chart.manifests import parse
from tests.chart.release import Release, Rendered

RENDERING_TIMEOUT_S = 600
"""The first test of each process renders everything, which takes a busy machine minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(RENDERING_TIMEOUT_S))


@pytest.fixture(scope="session")
def helm() -> Helm:
    found = find_helm()
    if found is None:
        pytest.skip(NO_HELM)
    return found


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all processes of this run."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "chart"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def rendered(helm: Helm, shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """What helm makes of each case, or why it refuses it, by the case's name and the version of Kubernetes."""
    values = tmp_path_factory.mktemp("values")

    def render(case: Case, version: str) -> str | HelmError:
        try:
            return helm.template(case.release, case.namespace, case.options(values, version))
        except HelmError as error:
            return error

    def kept(key: tuple[Case, str]) -> str | HelmError:
        case, version = key
        return _kept(shared_folder / f"{case.name}, {version}", lambda: render(case, version))

    keys = [(case, version) for version in KUBERNETES for case in CASES]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        texts = threads.map(kept, keys)
        return {(case.name, version): text for (case, version), text in zip(keys, texts, strict=True)}


@pytest.fixture(scope="session")
def releases(rendered: Rendered) -> Sequence[Release]:
    """All that helm renders; test_rendering.py fails for the others. A text that is the same for several versions is there once."""
    return [
        Release(case, parse(text), versions) for case in CASES for text, versions in _by_text(rendered, case).items()
    ]


def _by_text(rendered: Rendered, case: Case) -> Mapping[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for version in KUBERNETES:
        text = rendered[case.name, version]
        if isinstance(text, str):
            versions.setdefault(text, []).append(version)
    return versions


def _kept(file: Path, make: Callable[[], str | HelmError]) -> str | HelmError:
    """What another process of the run has made, or what is made now."""
    try:
        made: str | HelmError = pickle.loads(file.read_bytes())
    except FileNotFoundError:
        made = make()
        part = file.with_name(f"{file.name}.{os.getpid()}")
        part.write_bytes(pickle.dumps(made))
        part.replace(file)
    return made
