"""Whether the API server takes an object: by Kubernetes' own schemas of each version, strictly (the package kubernetes-validate),
and by ours of custom resources, which are no part of it."""

import functools
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.chart.custom_resources import CUSTOM_RESOURCES
from tests.chart.manifests import Manifest


def schema_problems(manifest: Manifest, kubernetes: str) -> Iterator[str]:
    """What the API server of that version would refuse, a sentence for each field."""
    yield from (f"{manifest}: {problem}" for problem in _problems(json.dumps(manifest.body), kubernetes))


@functools.cache
def _problems(text: str, kubernetes: str) -> tuple[str, ...]:
    """Cached, since most cases differ in a few objects."""
    body = json.loads(text)
    validator = _validator(body["apiVersion"], body["kind"], kubernetes)
    if validator is None:
        return (f"Kubernetes {kubernetes} has no kind {body['kind']} of {body['apiVersion']}",)
    return tuple(f"{error.json_path.removeprefix('$.')}: {error.message}" for error in validator.iter_errors(body))


@functools.cache
def _validator(api_version: str, kind: str, kubernetes: str) -> Draft202012Validator | None:
    own = CUSTOM_RESOURCES.get((api_version, kind))
    if own is not None:
        return Draft202012Validator(own)
    # As kubernetes-validate names its files, which it reads anew for every object.
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    file = _folder(kubernetes) / f"{kind.lower()}-{group}.json"
    return (
        Draft202012Validator(json.loads(file.read_text()), registry=_definitions(kubernetes))
        if file.is_file()
        else None
    )


@functools.cache
def _definitions(kubernetes: str) -> Registry[Any]:
    definitions = Resource.from_contents(json.loads((_folder(kubernetes) / "_definitions.json").read_text()))
    return definitions @ Registry()


def _folder(kubernetes: str) -> Any:
    return files("kubernetes_validate") / "kubernetes-json-schema" / f"v{kubernetes}.0-local-strict"
