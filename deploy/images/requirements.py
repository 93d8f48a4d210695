"""Writes what the layers of packages are made of: for each a list of requirements for pip, from the extras of pyproject.toml.

Images install from these lists and not by `pip install .[extra]`: so a layer is made anew when its list changes, and not with each
change of the code or of pyproject.toml.

    python requirements.py pyproject.toml FOLDER LAYER[=EXTRA,EXTRA...]...    writes FOLDER/LAYER.txt

Without an extra it is what every service needs.
"""

import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_OWN_EXTRAS = re.compile(r"groundwork\[([^]]+)]")
"""An extra that names others: `groundwork[gateway,tools]`."""


def lists(project: Mapping[str, Any], layers: Sequence[str]) -> dict[str, list[str]]:
    """Requirements by layer. One that is a layer of its own is not named again where an extra names it: the layer that has it comes
    before. Raises SystemExit for an extra that is not there."""
    table = {
        name: extras.split(",") if extras else [] for name, _, extras in (layer.partition("=") for layer in layers)
    }
    found = {}
    for name, extras in table.items():
        lines = (
            line
            for extra in extras
            for line in _packages_of(project["optional-dependencies"], extra, set(table) - {name})
        )
        found[name] = list(dict.fromkeys(lines)) if extras else list(project["dependencies"])
    return found


def _packages_of(known: Mapping[str, Sequence[str]], extra: str, elsewhere: Collection[str]) -> Iterator[str]:
    if extra not in known:
        sys.exit(f"pyproject.toml has no extra {extra!r}; it has {', '.join(sorted(known))}")
    for line in known[extra]:
        if own := _OWN_EXTRAS.fullmatch(line):
            for name in own[1].split(","):
                if name not in elsewhere:
                    yield from _packages_of(known, name, elsewhere)
        else:
            yield line


def main() -> None:
    pyproject, folder, *layers = sys.argv[1:]
    project = tomllib.loads(Path(pyproject).read_text("utf-8"))["project"]
    for name, lines in lists(project, layers).items():
        Path(folder, f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main()
