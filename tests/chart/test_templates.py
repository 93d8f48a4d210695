"""How the chart is written: a short file a component over one template, and no template that changes the values for the next."""

import re
from pathlib import Path

import pytest

from scripts.helm import CHART
from tests.chart.services import SERVERS, SETTINGS

LINES_MAX = 10
TEMPLATES = CHART / "templates"


def _code(path: Path) -> str:
    """Without comments."""
    return re.sub(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", "", path.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("component", sorted({*SETTINGS, *SERVERS}))
def test_a_component_is_a_short_file_that_includes_the_workload(component: str) -> None:
    lines = (TEMPLATES / f"{component}.yaml").read_text().splitlines()
    assert len(lines) <= LINES_MAX
    assert any('include "groundwork.workload"' in line and f'"{component}"' in line for line in lines)


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.tpl")), ids=lambda path: path.name)
def test_every_named_template_is_used_and_belongs_to_the_chart(path: Path) -> None:
    everything = "\n".join(_code(each) for each in TEMPLATES.rglob("*.*"))
    for name in re.findall(r'define "([^"]+)"', _code(path)):
        assert name.startswith("groundwork."), name
        # Named as it is, or put together: `printf "groundwork.env.%s" .component`.
        assert f'include "{name}"' in everything or f'"{name.rpartition(".")[0]}.%s"' in everything, name


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.*")), ids=lambda path: path.name)
def test_no_template_changes_the_values(path: Path) -> None:
    """`set`, `mergeOverwrite` and `merge` change their first argument: where that is a part of the values, what is rendered depends
    on the order of the files."""
    changed = re.findall(r"\b(?:set|merge|mergeOverwrite)\s+(\(?[$.]\S*Values\S*)", _code(path))
    assert not changed


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.*")), ids=lambda path: path.name)
def test_no_template_makes_something_else_each_time(path: Path) -> None:
    """Nor asks the cluster, but to refuse: what is rendered without one would differ from what is installed."""
    found = set(re.findall(r"\b(rand\w+|uuidv4|now|date|gen\w+|htpasswd|lookup|derivePassword)\s", _code(path)))
    assert found <= ({"lookup"} if path.name == "_checks.tpl" else set())
