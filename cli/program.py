"""How the user calls this command from where they stand, for the examples that it prints."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from cli.settings import CliSettings

_PORT = CliSettings.model_fields["port"].default


def program() -> str:
    """`groundwork`, or the path that leads to it."""
    invoked = Path(sys.argv[0])
    on_path = shutil.which("groundwork")
    if on_path and Path(on_path).resolve() == invoked.resolve():
        return "groundwork"
    absolute = invoked.absolute()
    return str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(absolute)


def command_line(*words: str) -> str:
    """A command to copy, for the server that this one talks to: `GROUNDWORK_PORT=8081 groundwork ask "Why?"`."""
    settings = CliSettings()
    if settings.url:
        environment = f"GROUNDWORK_URL={shlex.quote(settings.url)} "
    else:
        environment = f"GROUNDWORK_PORT={settings.port} " if settings.port != _PORT else ""
    return environment + shlex.join([program(), *words])
