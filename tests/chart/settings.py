"""Reads a service's settings as its container would, with the variables of the manifest and the files of its volumes."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from kit.process.settings import ServiceSettings
from kit.testing.harness import public_keys_text, signing_key_text
from tests.chart.manifests import Container
from tests.chart.services import SETTINGS

SECRET = "a1b2c3d4e5f6"
"""What a Secret is taken to hold: letters and digits, as `prepare` makes them."""

_PROVIDERS = '{"openai": {"preset": "openai", "api_key": "k", "models": {"gpt": {}}}}'
_FILES: dict[str, Callable[[], str]] = {
    "public.json": public_keys_text,
    "signing-key.json": signing_key_text,
    "providers.json": lambda: _PROVIDERS,
}


def from_elsewhere(container: Container) -> dict[str, str]:
    """The variables that come from Secrets, ConfigMaps and the pod itself."""
    return {entry["name"]: SECRET for entry in container.body.get("env") or () if "valueFrom" in entry}


@contextmanager
def settings_of(container: Container) -> Iterator[ServiceSettings]:
    """The settings; the files that they name are there as long. Raises pydantic's ValidationError."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        for name in os.environ:
            if name.startswith("GROUNDWORK_"):
                patch.delenv(name)
        for name, value in container.environment(from_elsewhere(container)).items():
            patch.setenv(name, _file(Path(folder), value) if name.endswith("_FILE") else value)
        yield SETTINGS[container.pod.component]()


def _file(folder: Path, path: str) -> str:
    """A file with what the one of that name has in a cluster."""
    name = PurePosixPath(path).name
    file = folder / name
    file.write_text(_FILES.get(name, lambda: SECRET)())
    return str(file)
