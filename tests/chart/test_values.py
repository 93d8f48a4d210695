"""The values: every key is explained and known to the schema, and whoever writes one wrong is told which in a sentence."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.helm import CHART, Helm, HelmError
from tests.chart.commented_values import CommentedValues
from tests.chart.refusals import REFUSALS, Refusal

VALUES = CHART / "values.yaml"
RELEASE_NAME = "it must begin with a letter"
NOT_BY_VALUES = ("is not YAML", "without the loss of what they hold", "which no upgrade can change")
"""What a mistake in a template would say, and what the cluster has to say (test_servers.py)."""
SENTENCE_CHARACTERS_MIN = 15
"""Words of a refusal that are longer are of its sentence; shorter ones are what it names."""
OPEN = {
    "global",
    "affinity",
    "behavior",
    *("configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"),
    *("annotations", "env", "labels", "limits", "nodeSelector", "podAnnotations", "podLabels", "requests"),
    "texts",
}
"""Where keys are the user's own or Kubernetes'. Lists of Kubernetes' objects are open too."""


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    return found


def test_every_key_is_explained() -> None:
    values = CommentedValues(VALUES)
    assert not [str(key) for key in values.entries() if not values.is_told(key)]


def test_every_key_is_known_to_the_schema(schema: dict[str, Any]) -> None:
    unknown = [path for path in _keys(yaml.safe_load(VALUES.read_text())) if not _knows(schema, path)]
    assert not [".".join(path) for path in unknown]


def test_every_key_of_the_schema_has_a_default(schema: dict[str, Any]) -> None:
    """Else nobody would learn of it: the values file is the reference."""
    values = yaml.safe_load(VALUES.read_text())
    assert not [".".join(path) for path in _described(schema, schema) if not _stands(values, path)]


def test_the_schema_is_closed_everywhere(schema: dict[str, Any]) -> None:
    assert not [path for path in _open_places(schema, "") if path.rpartition(".")[2] not in OPEN]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
def test_what_is_wrong_is_said(refusal: Refusal, helm: Helm, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(dict(refusal.values)))
    with pytest.raises(HelmError) as refused:
        helm.template(options=["--values", file])
    message = str(refused.value)
    assert all(words in message for words in refusal.words), message


def test_a_name_that_services_cannot_have_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match=RELEASE_NAME):
        helm.template("7days")


def test_every_refusal_of_the_templates_is_tried() -> None:
    texts = "\n".join(path.read_text() for path in sorted(CHART.rglob("templates/**/*.*")))
    sentences = re.findall(r'fail \(?(?:printf )?"((?:[^"\\]|\\.)*)"', texts)
    assert len(sentences) > 10
    tried = [words for refusal in REFUSALS for words in refusal.words if len(words) > SENTENCE_CHARACTERS_MIN]
    tried += [RELEASE_NAME, *NOT_BY_VALUES]
    assert not [sentence for sentence in sentences if not any(words in sentence for words in tried)]


def _keys(values: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items() if isinstance(values, dict) else ():
        yield (*path, name)
        yield from _keys(value, (*path, name))


def _knows(schema: dict[str, Any], path: tuple[str, ...]) -> bool:
    node = schema
    for name in path:
        node = _resolved(schema, node)
        if name not in node.get("properties", {}):
            return node.get("additionalProperties", True) is not False
        node = node["properties"][name]
    return True


def _described(schema: dict[str, Any], node: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, below in _resolved(schema, node).get("properties", {}).items():
        if name not in OPEN:
            yield (*path, name)
            yield from _described(schema, below, (*path, name))


def _stands(values: Any, path: tuple[str, ...]) -> bool:
    """Whether the path is in the values; what is empty there is for the user to fill."""
    for name in path:
        if values == {}:
            return True
        if name not in values:
            return False
        values = values[name]
    return True


def _open_places(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, below in schema.items():
        if name in {"properties", "definitions"}:
            for key, node in below.items():
                yield from _open_places(node, f"{path}.{key}")
    if schema.get("type") == "object" and schema.get("additionalProperties", True) is not False:
        yield path


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    return schema["definitions"][reference.rpartition("/")[2]] if reference else node
