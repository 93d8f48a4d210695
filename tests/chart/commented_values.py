"""The keys of a values file with the comments that tell of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

KUBERNETES_OBJECTS = {"behavior", "requests", "limits"}
"""What is below these keys is Kubernetes' to explain."""
TWIN = "gateway"
"""The section whose comments hold for keys of the same name in the other components' sections, as the file says."""


@dataclass(frozen=True)
class Key:
    path: tuple[str, ...]
    line: int
    """Counted from 0."""
    last_line: int
    """Of its value."""

    def __str__(self) -> str:
        return ".".join(self.path)


class CommentedValues:
    """A values file, read with its comments."""

    def __init__(self, file: Path) -> None:
        self._lines = file.read_text().splitlines()
        root = yaml.compose(file.read_text(), Loader=yaml.SafeLoader)
        assert isinstance(root, yaml.MappingNode)
        self._keys = {key.path: key for key in _keys(root)}
        self._components = {path[0] for path in self._keys if (path[0], "resources") in self._keys}
        self._commented: set[tuple[str, ...]] = set()
        for key in self._keys.values():
            if self._has_comment(key):
                self._commented.add(key.path)

    def entries(self) -> list[Key]:
        """All, those of nested mappings among them."""
        return list(self._keys.values())

    def is_told(self, key: Key) -> bool:
        """Whether a comment tells of the key: its own, one above its parent that has its name, or its twin's."""
        if key.path[-1] == "enabled":
            key = self._keys[key.path[:-1]]  # says what it is about
        is_of_kubernetes = bool(KUBERNETES_OBJECTS & set(key.path[:-1]))
        return is_of_kubernetes or key.path in self._commented or self._is_named_above(key) or self._has_twin(key)

    def _has_comment(self, key: Key) -> bool:
        """Above it or behind it; above the siblings in the lines before it; or above its parent, in whose line it stands."""
        before = self._lines[key.line - 1].strip() if key.line else ""
        if before.startswith("#") or " # " in self._lines[key.line]:
            return True
        parent = self._keys.get(key.path[:-1])
        if parent is not None and parent.line == key.line:
            return parent.path in self._commented
        siblings = [
            other for other in self._keys.values() if other.path[:-1] == key.path[:-1] and other.line < key.line
        ]
        return bool(siblings) and siblings[-1].last_line == key.line - 1 and siblings[-1].path in self._commented

    def _is_named_above(self, key: Key) -> bool:
        """`delaySeconds` by "the delay", too."""
        parent = self._keys.get(key.path[:-1])
        words = re.split(r"(?=[A-Z])", key.path[-1])
        comment = " ".join(self._block_above(parent.line)).lower() if parent else ""
        return any("".join(words[:count]).lower() in comment for count in range(1, len(words) + 1))

    def _block_above(self, line: int) -> Iterator[str]:
        while line and self._lines[line - 1].strip().startswith("#"):
            line -= 1
            yield self._lines[line]

    def _has_twin(self, key: Key) -> bool:
        if key.path[0] == TWIN or key.path[0] not in self._components:
            return False
        twin = self._keys.get((TWIN, *key.path[1:]))
        return twin is not None and self.is_told(twin)


def _keys(node: yaml.MappingNode, path: tuple[str, ...] = ()) -> Iterator[Key]:
    for name, value in node.value:
        end = value.end_mark
        yield Key((*path, str(name.value)), name.start_mark.line, end.line if end.column else end.line - 1)
        if isinstance(value, yaml.MappingNode):
            yield from _keys(value, (*path, str(name.value)))
