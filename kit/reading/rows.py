"""Rows of tables, as ingestion writes them: `column: value; column: value`. Of a long row only what the question is about is shown
and compared: its first field, which names it, and the fields whose column or value the question has a word of."""

import re
from collections.abc import Collection
from itertools import accumulate

from kit.language.terms import Token, tokens

MOST_CHARS = 240
"""Rows up to this length are shown whole."""
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_FIELDS = re.compile(r";\s+")
_SENTENCE = re.compile(r"[.!?]\s|.{61}")
_GAP = " … "


def is_row(text: str) -> bool:
    """Whether a line holds several fields, however long the names of its columns are; the first may have none. A passage may be cut
    off behind the name of its last column."""
    _, *others = _FIELDS.split(text)
    if len(others) > 1 and others[-1].endswith(":"):
        others.pop()
    return "\n" not in text and bool(others) and all(": " in field for field in others)


def fields(text: str) -> list[tuple[str, str]]:
    """Column and cell of each field; a field without a column has an empty one. A sentence before a colon is no column's name."""
    parts = (field.partition(": ") for field in _FIELDS.split(text))
    return [
        (name, value) if colon and not _SENTENCE.search(_IN_BRACKETS.sub("", name)) else ("", name + colon + value)
        for name, colon, value in parts
    ]


def row_tokens(text: str) -> list[Token]:
    """The words of a row, and those that the names of its columns are made of ("currency_name")."""
    return tokens(text) + [token for name, _ in fields(text) if "_" in name for token in tokens(name.replace("_", " "))]


def is_shortened(text: str) -> bool:
    """Whether of a text only some fields are shown."""
    return len(text) > MOST_CHARS and is_row(text)


def shortened(text: str, stems: Collection[str]) -> str:
    """A long row without the fields that share no word with `stems`; what was left out is a gap. Where no column has such a word
    nobody knows which field is asked for: then its first fields are shown, too."""
    if not is_shortened(text):
        return text
    cut = _FIELDS.split(text)
    kept = [index == 0 or any(token.stem in stems for token in row_tokens(field)) for index, field in enumerate(cut)]
    if not names_a_column(text, stems):
        kept = [
            known or end <= MOST_CHARS
            for known, end in zip(kept, accumulate(len(field) + 2 for field in cut), strict=True)
        ]
    shown, last = "", -1
    for index, field in enumerate(cut):
        if kept[index]:
            shown += ("" if not shown else "; " if last == index - 1 else _GAP) + field.rstrip(";")
            last = index
    return shown if last == len(cut) - 1 else shown + _GAP.rstrip()


def names_a_column(row: str, stems: Collection[str]) -> bool:
    """Whether one of `stems` is of the name of a column."""
    return any(token.stem in stems for name, _ in fields(row) for token in row_tokens(f"{name}: "))
