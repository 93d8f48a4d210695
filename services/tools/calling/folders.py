"""Where the modules of tools are. Also read by the processes that plain tools run in, which know only what is imported here."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from kit.dropped_in import load_file

PREFIX = "groundwork_tool_"
"""Keeps the names of dropped-in modules apart from those of libraries."""


def place_of(module_name: str) -> tuple[str, str]:
    """What another process needs to load the module: its name, and its file where the name is not enough."""
    is_dropped_in = module_name.startswith(PREFIX)
    return module_name, str(sys.modules[module_name].__file__) if is_dropped_in else ""


def load(place: tuple[str, str]) -> ModuleType:
    """The module that `place_of` described."""
    name, file = place
    return load_file(Path(file), PREFIX) if file else importlib.import_module(name)
