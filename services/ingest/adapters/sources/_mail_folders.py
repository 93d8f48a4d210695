"""Which folders of a mailbox are wanted, and which messages each had. In names of wanted folders only * is special, for any
characters. A name is compared with a pattern in one pass, however many stars that has."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.ingest.errors import BadSource, SourceAway

_CURSOR_CHARS_MOST = 256 * 1024
"""A longer one is not kept, and every listing is complete."""
_CHARS_MOST, _STARS_MOST = 2000, 20
"""Of the setting."""
_NAMES_SHOWN, _CHARS_SHOWN = 20, 80


@dataclass(frozen=True)
class MailPlace:
    """Where a message is."""

    folder: str
    uid_validity: int
    uid: int

    @property
    def key(self) -> str:
        return f"{self.folder}/{self.uid_validity}-{self.uid}"

    @classmethod
    def of(cls, key: str) -> "MailPlace":
        folder, _, mark = key.rpartition("/")
        uid_validity, _, uid = mark.partition("-")
        return cls(folder, int(uid_validity), int(uid))


@dataclass(frozen=True)
class MailFolder:
    """What a folder had when it was looked into."""

    uid_validity: int
    uids: frozenset[int]

    def without(self, other: "MailFolder | None") -> frozenset[int]:
        """UIDs that the other does not have. Another UIDVALIDITY gives other meanings to all."""
        return self.uids - other.uids if other and other.uid_validity == self.uid_validity else self.uids

    def places(self, name: str, uids: Iterable[int]) -> list[MailPlace]:
        return [MailPlace(name, self.uid_validity, uid) for uid in sorted(uids)]


def wanted_folders(said: str) -> list[str]:
    """Names and patterns, which have commas between them. Raises BadSource."""
    if len(said) > _CHARS_MOST:
        raise BadSource(
            f"folders has at most {_CHARS_MOST} characters, not {len(said)}; name fewer, or use * in a name"
        )
    wanted = [each.strip() for each in said.split(",") if each.strip()]
    if (stars := sum(each.count("*") for each in wanted)) > _STARS_MOST:
        raise BadSource(f"folders has at most {_STARS_MOST} times *, not {stars}; one * stands for any characters")
    return wanted


def chosen(wanted: Iterable[str], there: Sequence[str]) -> list[str]:
    """Those of the folders that are there. Raises SourceAway where nothing is there for a name."""
    found: dict[str, None] = {}
    for pattern in wanted:
        matching = [name for name in there if matches(name, pattern) or name.upper() == pattern.upper() == "INBOX"]
        if not matching:
            names = ", ".join(name[:_CHARS_SHOWN] for name in sorted(there)[:_NAMES_SHOWN]) or "none"
            raise SourceAway(f"there is no folder {pattern[:_CHARS_SHOWN]!r}; there are: {names}")
        found |= dict.fromkeys(sorted(matching))
    return list(found)


def matches(name: str, pattern: str) -> bool:
    """Whether all of the name is as the pattern says. Each part is taken where it comes first, which leaves most for the others."""
    first, *parts = pattern.split("*")
    if not parts:
        return name == first
    *between, last = parts
    end = len(name) - len(last)
    if not name.startswith(first) or not name.endswith(last):
        return False
    at = len(first)
    for part in between:
        if (found := name.find(part, at, end)) < 0:
            return False
        at = found + len(part)
    return at <= end


def written_uids(uids: Iterable[int]) -> str:
    """As IMAP writes them: 1:3,7."""
    found: list[list[int]] = []
    for uid in sorted(uids):
        if found and found[-1][1] == uid - 1:
            found[-1][1] = uid
        else:
            found.append([uid, uid])
    return ",".join(str(first) if first == last else f"{first}:{last}" for first, last in found)


def read_uids(ranges: str) -> Iterable[int]:
    """As `written_uids` writes them."""
    for each in ranges.split(",") if ranges else ():
        first, _, last = each.partition(":")
        yield from range(int(first), int(last or first) + 1)


def read_cursor(cursor: str) -> dict[str, MailFolder]:
    """What each folder had, by name."""
    said: dict[str, tuple[int, str]] = json.loads(cursor) if cursor else {}
    return {
        name: MailFolder(uid_validity, frozenset(read_uids(ranges))) for name, (uid_validity, ranges) in said.items()
    }


def written_cursor(folders: Mapping[str, MailFolder]) -> str:
    """Empty where it would be too long."""
    said = {name: (folder.uid_validity, written_uids(folder.uids)) for name, folder in folders.items()}
    cursor = json.dumps(said, ensure_ascii=False)
    return cursor if len(cursor) <= _CURSOR_CHARS_MOST else ""
