"""The hash chain of an audit log. Each entry holds its number, the hash of the entry before it, and its own hash. So nobody can
change, remove or insert an entry without changing the hash of every entry behind it.

The hash of an entry is SHA-256 over the entry without `hash`, written as JSON in ASCII with sorted keys and no spaces. What
`jq -acjS 'del(.hash)' | sha256sum` prints is the same.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Entry = dict[str, Any]


class ChainBroken(ValueError):
    """An entry was changed, is missing, or does not follow the one before it."""


@dataclass(frozen=True)
class ChainLink:
    """What the next entry needs of the last one. A chain begins behind number 0."""

    number: int = 0
    hash: str = ""


def canonical(entry: Mapping[str, Any]) -> str:
    """The entry as a line of JSON, always the same."""
    return json.dumps(entry, sort_keys=True, separators=(",", ":"))


def sealed(fields: Mapping[str, Any], after: ChainLink) -> Entry:
    """The entry with these fields that follows `after`."""
    entry = {**fields, "number": after.number + 1, "previous": after.hash}
    return {**entry, "hash": _hash(entry)}


def link_of(line: str) -> ChainLink:
    """Of an entry, without looking whether its hash is right. Raises ValueError."""
    entry = json.loads(line)
    if not (isinstance(entry, dict) and isinstance(entry.get("number"), int) and isinstance(entry.get("hash"), str)):
        raise ValueError("the line is no entry of an audit log")  # noqa: TRY004 - it is about a text, not about a type
    return ChainLink(entry["number"], entry["hash"])


class ChainCheck:
    """Verifies a chain entry by entry. Without `last` the first entry may have any number: earlier ones may have expired."""

    def __init__(self, last: ChainLink | None = None) -> None:
        self.first: ChainLink | None = None
        """The first entry that was verified."""
        self.last = last
        """The last one, or where the chain goes on."""

    def take(self, line: str) -> Entry:
        """The next entry. Raises ChainBroken."""
        try:
            found = link_of(line)
        except ValueError as error:
            raise ChainBroken(f"the line behind entry {self._at()} is no entry of an audit log") from error
        entry: Entry = json.loads(line)
        if found.hash != _hash({name: value for name, value in entry.items() if name != "hash"}):
            raise ChainBroken(f"entry {found.number} was changed: its hash is not that of its content")
        self._require_next(entry, found)
        self.first = self.first or found
        self.last = found
        return entry

    def _require_next(self, entry: Entry, found: ChainLink) -> None:
        expected = self.last or (ChainLink() if found.number == 1 else None)
        if expected is None:
            return
        if found.number != expected.number + 1:
            raise ChainBroken(f"entry {expected.number + 1} is missing: entry {found.number} follows {expected.number}")
        if entry.get("previous") != expected.hash:
            raise ChainBroken(
                f"entry {found.number} does not follow entry {expected.number}: what stood before it was replaced"
            )

    def _at(self) -> int:
        return self.last.number if self.last else 0


def _hash(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(entry).encode()).hexdigest()
