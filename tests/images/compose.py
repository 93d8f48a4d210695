"""compose.yaml as data, with what `docker compose` would put in place of its variables where none is set."""

import re
from functools import cache
from typing import Any

import yaml

from tests.images.dockerfile import REPOSITORY

FILE = REPOSITORY / "compose.yaml"
_VARIABLE = re.compile(r"\$\{\w+:-([^}]*)}")


@cache
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
    return found


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def ours() -> dict[str, dict[str, Any]]:
    """Those that are built here, by name."""
    return {name: service for name, service in services().items() if "build" in service}


def environment(service: str) -> dict[str, str]:
    """As it is without anybody's own settings."""
    return {name: resolved(value) for name, value in services()[service].get("environment", {}).items()}


def resolved(text: str) -> str:
    """With the defaults of its variables."""
    return _VARIABLE.sub(lambda found: found[1], text).replace("$$", "$")
