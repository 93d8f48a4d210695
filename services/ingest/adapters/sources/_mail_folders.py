"""Which folders of a mailbox are wanted: names in which only * is special, for any characters. A name is compared with a pattern in
one pass, however many stars that has."""

from collections.abc import Iterable, Sequence

from services.ingest.errors import BadSource, SourceAway

_CHARS_MOST, _STARS_MOST = 2000, 20
"""Of the setting."""
_NAMES_SHOWN, _CHARS_SHOWN = 20, 80


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
