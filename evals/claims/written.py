"""Reads claims that were written by hand: files of passages, each with true and false claims about it.

A passage begins with `@ LANGUAGE | HEADING > HEADING`. Its lines follow, then claims: `+ KIND: TEXT` is true, `- KIND: TEXT` is
false. `KIND [LANGUAGE]` names the claim's language where it is not the passage's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_HEADER = re.compile(r"@ (?P<language>\w\w) \| (?P<heading>.*)")
_CLAIM = re.compile(r"(?P<sign>[+-]) (?P<kind>\w+)(?: \[(?P<language>\w\w)\])?: (?P<text>.+)")


@dataclass(frozen=True)
class WrittenClaim:
    """A claim about the passage that it stands below."""

    text: str
    is_true: bool
    kind: str
    language: str


@dataclass(frozen=True)
class WrittenPassage:
    """A passage with its claims."""

    heading: str
    language: str
    lines: list[str] = field(default_factory=list)
    claims: list[WrittenClaim] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def read_written(folder: Path) -> list[WrittenPassage]:
    """All passages of the folder's files. Raises ValueError at a line that belongs to no passage."""
    return [passage for path in sorted(folder.glob("*.txt")) for passage in _of_file(path)]


def _of_file(path: Path) -> Iterator[WrittenPassage]:
    passage: WrittenPassage | None = None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            if passage:
                yield passage
            heading = " ".join(header["heading"].replace(" >", "").split())
            passage = WrittenPassage("" if heading.startswith("captions") else heading, header["language"])
        elif line and not passage:
            raise ValueError(f"{path.name}, line {number}: {line[:40]!r} stands below no passage")
        elif line and passage:
            _add(passage, line)
    if passage:
        yield passage


def _add(passage: WrittenPassage, line: str) -> None:
    claim = _CLAIM.fullmatch(line)
    if claim is None:
        passage.lines.append(line)
        return
    language = claim["language"] or passage.language
    passage.claims.append(WrittenClaim(claim["text"], claim["sign"] == "+", claim["kind"], language))
