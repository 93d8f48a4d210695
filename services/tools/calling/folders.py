"""Modules of tools that an operator drops into a folder outside of the package. Also read by the processes that plain tools run in,
which know only what is imported here."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_PREFIX = "groundwork_tool_"
"""Keeps the names of dropped-in modules apart from those of libraries."""


def load_file(path: Path) -> ModuleType:
    """The module in the file, loaded once. Raises whatever its code raises."""
    name = f"{_PREFIX}{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def place_of(module_name: str) -> tuple[str, str]:
    """What another process needs to load the module: its name, and its file where the name is not enough."""
    is_dropped_in = module_name.startswith(_PREFIX)
    return module_name, str(sys.modules[module_name].__file__) if is_dropped_in else ""


def load(place: tuple[str, str]) -> ModuleType:
    """The module that `place_of` described."""
    name, file = place
    return load_file(Path(file)) if file else importlib.import_module(name)
