"""Modules that register by being there: those of a package and of its sub-packages, and the files in folders of an operator. A name
that begins with an underscore is left out."""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from kit.errors import FailedPrecondition

Load = Callable[[], ModuleType]


class BrokenModule(FailedPrecondition):
    """A module cannot be loaded. The service does not start, and says so in a line: the module may be an operator's."""

    reason = "BROKEN_MODULE"


def modules_in(
    package: ModuleType, folders: Sequence[Path] = (), *, setting: str = "", prefix: str = ""
) -> Iterator[tuple[str, Load]]:
    """The modules of the package, then those of the folders that `setting` names, by name, each with what loads it.

    `prefix` keeps the names of dropped-in modules apart from those of libraries. Raises BrokenModule for a folder that is not there
    and for a name that is there twice; so does what loads a module that cannot be loaded.
    """
    names: set[str] = set()
    for name, load in (*_in_package(package), *_in_folders(folders, setting, prefix)):
        if name in names:
            raise BrokenModule(f"two modules are called {name}; rename the one in the folder of {setting}")
        names.add(name)
        yield name, _checked(name, load)


def load_file(path: Path, prefix: str) -> ModuleType:
    """The module in the file, loaded once. Raises what its code raises."""
    name = f"{prefix}{path.stem}"
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


def _in_package(package: ModuleType) -> Iterator[tuple[str, Load]]:
    for module in pkgutil.iter_modules(package.__path__):
        full_name = f"{package.__name__}.{module.name}"
        if module.name.startswith("_"):
            continue
        if module.ispkg:
            yield from _in_package(importlib.import_module(full_name))
        else:
            yield module.name, lambda full_name=full_name: importlib.import_module(full_name)  # type: ignore[misc]


def _in_folders(folders: Sequence[Path], setting: str, prefix: str) -> Iterator[tuple[str, Load]]:
    for folder in folders:
        if not folder.is_dir():
            raise BrokenModule(f"{folder} is not a folder; correct {setting}")
        for path in sorted(folder.glob("*.py")):
            if not path.name.startswith("_"):
                yield path.stem, lambda path=path: load_file(path.resolve(), prefix)  # type: ignore[misc]


def _checked(name: str, load: Load) -> Load:
    def loaded() -> ModuleType:
        try:
            return load()
        except Exception as error:
            raise BrokenModule(f"{name}: the module cannot be imported ({error!r})") from error

    return loaded
